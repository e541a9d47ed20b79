"""Where the time of each step went, line by line, and the steps that took much longer than the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.steps.tables import STEP_LEDGER
from traceanalyzer.intervals import Array
from traceanalyzer.vocabulary.lines import LEDGER_LINES, cause_of_line, column, step_words

MIN_JUDGED = 5
"""Among fewer steps a median says little."""
SCORE = 3.5
"""Modified z-score from which a value is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993)."""
FLOOR = 0.01
"""The least spread, as a share of the median: steps of a steady loop differ by that much on their own."""
BLOCK = 1 << 16
"""So many tiles at a time are added up."""
OFTEN = 8
"""After each so many blocks what was read is let go."""
SLOWER = 1.3
"""An outlier matters from so many times the median on."""


def step_ledger(step_stats: pa.Table, ledger_intervals: pa.Table, gaps: pa.Table) -> pa.Table:
    """One row per row of `step_stats`; slow ones say what they have more of.

    Not judged, nor compared with: incomplete steps, and those from the first on that are slow (warm-up).
    """
    tiles, idle = frames.by_device(ledger_intervals), frames.by_device(gaps)
    return frames.stack(STEP_LEDGER, [_device(steps, tiles[key], idle[key]) for key, steps in frames.split(step_stats)])


def _device(steps: pa.Table, tiles: pa.Table, gaps: pa.Table) -> pa.Table:
    start, end = frames.ints(steps, "start_ns"), frames.ints(steps, "end_ns")
    lines = line_times(start, end, tiles)
    length = end - start
    judged = steps["complete"].to_numpy()
    slow = _slow(length, judged)
    # Steps that are slow from the first judged one on are still warming up.
    warm = np.logical_or.accumulate(judged & ~slow)
    slow &= warm
    judged &= warm
    typical = int(np.median(length[judged])) if judged.any() else frames.NULL
    more = lines - np.median(lines[judged], axis=0).astype(np.int64) if judged.any() else np.zeros_like(lines)
    line = np.argmax(more, axis=1)
    rows = np.flatnonzero(slow)
    which = [LEDGER_LINES[i] for i in line[rows]]
    places = _places(start[rows], end[rows], which, gaps)
    reasons = [_reason(*pair) for pair in zip(which, places, strict=True)]
    columns = {
        **{
            c: steps[c]
            for c in ("rank", "device", "index", "name", "method", "start_ns", "end_ns", "complete", "gpu_op_count")
        },
        **{column(name): lines[:, i] for i, name in enumerate(LEDGER_LINES)},
        "typical": frames.numbers(np.full(len(steps), typical)),
        "excess": frames.numbers(np.where(judged, length - typical, frames.NULL)),
        "slow": slow,
        "line": _spread(which, rows, len(steps)),
        "line_excess": frames.numbers(np.where(slow, more[np.arange(len(line)), line], frames.NULL)),
        "place": _spread(places, rows, len(steps)),
        "reason": _spread(reasons, rows, len(steps)),
        "rhythm": _spread([_rhythm(rows)] * len(rows), rows, len(steps)),
    }
    return frames.build(STEP_LEDGER, columns)


def _spread(values: Sequence[str | None], rows: Array, count: int) -> pa.Array:
    """The values at these of `count` rows, null elsewhere."""
    spread = np.full(count, None, object)
    spread[rows] = values
    return pa.array(spread, pa.string())


def line_times(start: Array, end: Array, tiles: pa.Table) -> Array:
    """ns of each interval on each ledger line, by (interval, line); `tiles` are the rows of `ledger_intervals` of one GPU."""
    code, values = frames.short_codes(tiles, "line")
    number = np.array([LEDGER_LINES.index(name) if name in LEDGER_LINES else len(LEDGER_LINES) for name in values])
    low, high = frames.ints(tiles, "start_ns"), frames.ints(tiles, "end_ns")
    times, at = np.unique(np.concatenate((start, end)), return_inverse=True)
    begun = np.searchsorted(low, times, side="right")
    # What lies on each line before each of the times: of the tiles that begin between two of them, all, and so on to the last time.
    width = len(LEDGER_LINES) + 1
    done = np.zeros(len(times) * width, np.int64)
    for first in range(0, int(begun.max(initial=0)), BLOCK):
        # Of a block of tiles the times from the first on behind which one begins.
        tile = slice(first, first + BLOCK)
        here = slice(np.searchsorted(begun, first, side="right"), np.searchsorted(begun, first + BLOCK) + 1)
        key = np.repeat(
            np.arange(len(times))[here] * width, np.diff(np.minimum(begun[here], first + BLOCK), prepend=first)
        )
        key += number.take(code[tile][: len(key)])
        np.add.at(done, key, (high[tile] - low[tile])[: len(key)])
        if first % (OFTEN * BLOCK) == 0:
            forget()
    done = np.cumsum(done.reshape(len(times), width), axis=0)
    # The tile that began last may not be over.
    some = np.flatnonzero(begun)
    last = begun[some] - 1
    done[some, number[code[last]]] -= np.maximum(high[last] - times[some], 0)
    lines: Array = (done[at[len(start) :]] - done[at[: len(start)]])[:, :-1]
    return lines


def _slow(length: Array, judged: frames.Flags) -> frames.Flags:
    """Which of the judged steps are much longer than their median, by the modified z-score."""
    if judged.sum() < MIN_JUDGED:
        return np.zeros(len(length), bool)
    median = float(np.median(length[judged]))
    spread = max(float(np.median(np.abs(length[judged] - median))), FLOOR * median)
    return judged & (0.6745 * (length - median) > SCORE * spread) & (length >= SLOWER * median)


def _rhythm(slow: Array) -> str | None:
    """`every 10th`, where three or more slow steps lie at even distances of at least two; else None."""
    apart = np.unique(np.diff(slow))
    if len(slow) < 3 or len(apart) != 1 or apart[0] < 2:
        return None
    number = int(apart[0])
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"every {number}{ending}"


def _reason(line: str, place: str | None) -> str:
    words = step_words(line)
    return f"{words} in {place}" if place else words


def _places(start: Array, end: Array, lines: list[str], gaps: pa.Table) -> list[str | None]:
    """Where the host was for most of the idle time on the given line in each step; None for other lines and where it is not known.

    Of places that share the most the first in the dictionary counts.
    """
    found: list[str | None] = [None] * len(lines)
    if not lines:
        return found
    forget()
    cause, causes = frames.short_codes(gaps, "cause")
    wanted = np.array(
        [causes.index(name) if (name := cause_of_line(line)) in causes else -1 for line in lines], np.int64
    )
    begin = frames.ints(gaps, "start_ns")
    first, stop = np.searchsorted(begin, start), np.searchsorted(begin, end)
    rows = [
        low + np.flatnonzero(cause[low:high] == code)
        for low, high, code in zip(first.tolist(), stop.tolist(), wanted.tolist(), strict=True)
    ]
    step = np.repeat(np.arange(len(start)), [len(some) for some in rows])
    forget()
    part = gaps.select(["place", "start_ns", "end_ns"]).take(pa.array(np.concatenate(rows)))
    place, places = frames.codes(part, "place")
    known = place < len(places) - 1
    pair, of = np.unique(step[known] * len(places) + place[known], return_inverse=True)
    time = np.bincount(of, frames.duration(part)[known])
    # The places of each step, that of most time last.
    order = np.lexsort((-pair, time, pair // len(places)))
    for at in order[time[order] > 0].tolist():
        found[int(pair[at]) // len(places)] = places[int(pair[at]) % len(places)]
    return found
