"""Which line sets the pace: the chain of stays on lines, and of transfers between them, that ends with a step.

Backwards from the end of a step: what happened last before a line could go on? Its own work, on which the chain stays on the line; or
the end of a part, which ended when its transfer did, which began when the last line issued its part: there the chain goes over to that
line. It ends after as much time as the step took, so that its links add up to the step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.ranks.replay.play import JOINS, MARKS, RETURNS, Lines, Played
from traceanalyzer.ranks.replay.tables import STAYS

_HOST, _WAITED, _GPU = range(3)
"""Places in the state of a line."""


@dataclass(frozen=True)
class _Stay:
    """`instance` is that of a transfer, which lies on the line that waited for it; `NULL` for a stay."""

    line: int
    start: int
    end: int
    instance: int


def stays(lines: Lines, played: Played) -> pa.Table:
    """The chains of all steps but the first, each from its end backwards, as `played`; without two steps that of the window."""
    ends = _step_ends(lines, played)
    step: list[int] = []
    found: list[_Stay] = []
    for begin, row in ends:
        left = int(played.time[row]) - begin
        for one in _chain(lines, played, row):
            length = min(one.end - one.start, left)
            if length > 0:
                step.append(int(lines.step[row]))
                found.append(_Stay(one.line, one.end - length, one.end, one.instance))
            left -= length
            if left <= 0:
                break
    line = np.array([one.line for one in found], np.int64)
    origin = lines.origin[line]
    return frames.build(
        STAYS,
        {"step": frames.numbers(np.array(step, np.int64)), "rank": lines.rank[line], "device": lines.device[line]}
        | {"instance": frames.numbers(np.array([one.instance for one in found], np.int64))}
        | {side: np.array([getattr(one, at) for one in found], np.int64) + origin for side, at in _SIDES},
    )


_SIDES = (("start_ns", "start"), ("end_ns", "end"))


def _step_ends(lines: Lines, played: Played) -> list[tuple[int, int]]:
    """When each step began and the mark of its end, on the line that ends the last one; on all others they are the same steps."""
    marks = np.flatnonzero(lines.kind == MARKS)
    steps = np.bincount(lines.line[marks[lines.step[marks] != NULL]], minlength=len(lines))
    if steps.max() >= 2:
        marks = marks[(lines.step[marks] != NULL) & (steps[lines.line[marks]] == steps.max())]
    else:
        marks = marks[lines.step[marks] == NULL]
    last = marks[np.append(np.flatnonzero(np.diff(lines.line[marks])), len(marks) - 1)]
    # From the end of the last collective on, at which the lines are together.
    part = lines.follows[last]
    tail = played.time[last] - np.where(part >= 0, played.ends[part], 0)
    own = marks[lines.line[marks] == lines.line[last[int(np.argmax(tail))]]].tolist()
    if len(own) == 1:
        return [(0, own[0])]
    return [(int(played.time[before]), row) for before, row in pairwise(own)]


def _chain(lines: Lines, played: Played, mark: int) -> Iterator[_Stay]:
    """From a mark backwards."""
    row, place = mark, _GPU
    end = int(played.time[mark])
    part = int(lines.follows[mark])
    if part >= 0 and played.ends[part] > played.state[mark, _GPU]:
        row, place, end = yield from _over(lines, played, part, end)
    while True:
        line, top = int(lines.line[row]), end
        row, place, part = _back(lines, played, row, place)
        start = int(played.ends[part]) if part >= 0 else 0
        yield _Stay(line, min(start, top), top, NULL)
        if part < 0:
            return
        row, place, end = yield from _over(lines, played, part, start)


def _back(lines: Lines, played: Played, row: int, place: int) -> tuple[int, int, int]:
    """From the state after an event backwards along its line, until the end of a part made it: that part's issue, -1 for the start."""
    first = int(lines.first[lines.line[row]])
    while True:
        kind = lines.kind[row]
        injected = (kind == JOINS and place == _GPU) or (kind == RETURNS and place == _WAITED)
        if injected and played.state[row, place] > played.before[row, place]:
            return row, place, int(lines.part[row])
        if row == first:
            return row, place, -1
        made = lines.work[row, place] + played.state[row - 1]
        # Of what was over at once, the GPU's own work.
        place = 2 - int(np.argmax(made[::-1]))
        row -= 1


def _over(lines: Lines, played: Played, part: int, end: int) -> Generator[_Stay, None, tuple[int, int, int]]:
    """From the end of a part to how its last one came to be issued."""
    while True:
        line = int(lines.line[part])
        length = int(lines.transfer[part])
        yield _Stay(line, end - length, end, int(lines.instance[part]))
        last = int(played.last[lines.meeting[part]]) if not lines.free[part] else part
        issue = last if last >= 0 else part
        begin = int(played.time[issue])
        host = played.state[issue, _HOST] + lines.by_host[issue]
        gpu = played.state[issue, _GPU] + lines.after_gpu[issue]
        if max(host, gpu) >= begin:
            return issue, _GPU if gpu >= begin else _HOST, begin
        part = int(lines.follows[issue])
        end = begin
