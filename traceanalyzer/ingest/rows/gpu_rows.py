"""What only a whole file can say of its GPU operations: whose they are, and which of their times cannot be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import NULL, ascending, ints

_SECOND = 1_000_000_000
WEEK = 7 * 86_400 * _SECOND
# Importers clip what an int64 cannot hold to this; it is the year 2043, in ns since 1970.
_FARTHEST = np.iinfo(np.int64).max // 4
# One stream runs one operation after another; a few may start early (programmatic dependent launch), a crowd cannot.
_CROWD = 8
_SHORTEST_SWALLOWER = 1_000_000
_BUCKET_BITS = 43  # 2.4 hours

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Owners:
    """Whose GPU operations are: those of a file that names no process for them, but has API calls of several."""

    def __init__(self) -> None:
        self._pairs: list[pa.Table] = []
        self._known: tuple[Ints, Ints] | None = None

    def see(self, calls: pa.Table) -> None:
        """Take rows of `api_calls`. Keeps 16 bytes of each."""
        self._pairs.append(calls.select(["correlation", "process"]).drop_null())

    def of(self, ops: pa.Table, default: int | None) -> pa.Array:
        """The process of each operation: the stated one, else the one with a call of the same correlation id, else `default`.

        Null where several processes have such a call.
        """
        disputed, process = self._calling(ops)
        default_id = NULL if default is None else default
        found = np.where(disputed, NULL, np.where(process == NULL, default_id, process))
        return pc.coalesce(ops["process"].combine_chunks(), pa.array(found, mask=found == NULL))

    def disputed(self, ops: pa.Table) -> int:
        """How many operations name no process and have the correlation id of calls of several."""
        return int((self._calling(ops)[0] & ops["process"].is_null().to_numpy()).sum())

    def _calling(self, ops: pa.Table) -> tuple[Flags, Ints]:
        """For each operation whether several processes have a call of its correlation id, and the only one that has, else `NULL`."""
        known, process = self._callers()
        wanted = ints(ops, "correlation")
        if not len(known):
            return np.zeros(len(wanted), bool), np.full(len(wanted), NULL)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        hit = known[at] == wanted
        return hit & (process[at] == NULL), np.where(hit, process[at], NULL)

    def _callers(self) -> tuple[Ints, Ints]:
        """Correlation ids, sorted, and the only process that has each, `NULL` where several have."""
        if self._known is None:
            pairs = pa.concat_tables(self._pairs).group_by(["correlation", "process"]).aggregate([])
            correlation, process = ints(pairs, "correlation"), ints(pairs, "process")
            known, first, count = np.unique(correlation, return_index=True, return_counts=True)
            self._known, self._pairs = (known, np.where(count == 1, process[first], NULL)), []
        return self._known


class Extent:
    """First and last time of events, apart from those that lie far from the rest. Takes them in any order; keeps a few sums."""

    def __init__(self) -> None:
        self._buckets: dict[
            int, tuple[int, int, int]
        ] = {}  # count, first start and last end of the events that start in it

    def add(self, events: pa.Table) -> None:
        """Take rows with `start_ns` and `end_ns`."""
        start, end = ints(events, "start_ns"), ints(events, "end_ns")
        bucket = start >> _BUCKET_BITS
        for one in ascending(bucket).tolist():
            here = bucket == one
            sound = here & (end - start <= WEEK)
            count, first, last = self._buckets.get(one, (0, _FARTHEST, -_FARTHEST))
            self._buckets[one] = (
                count + int(here.sum()),
                min(first, int(start[sound].min(initial=_FARTHEST))),
                max(last, int(end[sound].max(initial=-_FARTHEST))),
            )

    def span(self) -> tuple[int, int] | None:
        """(first, last) in ns over the events within a week of the middle one; None when there are none."""
        if not self._buckets:
            return None
        near = self._near()
        return min(first for _, first, _ in near), max(last for _, _, last in near)

    @property
    def scattered(self) -> bool:
        """Whether there are events further than that from the middle one."""
        return bool(self._buckets) and len(self._near()) < len(self._buckets)

    def _near(self) -> list[tuple[int, int, int]]:
        buckets = sorted(self._buckets)
        counts = np.cumsum([self._buckets[one][0] for one in buckets])
        middle = buckets[int(np.searchsorted(counts, counts[-1] // 2, side="right"))]
        return [self._buckets[one] for one in buckets if abs(one - middle) <= WEEK >> _BUCKET_BITS]


class Quarantine:
    """Which GPU operations cannot have had the times they were recorded with.

    Goes over the blocks of `gpu_ops`, sorted by device and start: once to `see` them all, then, where it `doubts` any, for the
    `flags` of each.
    """

    _STREAM = ("stream", "context", "device", "process")
    _COLUMNS = (*_STREAM, "start_ns", "end_ns", "correlation")

    def __init__(self, host: Extent) -> None:
        self._host, self._gpu = host.span(), Extent()
        self._rows = self._outside_rows = self._judged = 0
        self._impossible_alone = False
        self._swallowing: list[Ints] = []
        self._tail: pa.Table | None = None

    def see(self, ops: pa.Table) -> None:
        """First time over: every block in order."""
        self._see_crowds(ops)
        self._impossible_alone |= bool(self._alone(ops).any())
        if self._host is None:
            self._gpu.add(ops)
        else:
            self._outside_rows += int(self._outside(ops, self._host).sum())
        self._rows += ops.num_rows

    @property
    def doubts(self) -> bool:
        """Whether any operation that was seen cannot be, beyond those that the importer judged, or may turn out so."""
        crowds = any(map(len, self._swallowing))
        return self._impossible_alone or self._outside_rows > 0 or crowds or self._gpu.scattered

    def flags(self, ops: pa.Table) -> Flags:
        """Second time over: what the importer judged, and of the rest what cannot be. True is impossible."""
        given, open_ = pc.fill_null(ops["quarantined"], False).to_numpy(), ops["quarantined"].is_null().to_numpy()
        numbers = np.concatenate(self._swallowing) if self._swallowing else np.empty(0, np.int64)
        rows = np.arange(self._judged, self._judged + ops.num_rows)
        self._judged += ops.num_rows
        return given | np.isin(rows, numbers) | (open_ & self._impossible(ops))  # type: ignore[no-any-return]

    def _impossible(self, ops: pa.Table) -> Flags:
        """Operations never recorded, longer than the recording or far outside of it.

        Generous: work that began some time before the recording is sound. Where most operations lie outside, the host's records
        are no yardstick and only what cannot be in itself is flagged.
        """
        flags = self._alone(ops)
        if self._host is not None:
            return flags | self._outside(ops, self._host) if 2 * self._outside_rows <= self._rows else flags
        span = self._gpu.span()
        return flags if span is None else flags | _far(ints(ops, "start_ns"), ints(ops, "end_ns"), span, WEEK)

    def _alone(self, ops: pa.Table) -> Flags:
        """Operations that cannot be, whatever the others are. A start of exactly 0, long before the host's records, is one that was
        never recorded."""
        start, end = ints(ops, "start_ns"), ints(ops, "end_ns")
        zero = (start == 0) & ((end == 0) | (self._host is not None and self._host[0] > _SECOND))
        return np.asarray((end < start) | (end - start > WEEK) | zero | (np.abs(start) >= _FARTHEST))

    def _outside(self, ops: pa.Table, host: tuple[int, int]) -> Flags:
        # A second of grace, because the host's and the GPU's records need not stop together.
        return _far(ints(ops, "start_ns"), ints(ops, "end_ns"), host, host[1] - host[0] + _SECOND)

    def _see_crowds(self, ops: pa.Table) -> None:
        """Note the operations whose recorded time holds many later ones of their own stream: their end is damaged.

        The last few of each stream can be told only with the next block, and go there, where any is long enough.
        """
        if self._tail is None and not _are_long(ops).any():
            return
        rows = pa.table(
            {
                **{name: ops[name].cast(pa.int64()) for name in self._COLUMNS},
                "row": np.arange(self._rows, self._rows + ops.num_rows),
            }
        )
        if self._tail is not None:
            rows = pa.concat_tables([self._tail, rows])
        start, end, correlation = (ints(rows, name) for name in ("start_ns", "end_ns", "correlation"))
        keys = [ints(rows, name) for name in self._STREAM]
        order = np.lexsort((start, *keys))
        one, other = order[:-_CROWD], order[_CROWD:]
        same = np.logical_and.reduce([key[one] == key[other] for key in keys])
        holds = (start[other] > start[one]) & (end[other] <= end[one]) & _are_long(rows)[one]
        known = keys[0][one] != NULL
        self._swallowing.append(ints(rows, "row")[one[same & known & holds & (correlation[one] != correlation[other])]])
        undecided = np.ones(rows.num_rows, bool)
        undecided[one[same]] = False
        left = rows.filter(pa.array(undecided))
        self._tail = left if _are_long(left).any() else None


def _are_long(ops: pa.Table) -> Flags:
    """Which operations take long enough to hold many others."""
    return np.asarray(ints(ops, "end_ns") - ints(ops, "start_ns") > _SHORTEST_SWALLOWER)


def _far(start: Ints, end: Ints, span: tuple[int, int], session: int) -> Flags:
    first, last = span
    return np.asarray((end - start > session) | (start < first - session) | (start > last + session))
