"""Profiles in speedscope's file format: samples with weights, or events that open and close frames; frames are shared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile.reading.content import SPEEDSCOPE, whole_json
from traceanalyzer.evidence.cpu_profile.reading.folded import thread_number
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.evidence.cpu_profile.reading.rows import TOP, About, Rows
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import EPOCH_NS

_NS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
_COUNTS = "none"
_MOST_NS = float(1 << 62)
_CHUNK = 8 << 20
_NUMBERS = bytes.maketrans(b"[],\t\r\n", b"      ")
_PLAIN = b"[],0123456789 \t\r\n"
_THREAD = re.compile(
    r"(?:process (?P<pid>\d+)\s*)?"
    r"(?:\(?thread (?:\d+:)?(?P<tid>0x[0-9a-fA-F]{1,16}|\d+)\)?\s*)?(?:\"(?P<quoted>.*)\"|(?P<name>.*?))\s*",
    re.IGNORECASE | re.DOTALL,
)

_AUSTIN = re.compile(r".* for (?P<pid>\d+):(?:\d+:)?(?P<tid>[0-9a-fA-F]+)")


class _Frame(msgspec.Struct):
    name: Any = None
    file: Any = None
    line: Any = None


class _Shared(msgspec.Struct):
    frames: list[_Frame]


class _Event(msgspec.Struct):
    type: str
    frame: int
    at: float | int


class _Profile(msgspec.Struct):
    type: str
    name: Any = None
    unit: str = _COUNTS
    startValue: float | int = 0  # noqa: N815
    endValue: float | int = 0  # noqa: N815
    samples: msgspec.Raw = msgspec.Raw(b"[]")
    weights: msgspec.Raw = msgspec.Raw(b"[]")
    events: list[_Event] = []


class _File(msgspec.Struct):
    profiles: list[_Profile]
    shared: _Shared
    exporter: Any = None


def read(source: Source, progress: Progress, rows: Rows) -> About:
    """Raises InputError for what is damaged, or a profile of something else than time."""
    text = whole_json(source, progress)
    try:
        file = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{source.path}: damaged JSON of a speedscope profile ({error}); copy or record it again"
        ) from error
    producer = file.exporter if isinstance(file.exporter, str) and file.exporter else "speedscope"
    about = About(SPEEDSCOPE, producer, ordered=True)
    kept = [one for one in file.profiles if one.unit in _NS]
    if not kept:
        kept = [one for one in file.profiles if one.unit == _COUNTS]
        about.unit = "samples"
    if file.profiles and not kept:
        raise InputError(
            f"{source.path}: a speedscope profile of {file.profiles[0].unit[:40]}, not of time; record one of the CPU"
        )
    if len(kept) < len(file.profiles):
        about.notes.append(("profiles of other units than time", len(file.profiles) - len(kept)))
    numbers = [
        rows.frame(frame_of(_text(one.name), _text(one.file) or None, _line(one.line))) for one in file.shared.frames
    ]
    epochs = []
    for one in kept:
        reading = _Reading(source, rows, about, numbers, _NS.get(one.unit))
        epochs += [reading.read(one)]
    about.timed = about.unit == "ns"
    starts = [at for at in epochs if at is not None]
    if starts and all(at >= EPOCH_NS for at in starts):
        about.clock_base_ns = 0
    about.stretches = bool(kept) and all(one.type == "evented" for one in kept)
    return about


class _Reading:
    """One profile of a file, on its way into rows."""

    def __init__(self, source: Source, rows: Rows, about: About, frames: list[int], scale: int | None) -> None:
        self._source, self._rows, self._about, self._frames, self._scale = source, rows, about, frames, scale

    def read(self, profile: _Profile) -> int | None:
        """Add its samples; its first moment in ns where it has times."""
        thread = self._rows.thread(*_thread(_text(profile.name)))
        start = self._ns(profile.startValue)
        if profile.type == "sampled":
            return self._sampled(profile, thread, start)
        if profile.type == "evented":
            return self._evented(profile, thread)
        self._about.skip(f"a profile of the type '{profile.type}'")
        return None

    def _ns(self, value: float) -> int:
        scaled = value * (self._scale or 1)
        if not abs(scaled) < _MOST_NS:
            raise InputError(f"{self._source.path}: times that no recording has; record the profile again")
        return round(scaled)

    def _sampled(self, profile: _Profile, thread: int, start: int) -> int | None:
        try:
            weights = np.array(msgspec.json.decode(profile.weights, type=list[float]))
            stacks = np.fromiter(self._stacks(profile.samples), np.int64)
        except (msgspec.DecodeError, OverflowError) as error:
            raise InputError(f"{self._source.path}: damaged samples of a speedscope profile ({error})") from error
        if len(weights) != len(stacks):
            if len(weights):
                self._about.notes.append(
                    ("samples without a weight, or weights without a sample", abs(len(weights) - len(stacks)))
                )
            count = min(len(weights), len(stacks)) if len(weights) else len(stacks)
            weights, stacks = (weights[:count] if len(weights) else np.ones(count)), stacks[:count]
        scaled = weights * (self._scale or 1)
        if len(scaled) and not (scaled.min() >= 0 and start + scaled.sum() < _MOST_NS):
            raise InputError(
                f"{self._source.path}: weights that no recording has (negative, or too large); record the profile again"
            )
        # Of the running sum of floats each edge is rounded once: nothing adds up over a million samples.
        edges = np.rint(np.concatenate(([0.0], np.cumsum(scaled)))).astype(np.int64)
        weight = np.diff(edges)
        self._rows.samples(thread, start + edges[:-1] if self._scale else None, weight, stacks)
        if self._scale and len(weight):
            self._about.period_ns = int(np.median(weight)) if self._about.period_ns is None else self._about.period_ns
            return start
        return None

    def _stacks(self, raw: msgspec.Raw) -> Iterator[int]:
        """The stack of each sample: lists of positions of frames, the outermost first."""
        known: dict[bytes, int] = {}
        for values, ends in _lists(bytes(raw)):
            begin = 0
            for end in ends.tolist():
                key = values[begin:end].tobytes()
                begin = end
                found = known.get(key)
                if found is None:
                    found = known[key] = self._stack(np.frombuffer(key, np.int64))
                yield found

    def _stack(self, frames: Array) -> int:
        count = len(self._frames)
        good = [self._frames[one] for one in frames.tolist() if 0 <= one < count]
        if len(good) < len(frames):
            self._about.skip("a frame that the list of frames does not have")
        return self._rows.stack(good)

    def _evented(self, profile: _Profile, thread: int) -> int | None:
        rows, about, count = self._rows, self._about, len(self._frames)
        node, since = TOP, None
        first = None
        for event in profile.events:
            at = self._ns(event.at)
            first = at if first is None else first
            if since is not None and at < since:
                about.skip("an event that is earlier than the one before it")
                at = since
            if node != TOP and since is not None and at > since:
                rows.sample(thread, since if self._scale else None, at - since, node)
            since = at
            if not 0 <= event.frame < count:
                about.skip("a frame that the list of frames does not have")
            elif event.type == "O":
                node = rows.within(node, self._frames[event.frame])
            else:
                node = self._closed(node, self._frames[event.frame])
        end = self._ns(profile.endValue)
        if node != TOP and since is not None and end > since:
            rows.sample(thread, since if self._scale else None, end - since, node)
        return first if self._scale else None

    def _closed(self, node: int, frame: int) -> int:
        """The stack without the frame that is closed and what is still open inside of it."""
        at = node
        while at != TOP and self._rows.frame_of(at) != frame:
            at = self._rows.around(at)
        if at == TOP:
            self._about.skip("the end of a frame that had not begun")
            return node
        if at != node:
            self._about.skip("the end of a frame before those inside of it")
        return self._rows.around(at)


def _thread(name: str) -> tuple[int | None, int | None, str | None]:
    """Process, thread and name, as profilers write them into the name of a profile."""
    if found := _AUSTIN.fullmatch(name):
        pid = int(found["pid"])
        return pid, thread_number(found["tid"], pid), None
    if (found := _THREAD.fullmatch(name)) is None:
        return None, None, None
    tid = found["tid"]
    number = int(tid, 16 if tid.startswith("0x") else 10) if tid else None
    return int(found["pid"]) if found["pid"] else None, number, found["quoted"] or found["name"]


def _lists(text: bytes) -> Iterator[tuple[Array, Array]]:
    """Numbers of a list of lists, many lists at a time, and where each of these ends. Raises DecodeError for anything else."""
    text = text.strip()
    if text.translate(None, _PLAIN):
        decoded = msgspec.json.decode(text, type=list[list[int]])
        values = np.array([one for each in decoded for one in each], np.int64)
        yield values, np.cumsum([len(each) for each in decoded], dtype=np.int64)
        return
    at, end = 1, len(text) - 1
    while at < end:
        stop = text.rfind(b"]", at, min(at + _CHUNK, end))
        stop = stop + 1 if stop >= 0 else text.find(b"]", at, end) + 1
        if not stop:
            return
        yield _numbers(text[at:stop])
        at = stop


def _numbers(text: bytes) -> tuple[Array, Array]:
    """As `_lists`, of a piece with whole lists."""
    letters = np.frombuffer(text, np.uint8)
    opening, closing = np.flatnonzero(letters == ord("[")), np.flatnonzero(letters == ord("]"))
    if len(opening) != len(closing) or (opening[1:] < closing[:-1]).any():
        raise msgspec.DecodeError("lists that do not nest as stacks do")
    values = np.fromstring(text.translate(_NUMBERS), np.int64, sep=" ")
    digit = (letters >= ord("0")) & (letters <= ord("9"))
    # A number ends where a digit is followed by none.
    last = np.flatnonzero(digit & ~np.append(digit[1:], False))
    if len(last) != len(values):
        raise msgspec.DecodeError("numbers that cannot be read")
    return values, np.searchsorted(last, closing)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _line(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 < value < 1 << 31 else None
