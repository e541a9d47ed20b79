"""pprof's protocol buffers (profile.proto of google/pprof): stacks with values and labels, of which some profilers make times."""

from __future__ import annotations

import re

import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile.reading.content import PPROF, whole
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.evidence.cpu_profile.reading.protobuf import BYTES, VARINT, BadMessageError, fields, packed, signed
from traceanalyzer.evidence.cpu_profile.reading.rows import TOP, About, Rows
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress
from traceanalyzer.model.trace import EPOCH_NS

_NS = {
    "nanoseconds": 1,
    "ns": 1,
    "microseconds": 10**3,
    "us": 10**3,
    "milliseconds": 10**6,
    "ms": 10**6,
    "seconds": 10**9,
    "s": 10**9,
}
_OF_TIME = ("wall", "wall-time", "cpu", "cpu-time", "on-cpu", "time", "process-cpu", "full-time")
"""What the values are called that tell how long a stack ran; of several the first."""
_OF_COUNTS = ("samples", "sample", "wall-samples", "cpu-samples", "count", "")
_WHEN = ("end_timestamp_ns", "timestamp_ns", "timestamp", "time_ns", "timestamp_unix_nano", "timestamp_ms", "time")
_TID = ("thread native id", "thread id", "thread_id", "tid", "native_thread_id", "thread.id", "os thread id")
_NAME = ("thread name", "thread_name", "thread.name", "thread")
_PID = ("process id", "process_id", "pid", "process.pid")
_MOST_NS = 1 << 61


class _Profile:
    """A profile's parts, with texts as numbers in `strings`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.types: list[tuple[int, int]] = []
        self.samples: list[tuple[int, int]] = []
        self.locations: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        self.functions: dict[int, tuple[int, int]] = {}
        self.mappings: dict[int, int] = {}
        self.strings: list[str] = []
        self.time = self.duration = self.period = 0
        self.damage: str | None = None
        try:
            for number, at, end, wire in fields(data):
                self._field(number, at, end, wire)
        except BadMessageError as error:
            self.damage = str(error)

    def _field(self, number: int, at: int, end: int, wire: int) -> None:
        if number == 2 and wire == BYTES:
            self.samples.append((at, end))
        elif number == 6 and wire == BYTES:
            self.strings.append(self.data[at:end].decode("utf-8", "replace"))
        elif number == 1 and wire == BYTES:
            found = {one: value for one, value, _, kind in fields(self.data, at, end) if kind == VARINT}
            self.types.append((found.get(1, 0), found.get(2, 0)))
        elif number == 3 and wire == BYTES:
            found = {one: value for one, value, _, kind in fields(self.data, at, end) if kind == VARINT}
            self.mappings[found.get(1, 0)] = found.get(5, 0)
        elif number == 4 and wire == BYTES:
            self._location(at, end)
        elif number == 5 and wire == BYTES:
            found = {one: value for one, value, _, kind in fields(self.data, at, end) if kind == VARINT}
            self.functions[found.get(1, 0)] = found.get(2, 0) or found.get(3, 0), found.get(4, 0)
        elif wire == VARINT and number in (9, 10, 12):
            setattr(self, {9: "time", 10: "duration", 12: "period"}[number], signed(at))

    def _location(self, at: int, end: int) -> None:
        own = mapping = 0
        lines = []
        for number, value, stop, wire in fields(self.data, at, end):
            if number == 1 and wire == VARINT:
                own = value
            elif number == 2 and wire == VARINT:
                mapping = value
            elif number == 4 and wire == BYTES:
                line = {one: two for one, two, _, kind in fields(self.data, value, stop) if kind == VARINT}
                lines.append((line.get(1, 0), line.get(2, 0)))
        self.locations[own] = mapping, lines

    def text(self, number: int) -> str:
        """A text by its number; the empty one where there is none."""
        return self.strings[number] if 0 <= number < len(self.strings) else ""


def read(source: Source, progress: Progress, rows: Rows) -> About:
    """Raises InputError for a profile that is not of time."""
    data, damage = whole(source, progress)
    profile = _Profile(data)
    about = About(PPROF, "pprof", ordered=False)
    if damage or profile.damage:
        about.skip(damage or profile.damage)
    at, scale = _taken(source, profile)
    about.unit = "ns" if scale else "samples"
    if scale and 0 < profile.period * scale < _MOST_NS:
        about.period_ns = profile.period * scale
    reading = _Samples(profile, rows, about, at, scale or 1)
    try:
        reading.read()
    except BadMessageError as error:
        about.skip(error)
    reading.write()
    return about


def _taken(source: Source, profile: _Profile) -> tuple[int, int | None]:
    """Which of a sample's values counts time, and how many ns its unit has; None for a number of samples."""
    named = [(_plain(profile.text(kind)), _plain(profile.text(unit))) for kind, unit in profile.types]
    for name in _OF_TIME:
        for at, (kind, unit) in enumerate(named):
            if kind == name and unit in _NS:
                return at, _NS[unit]
    for name in _OF_COUNTS:
        for at, (kind, unit) in enumerate(named):
            if kind == name and unit in ("count", "", "samples"):
                return at, None
    of = ", ".join(re.sub(r"[^\w ./-]", "?", profile.text(kind))[:40] for kind, _ in profile.types) or "nothing"
    raise InputError(f"{source.path}: a pprof profile of {of}, not of the CPU's time; record one of the CPU")


