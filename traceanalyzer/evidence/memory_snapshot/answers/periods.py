"""The steps of a program in a snapshot's history: as it or its trace marks them, else as its allocations repeat.

marks named in the snapshot ──else──▶ steps of the trace ──else──▶ a sequence of allocations that comes again ──else──▶ unknown
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.evidence.memory_snapshot.answers.history import BEFORE, History
from traceanalyzer.intervals import Array
from traceanalyzer.model.markers import is_step_name
from traceanalyzer.records import dataclass

LEAST = 3
"""So often must a sequence of allocations come one after another to be a step."""
MOST_STEPS = 512
"""Of more steps the last ones are looked at."""
_TAIL = 1 << 16
"""So many of the last allocations are searched for a sequence that repeats."""
_CANDIDATES = 256
_OF_A_KIND = 16


@dataclass(frozen=True)
class Periods:
    """Steps one after another: step i lasts from entry `bounds[i]` to before `bounds[i + 1]`. `method` is annotation, trace or
    repetition, None where there are none."""

    bounds: Array
    method: str | None

    @property
    def count(self) -> int:
        return max(len(self.bounds) - 1, 0)

    def step_of(self, entry: int) -> int | None:
        """The step that an entry is in."""
        at = int(np.searchsorted(self.bounds, entry, side="right")) - 1
        return at if 0 <= at < self.count else None


NONE = Periods(np.empty(0, np.int64), None)


def periods(history: History, annotations: pa.Table, steps: pa.Table) -> Periods:
    """The steps of one GPU's history. `annotations` are rows of snapshot_annotations, `steps` of the trace's steps of any rank."""
    found = _marked(history, annotations) or _traced(history, steps) or _repeated(history)
    return Periods(found.bounds[-(MOST_STEPS + 1) :], found.method) if found else NONE


def _marked(history: History, annotations: pa.Table) -> Periods | None:
    mine = (frames.ints(annotations, "rank") == history.key[0]) & (frames.ints(annotations, "device") == history.key[1])
    named = frames.where(annotations, "name", is_step_name) if annotations.num_rows else mine
    start, end = frames.ints(annotations, "start_ns"), frames.ints(annotations, "end_ns")
    rows = np.flatnonzero(mine & named & (start != NULL) & (end != NULL))
    return _between(history, start[rows], end[rows], "annotation")


def _traced(history: History, steps: pa.Table) -> Periods | None:
    if not steps.num_rows:
        return None
    start, end = frames.ints(steps, "start_ns"), frames.ints(steps, "end_ns")
    rows = frames.ints(steps, "rank") == history.key[0]
    return _between(history, start[rows], end[rows], "trace")


def _between(history: History, start: Array, end: Array, method: str) -> Periods | None:
    """Steps from mark to mark. What lies between two belongs to the first; what allocates nothing at either end is no step."""
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    if len(start) < 2 or (start[1:] < end[:-1]).any():
        return None
    bounds = history.entry_at(np.append(start, end[-1]))
    born = np.sort(history.born[history.born != BEFORE])
    used = np.flatnonzero(np.diff(np.searchsorted(born, bounds)))
    if len(used) < 2 or len(used) < (used[-1] - used[0] + 1):
        return None
    return Periods(bounds[used[0] : used[-1] + 2], method)


def _repeated(history: History) -> Periods | None:
    """Steps through the longest sequence of allocations that comes again and again, cut where least is in use.

    What follows the last of them (an evaluation, a checkpoint) may be up to half of all.
    """
    rows = np.flatnonzero(history.born != BEFORE)
    rows = rows[np.argsort(history.born[rows], kind="stable")][-_TAIL:]
    stack = history.stack[rows]
    # Sizes may change from step to step where inputs do; the places of the program do not.
    token = frames.dense(stack) if (stack != NULL).any() else frames.dense(history.requested[rows])
    entry = history.born[rows]
    for share in (1.0, 0.9, 0.75, 0.5):
        count = int(len(token) * share)
        length = period_of(token[:count])
        if length is not None:
            whole = (_covered(token[:count], length) + length) // length
            ends = count - length * np.arange(whole, -1, -1)
            return Periods(_cut(history, entry, ends, length), "repetition")
    return None


def period_of(token: Array) -> int | None:
    """After how many items a sequence repeats up to its end, at least LEAST times in a row; None when it does not.

    Of several lengths that which covers most of the sequence is meant, and of those the shortest: layers repeat within a step.
    """
    best: tuple[int, int] | None = None
    for length in _lengths(token):
        covered = _covered(token, length) + length
        if covered >= LEAST * length and (best is None or covered > best[0]):
            best = covered, length
    return best[1] if best else None


def _lengths(token: Array) -> list[int]:
    """After how many items an item of the last ones came again, as far as each may tell, ascending: a step is as long as it takes for
    as many more of a kind as it holds, which of the rarest are few."""
    order = np.argsort(token, kind="stable")
    found = [np.empty(0, np.int64)]
    for times in range(1, _OF_A_KIND + 1):
        same = token[order[times:]] == token[order[:-times]]
        last = same & np.append(token[order[times:-1]] != token[order[times + 1 :]], True)[: len(same)]
        found.append((order[times:] - order[:-times])[last])
    lengths, often = np.unique(np.concatenate(found), return_counts=True)
    lengths, often = lengths[lengths * LEAST <= len(token)], often[lengths * LEAST <= len(token)]
    return sorted(lengths[np.argsort(-often, kind="stable")[:_CANDIDATES]].tolist())


def _covered(token: Array, length: int) -> int:
    """How many items at the end equal those `length` before them."""
    differs = np.flatnonzero(token[length:] != token[:-length])
    return len(token) - length - (int(differs[-1]) + 1 if len(differs) else 0)


def _cut(history: History, entry: Array, ends: Array, length: int) -> Array:
    """Where a step begins is not told by its sequence; between two steps is least in use, so there it is cut."""
    starts = ends[:-1]
    level = history.allocated.before(entry[starts[:, None] + np.arange(length)])
    phase = int(np.argmin(level[1:].mean(axis=0)))
    cuts = entry[starts + phase]
    if phase:
        return cuts
    return np.append(cuts, entry[ends[-1]] if ends[-1] < len(entry) else history.after)
