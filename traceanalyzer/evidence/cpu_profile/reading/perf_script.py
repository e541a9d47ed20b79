"""What `perf script` prints: a line a sample, then its stack from the innermost function to the outermost."""

from __future__ import annotations

import re
from collections import Counter

from traceanalyzer.evidence.cpu_profile.reading.content import PERF, PERF_FRAME, PERF_HEADER, whole
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of
from traceanalyzer.evidence.cpu_profile.reading.rows import About, Rows
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress
from traceanalyzer.model.trace import EPOCH_NS

_CLOCK = re.compile(r"(?:cpu|task)-clock(?::.*)?")
_TIME = re.compile(r"(?:(?:cpu|task)-clock|(?:\w+/)?(?:cpu-)?cycles/?)(?::.*)?")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")
_MODULE = re.compile(r"^.*/")
_UNKNOWN = "[unknown]"


def read(source: Source, progress: Progress, rows: Rows) -> About:
    """Samples of the event that counts time; those of other events are counted and left out."""
    about = About(PERF, "Linux perf")
    data, damage = whole(source, progress)
    if damage:
        about.skip(damage)
    frames: dict[bytes, int | None] = {}
    samples: list[tuple[str, int, int | None, int, int]] = []
    header: tuple[str, int, int | None, int] | None = None
    stack: list[int] = []
    clocks: Counter[str] = Counter()

    def done() -> None:
        if header is not None:
            samples.append((*header, rows.stack(reversed(stack))))
        stack.clear()

    for line in data.split(b"\n"):
        if not line.strip():
            done()
            header = None
        elif header is not None and (known := frames.get(line)) is not None:
            stack.append(known)
        elif line[:1] == b"#":
            continue
        elif line[:1] in b" \t" and header is not None and PERF_FRAME.fullmatch(line):
            _add(line, frames, rows, stack)
        elif found := PERF_HEADER.fullmatch(line.strip()):
            done()
            header = _header(found, rows)
            clocks[header[0]] += 1
            if rest := found["rest"].strip():
                _add(b" " + rest, frames, rows, stack)
        else:
            about.skip(line.decode("utf-8", "replace"))
    done()
    _write(samples, clocks, rows, about)
    return about


def _header(found: re.Match[bytes], rows: Rows) -> tuple[str, int, int | None, int]:
    """Event, thread, time in ns and period."""
    tid = int(found["tid"])
    pid = int(found["pid"]) if found["pid"] else None
    thread = rows.thread(pid, tid, found["comm"].decode("utf-8", "replace").strip()[:64])
    at = None
    if found["time"]:
        seconds, _, fraction = found["time"].partition(b".")
        at = int(seconds[-10:]) * 10**9 + int(fraction[:9].ljust(9, b"0"))
    return found["event"].decode("utf-8", "replace"), thread, at, int((found["period"] or b"0")[-18:])


def _add(line: bytes, frames: dict[bytes, int | None], rows: Rows, stack: list[int]) -> None:
    """Add the frame of a line; the same function at another address is the same frame."""
    number = frames.get(line)
    if number is None and line not in frames:
        found = PERF_FRAME.fullmatch(line)
        if found is not None:
            symbol = _OFFSET.sub("", found["symbol"].decode("utf-8", "replace").strip())
            module = _MODULE.sub("", (found["module"] or b"").decode("utf-8", "replace")).strip("[]") or None
            known = module if module != "unknown" else None
            name = symbol if symbol != _UNKNOWN else f"[{known or 'unknown'}]"
            number = rows.frame(frame_of(name, None if name.startswith("py::") else known))
        if len(frames) < 1 << 20:
            frames[line] = number
    if number is not None:
        stack.append(number)


def _write(
    samples: list[tuple[str, int, int | None, int, int]], clocks: Counter[str], rows: Rows, about: About
) -> None:
    events = [event for event in clocks if _TIME.fullmatch(event)] or list(clocks)
    taken = max(events, key=lambda event: clocks[event], default=None)
    kept = [one for one in samples if one[0] == taken]
    if len(kept) < len(samples):
        about.notes.append(("samples of other events than the one that counts time", len(samples) - len(kept)))
    in_ns = taken is not None and _CLOCK.fullmatch(taken) is not None and all(period > 0 for *_, period, _ in kept)
    about.unit = "ns" if in_ns else "samples"
    about.timed = bool(kept) and all(at is not None for _, _, at, _, _ in kept)
    about.idle_kept = False
    for _, thread, at, period, stack in kept:
        rows.sample(thread, at if about.timed else None, period if in_ns else 1, stack)
    if in_ns and kept:
        about.period_ns = sorted(period for *_, period, _ in kept)[len(kept) // 2]
    if about.timed and all(at >= EPOCH_NS for _, _, at, _, _ in kept if at is not None):
        about.clock_base_ns = 0
