"""One GPU's history as arrays: blocks from entry to entry, what is in use and what is reserved after each.

An entry is the place of an event in the history; a block lives from its first entry on and no more from its last one on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags, Key
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

BEFORE = -1
"""The entry of what was there when the history begins."""
GOT, GIVEN_BACK = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")
OUT_OF_MEMORY = "oom"


@dataclass(frozen=True)
class Curve:
    """A level in bytes: `level[i]` holds from `entry[i]` on, which is BEFORE for the first; entries ascend, each once."""

    entry: Array
    level: Array

    def before(self, entries: Array) -> Array:
        """The level just before each entry."""
        found: Array = self.level[np.maximum(np.searchsorted(self.entry, entries, side="left") - 1, 0)]
        return found

    def at(self, entries: Array) -> Array:
        """The level from each entry on, until the next."""
        found: Array = self.level[np.maximum(np.searchsorted(self.entry, entries, side="right") - 1, 0)]
        return found

    @property
    def peak(self) -> int:
        return int(self.level.max())

    @cached_property
    def peak_at(self) -> int:
        """Index of the highest level; of equals the last, when the program has settled in."""
        return len(self.level) - 1 - int(np.argmax(self.level[::-1]))


def curve(entries: Array, deltas: Array, begin: int) -> Curve:
    """The level that starts at `begin` and changes by each delta at its entry."""
    order = np.argsort(entries, kind="stable")
    entries, level = entries[order], begin + np.cumsum(deltas[order])
    last = np.append(np.diff(entries) != 0, True) if len(entries) else np.empty(0, bool)
    return Curve(np.append(BEFORE, entries[last]), np.append(begin, level[last]).astype(np.int64))


@dataclass(frozen=True)
class History:
    """The blocks of one GPU and what it got from the driver. `blocks` are rows of snapshot_blocks, `events` of snapshot_events, both of
    this GPU; `totals` is its row of snapshot_totals."""

    key: Key
    blocks: pa.Table
    events: pa.Table
    totals: dict[str, object]

    @cached_property
    def size(self) -> Array:
        return frames.ints(self.blocks, "bytes")

    @cached_property
    def requested(self) -> Array:
        requested = frames.ints(self.blocks, "requested_bytes")
        return np.where(requested == NULL, self.size, requested)

    @cached_property
    def stack(self) -> Array:
        return frames.ints(self.blocks, "stack")

    @cached_property
    def born(self) -> Array:
        """The entry that handed each block out, BEFORE for what was there before."""
        entry = frames.ints(self.blocks, "start_entry")
        return np.where(entry == NULL, BEFORE, entry)

    @cached_property
    def _clock(self) -> tuple[Array, Array]:
        """Entries whose time is known, ascending, and those times."""
        own = ("start", "free_requested", "end")
        entry = np.concatenate(
            [*(frames.ints(self.blocks, f"{one}_entry") for one in own), frames.ints(self.events, "entry")]
        )
        time = np.concatenate(
            [*(frames.ints(self.blocks, f"{one}_ns") for one in own), frames.ints(self.events, "time_ns")]
        )
        known = (entry >= 0) & (time != NULL)
        entry, first = np.unique(entry[known], return_index=True)
        return entry, np.maximum.accumulate(time[known][first]) if len(entry) else time[known]

    @cached_property
    def released(self) -> Array:
        """The entry with which the program gave each block up, though a stream may still have used it.

        BEFORE where that was before the history, one after the last where it holds the block at the snapshot.
        """
        given_up, end = frames.ints(self.blocks, "free_requested_entry"), frames.ints(self.blocks, "end_entry")
        entry = np.where(given_up == NULL, end, given_up)
        return np.where(entry == NULL, self.after, entry)

    @cached_property
    def after(self) -> int:
        """The entry after the last."""
        count = self.totals.get("entries")
        last = int(self._clock[0][-1]) + 1 if len(self._clock[0]) else 0
        return max(last, count if isinstance(count, int) else 0)

    @cached_property
    def allocated(self) -> Curve:
        """What the program holds."""
        here = (self.born == BEFORE) & (self.released != BEFORE)
        born, ended = self.born != BEFORE, (self.released < self.after) & (self.released != BEFORE)
        entries = np.concatenate((self.born[born], self.released[ended]))
        deltas = np.concatenate((self.size[born], -self.size[ended]))
        return curve(entries, deltas, int(self.size[here].sum()))

    @cached_property
    def driver_events(self) -> pa.Table:
        """What was got from the driver and given back to it."""
        return self.events.filter(pa.array(frames.equals(self.events, "kind", *GOT, *GIVEN_BACK)))

    @cached_property
    def reserved(self) -> Curve:
        """What was got from the driver and not given back."""
        events = self.driver_events
        size = np.where(frames.equals(events, "kind", *GIVEN_BACK), -1, 1) * frames.ints(events, "bytes")
        # Without a history what is reserved at the snapshot is all that is known.
        begin = self.totals.get("reserved_start_bytes" if self.has_history else "reserved_bytes")
        return curve(frames.ints(events, "entry"), size, begin if isinstance(begin, int) else 0)

    def alive(self, entry: int) -> Flags:
        """Which blocks the program holds once this entry has happened."""
        alive: Flags = (self.born <= entry) & (self.released > entry)
        return alive

    def entry_at(self, times: Array) -> Array:
        """The first entry at or after each time."""
        entry, time = self._clock
        return np.append(entry, self.after)[np.searchsorted(time, times, side="left")]

    def time_at(self, entries: Array) -> Array:
        """When each entry happened, as far as known: the time of the last one at or before it; the first one's for those before."""
        entry, time = self._clock
        if not len(entry):
            return np.full(len(entries), 0)
        return time[np.maximum(np.searchsorted(entry, entries, side="right") - 1, 0)]

    @property
    def has_history(self) -> bool:
        return bool(self.totals.get("entries"))

    @property
    def end_ns(self) -> int:
        return int(self._clock[1][-1]) if len(self._clock[1]) else 0


def histories(blocks: pa.Table, events: pa.Table, totals: pa.Table) -> Iterator[History]:
    """One for each GPU of the snapshots, in the order of `totals`."""
    of_blocks, of_events = frames.by_device(_sorted(blocks)), frames.by_device(_sorted(events))
    for row in totals.to_pylist():
        key = (row["rank"], row["device"])
        yield History(key, of_blocks[key], of_events[key], row)


def _sorted(table: pa.Table) -> pa.Table:
    order = np.lexsort((frames.ints(table, "device"), frames.ints(table, "rank")))
    return table if (np.diff(order) == 1).all() else table.take(pa.array(order))