def _plain(kind: str) -> str:
    """ "Wall time" and "wall_time" as "wall-time", and a micro as u."""
    return re.sub(r"[\s_]+", "-", kind.strip().lower().replace("\u00b5", "u").replace("\u03bc", "u"))


class _Samples:
    """The samples on their way into rows: each distinct stack and set of labels is read once."""

    def __init__(self, profile: _Profile, rows: Rows, about: About, value: int, scale: int) -> None:
        self._profile, self._rows, self._about, self._value, self._scale = profile, rows, about, value, scale
        self._stacks: dict[bytes, int] = {}
        self._frames: dict[int, list[int]] = {}
        self._found: list[tuple[int, int | None, int, int]] = []
        self._labels: dict[int, str] = {}

    def read(self) -> None:
        """All samples. Raises BadMessageError."""
        profile = self._profile
        data = profile.data
        for begin, end in profile.samples:
            ids: list[tuple[int, int]] = []
            single: list[int] = []
            values: list[int] = []
            labels: list[tuple[int, int]] = []
            for number, at, stop, wire in fields(data, begin, end):
                if number == 1:
                    if wire == BYTES:
                        ids.append((at, stop))
                    else:
                        single.append(at)
                elif number == 2:
                    values += packed(data, at, stop) if wire == BYTES else [at]
                elif number == 3 and wire == BYTES:
                    labels.append((at, stop))
            if self._value >= len(values):
                self._about.skip("a sample without the value that counts time")
                continue
            weight = signed(values[self._value]) * self._scale
            if not 0 <= weight < _MOST_NS:
                self._about.skip("a sample with a value that cannot be")
                continue
            if not weight:
                continue
            stack = self._stack(ids, single)
            thread, when = self._told(labels)
            self._found.append((thread, when, weight, stack))

    def write(self) -> None:
        """Into rows, with times where all samples have them."""
        times = [when for _, when, _, _ in self._found]
        known = [when for when in times if when is not None]
        about, profile = self._about, self._profile
        about.timed = bool(known) and len(known) == len(times)
        epoch = about.timed and min(known) >= EPOCH_NS
        if (
            about.timed
            and not epoch
            and profile.time >= EPOCH_NS
            and max(known) <= max(profile.duration, 0) + profile.duration // 10
        ):
            # Counted from the profile's own start.
            about.clock_base_ns = profile.time
        elif epoch:
            about.clock_base_ns = 0
        for thread, when, weight, stack in self._found:
            self._rows.sample(thread, when if about.timed else None, weight, stack)
        about.ordered = about.timed
        if not about.timed and EPOCH_NS <= profile.time < 1 << 62 and 0 < profile.duration < _MOST_NS:
            about.span_ns = (profile.time, profile.time + profile.duration)

    def _stack(self, ids: list[tuple[int, int]], single: list[int]) -> int:
        """The stack of locations, which are written from the innermost to the outermost."""
        data = self._profile.data
        key = b"".join(data[at:end] for at, end in ids) + np.array(single, np.uint64).tobytes()
        found = self._stacks.get(key)
        if found is None:
            numbers = [one for at, end in ids for one in packed(data, at, end)] + single
            frames = [frame for one in numbers for frame in self._location(one)]
            found = self._stacks[key] = self._rows.stack(reversed(frames)) if frames else TOP
        return found

    def _location(self, number: int) -> list[int]:
        """Its frames, those that were inlined first."""
        if number not in self._frames:
            profile, rows = self._profile, self._rows
            mapping, lines = profile.locations.get(number, (0, []))
            module = profile.text(profile.mappings.get(mapping, 0)).rpartition("/")[2]
            found = []
            for function, line in lines:
                name, file = profile.functions.get(function, (0, 0))
                found.append(
                    rows.frame(frame_of(profile.text(name), profile.text(file) or module or None, line or None))
                )
            self._frames[number] = found or [rows.frame(frame_of(f"[{module or 'unknown'}]"))]
        return self._frames[number]

    def _told(self, labels: list[tuple[int, int]]) -> tuple[int, int | None]:
        """Thread and time, as far as labels tell."""
        profile = self._profile
        said: dict[str, tuple[str, int, str]] = {}
        for begin, end in labels:
            found = {one: value for one, value, _, kind in fields(profile.data, begin, end) if kind == VARINT}
            said[self._key(found.get(1, 0))] = (
                profile.text(found.get(2, 0)),
                signed(found.get(3, 0)),
                profile.text(found.get(4, 0)),
            )
        pid, tid = (self._number(said, names) for names in (_PID, _TID))
        name = next((said[one][0] for one in _NAME if one in said and said[one][0]), None)
        when = None
        for one in _WHEN:
            if one in said and said[one][1] > 0:
                unit = said[one][2] or ("milliseconds" if one.endswith("_ms") else "nanoseconds")
                when = said[one][1] * _NS.get(unit, 1)
                when = when if when < _MOST_NS else None
                break
        return self._rows.thread(pid, tid, name), when

    def _key(self, number: int) -> str:
        if number not in self._labels:
            self._labels[number] = self._profile.text(number).lower()
        return self._labels[number]

    @staticmethod
    def _number(said: dict[str, tuple[str, int, str]], names: tuple[str, ...]) -> int | None:
        for one in names:
            if one in said:
                text, value, _ = said[one]
                if value or text.isdigit():
                    return value or int(text[:18])
        return None
