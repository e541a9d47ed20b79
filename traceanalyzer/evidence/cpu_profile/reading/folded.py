"""Folded stacks (`a;b;c 12`), as py-spy's raw format, perf's and others' scripts for flame graphs, and Austin's text write them."""

from __future__ import annotations

import re

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.cpu_profile.reading.content import AUSTIN, AUSTIN_LINE, FOLDED, FOLDED_LINE, whole
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.evidence.cpu_profile.reading.rows import TOP, About, Rows
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress

_THREAD = re.compile(r"thread \((?P<tid>\d+|0x[0-9a-fA-F]+)\)(?:: (?P<name>.*))?")
_PROCESS = re.compile(r"process (?P<pid>\d+):.*")
_COMM = re.compile(r"(?P<name>[^/;]+)-(?P<pid>\d+)(?:/(?P<tid>\d+))?")
_SUFFIX = re.compile(r"_\[[kijp]\]$")
_HEAD = re.compile(r"P(?P<pid>\d+);T(?:\d+:)?(?P<tid>(?:0x)?[0-9a-fA-F]+)(?:;(?P<stack>.*))?")
_DAMAGED = "the end of the file is missing"
_MEMORY = "memory"
GARBAGE = "garbage collection"


def read_folded(source: Source, progress: Progress, rows: Rows) -> About:
    """Stacks with how often each was seen, and no time at all. Raises InputError where there is none."""
    about = About(FOLDED, "", unit="samples", ordered=False)
    lines, _ = _lines(source, progress, about)
    frames: dict[str, int] = {}
    spy = False
    for line in lines:
        found = FOLDED_LINE.fullmatch(line)
        if not found:
            if line.strip() and not line.startswith(b"#"):
                about.skip(line.decode("utf-8", "replace"))
            continue
        parts = found["stack"].decode("utf-8", "replace").split(";")
        pid = tid = name = None
        if process := _PROCESS.fullmatch(parts[0]):
            pid, spy = int(process["pid"]), True
            parts = parts[1:]
        if parts and (thread := _THREAD.fullmatch(parts[0])):
            tid, name, spy = int(thread["tid"], 0), thread["name"], True
            parts = parts[1:]
        elif parts and (comm := _COMM.fullmatch(parts[0])):
            pid, name = int(comm["pid"]), comm["name"]
            tid = int(comm["tid"]) if comm["tid"] else None
            parts = parts[1:]
        node = TOP
        for part in parts:
            number = frames.get(part)
            if number is None:
                number = frames[part] = rows.frame(frame_of(_SUFFIX.sub("", part)))
            node = rows.within(node, number)
        rows.sample(rows.thread(pid, tid, name), None, round(float(found["count"])), node)
    about.producer = "py-spy" if spy or any(" (" in text for text in list(frames)[:50]) else "folded stacks"
    return about


def read_austin(source: Source, progress: Progress, rows: Rows) -> About:
    """One line a sample, with what passed since the one before of its thread in us. Raises InputError for a profile of memory."""
    about = About(AUSTIN, "Austin", timed=True)
    lines, _ = _lines(source, progress, about)
    metadata: dict[str, str] = {}
    frames: dict[str, int] = {}
    clock = Clocks()
    for line in lines:
        if line.startswith(b"# "):
            key, _, value = line[2:].decode("utf-8", "replace").partition(":")
            metadata[key.strip()] = value.strip()
            continue
        if not AUSTIN_LINE.fullmatch(line):
            if line.strip():
                about.skip(line.decode("utf-8", "replace"))
            continue
        text, _, metric = line.decode("utf-8", "replace").rstrip().rpartition(" ")
        found = _HEAD.fullmatch(text)
        assert found is not None
        node = TOP
        for part in (found["stack"] or "").split(";"):
            if part and (number := _austin_frame(part, frames, rows)) is not None:
                node = rows.within(node, number)
        pid = int(found["pid"])
        thread = rows.thread(pid, thread_number(found["tid"], pid), None)
        first = int(metric.split(",")[0])
        if first < 0:
            about.skip("a negative time")
            continue
        at = clock.passed(thread, first * 1000)
        rows.sample(thread, at, first * 1000, node)
    told(metadata, about, source)
    return about


def told(metadata: dict[str, str], about: About, source: Source) -> None:
    """What Austin says of its recording. Raises InputError for a profile of memory."""
    if metadata.get("mode") == _MEMORY:
        raise InputError(f"{source.path}: a profile of memory by Austin, not of time; record one without -m")
    version = next((metadata[key] for key in ("austin", "version") if metadata.get(key)), "")
    about.producer = f"Austin {version[:40]}".strip()
    interval = metadata.get("interval", "")
    about.period_ns = int(interval) * 1000 if interval.isdigit() and len(interval) < 12 else None
    about.idle_kept = {"wall": True, "full": True, "cpu": False}.get(metadata.get("mode", ""))


class Clocks:
    """What time it is on each thread, of which only what passed between its samples is written, in ns from the first sample on."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}
        self._latest = 0

    def passed(self, thread: int, ns: int) -> int:
        """Let so much pass on a thread; the time at which that began."""
        start = self._at.get(thread)
        if start is None:
            start = max(self._latest - ns, 0)
        self._at[thread] = start + ns
        self._latest = max(self._latest, start + ns)
        return start


def thread_number(text: str, pid: int) -> int | None:
    """The thread, which some versions write as a hexadecimal number."""
    found = [int(text, base) for base in (10, 16) if base == 16 or text.isdigit()]
    return pid if pid in found else found[-1] if not text.isdigit() else found[0]


def _austin_frame(part: str, frames: dict[str, int], rows: Rows) -> int | None:
    if part in frames:
        return frames[part]
    if part == ":GC:":
        frame = frame_of(GARBAGE)
    elif part == ":INVALID:":
        return None
    else:
        file, name, line = part.rsplit(":", 2) if part.count(":") >= 2 else (None, part, "")
        frame = frame_of(name, file or None, int(line) if line.isdigit() and len(line) < 10 else None)
    frames[part] = rows.frame(frame)
    return frames[part]


def _lines(source: Source, progress: Progress, about: About) -> tuple[list[bytes], str | None]:
    data, damage = whole(source, progress)
    lines = [line.rstrip(b"\r") for line in data.split(b"\n")]
    if damage:
        about.skip(damage)
    # A profiler that is stopped may leave half a line.
    elif lines and lines[-1].strip() and not lines[-1].startswith(b"#") and not FOLDED_LINE.fullmatch(lines[-1]):
        about.skip(_DAMAGED)
        lines.pop()
    return lines, damage
