"""What one file gave: its rows, spooled while they are read, and handed on in their declared form, block by block.

Nothing here grows with the file, apart from 16 bytes per API call of a file with several processes whose GPU operations name none, and
the rows that may be operations (`candidates`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer import intervals
from traceanalyzer.columns import SMALL_BYTES, compacted
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.rows.candidates import Candidates
from traceanalyzer.ingest.rows.external_sort import Spool, conform
from traceanalyzer.ingest.rows.gpu_rows import WEEK, Extent, Owners, Quarantine
from traceanalyzer.ingest.rows.order import KEYS, Ints
from traceanalyzer.ingest.rows.steps import find_steps, step_marks
from traceanalyzer.model.schema import HEALTH, STEPS
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.vocabulary.health import IMPOSSIBLE_TIMES, NOT_ALL_READ, RANKS_IN_DOUBT, HealthCode
from traceanalyzer.vocabulary.levels import HIGH, LOW, Severity

Blocks = Iterable[pa.Table]

_OF_THE_GPU = ("gpu_ops", "stream_events", "collectives", "overheads", "counters")
"""Tables whose rows may come without a process: they belong to the file's own."""

_OF_THE_HOST = ("api_calls", "host_ranges", "overheads")
"""Tables of what took time on host threads."""

# Rows go to the other thread in batches of at least so many, or so large, since each costs a change of threads; so many may wait there.
_BATCH_ROWS = 1 << 13
_BATCH_BYTES = 2 << 20
_USUAL_ROW_BYTES = 256
_MOST_WAITING = 2
_FARTHEST = (1 << 62) - 1
"""No two times within this lie further apart than an int64 can say."""
_NO_ID = np.iinfo(np.int64).max
"""Stands for a null. Any other number may be an id, and nulls sort last too."""


class Collector:
    """The sink for one file, and then the source of its tables. `folder` is a private one, for spooled rows.

    Sorting and spooling hardly hold the interpreter: they run in a thread of their own, beside the decoding.
    """

    def __init__(self, folder: Path) -> None:
        self._spools = {name: Spool(spec, KEYS.get(name, ()), folder) for name, spec in table_specs().items()}
        self._health: dict[tuple[str, str, str], tuple[int, str | None]] = {}
        self._host = Extent()
        self._calling: set[int] = set()
        self._ownerless = False
        self._maybe: list[pa.Table] = []
        self._impossible: Counter[str] = Counter()
        self._beside = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._held: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._held_rows: Counter[str] = Counter()
        self._held_bytes: Counter[str] = Counter()

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        rows = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        usual = _USUAL_ROW_BYTES * rows.num_rows + SMALL_BYTES
        # With all of what slices lie in: told at once, and mostly little enough.
        size = rows.get_total_buffer_size()
        if size > usual and (size := rows.nbytes) > usual:
            # The dictionaries of an importer may cover the whole file.
            rows = compacted(rows, SMALL_BYTES)
            size = rows.nbytes
        self._held[table].append(rows)
        self._held_rows[table] += rows.num_rows
        self._held_bytes[table] += size
        if self._held_rows[table] >= _BATCH_ROWS or self._held_bytes[table] >= _BATCH_BYTES:
            self._pass_on(table)

    def candidates(self, batch: pa.Table) -> None:
        self._maybe.append(batch)

    def _pass_on(self, table: str) -> None:
        """Hand the rows of one table to the other thread, which may be a few batches behind."""
        while len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft().result()
        rows = pa.concat_tables(self._held.pop(table), promote_options="permissive")
        self._held_rows[table] = self._held_bytes[table] = 0
        self._waiting.append(self._beside.submit(self._add, table, rows))

    def _add(self, table: str, rows: pa.Table) -> None:
        rows, beyond = _within_reach(rows)
        self._impossible["times beyond 146 years were cut to that"] += beyond
        if table in _OF_THE_HOST:
            rows, endless = _without_weeks(rows)
            self._impossible["host calls and ranges of more than a week were given no duration"] += endless
        if table in ("api_calls", "host_ranges"):
            self._host.add(rows)
        if table == "gpu_ops":
            self._ownerless |= "process" not in rows.column_names or rows["process"].null_count > 0
        if table == "api_calls":
            self._calling.update(pc.unique(rows["process"]).drop_null().to_pylist())
        self._spools[table].add(_with_real_ids(rows))

    def health(
        self, code: HealthCode, severity: Severity, message: str, count: int = 1, example: str | None = None
    ) -> None:
        before, first = self._health.get((code, severity, message), (0, None))
        self._health[code, severity, message] = (before + count, first if first is not None else example)

    def tables(self, facts: FileFacts) -> Iterator[tuple[str, Blocks]]:
        """Every table by name, in blocks of sorted rows whose `rank` is null. Each has to be used up before the next is asked for.

        A table that comes again takes the place of what came under its name: `gpu_ops` does where some cannot be, which few files have.
        """
        for name in list(self._held):
            self._pass_on(name)
        while self._waiting:
            self._waiting.popleft().result()
        self._beside.shutdown()
        candidates = self._all_candidates()
        for message, count in self._impossible.items():
            if count:
                self.health(IMPOSSIBLE_TIMES, LOW, message, count)
        # What reading used goes back before writing begins.
        pa.default_memory_pool().release_unused()
        self._ownerless |= candidates is not None
        owners = Owners() if self._ownerless and len(self._calling) > 1 else None
        marks: list[pa.Table] = []
        yield "api_calls", self._api_calls(owners, candidates)
        yield "host_ranges", self._host_ranges(marks)
        if candidates is not None:
            self._settle(candidates)
        quarantine = Quarantine(self._host)
        yield "gpu_ops", self._gpu_ops(owners, facts, quarantine)
        if quarantine.doubts:
            yield "gpu_ops", self._judged(owners, facts, quarantine)
        steps = find_steps(pa.concat_tables(marks)) if marks else pa.table({})
        yield "steps", [conform(steps, STEPS.schema)] if marks else []
        for name in self._spools:
            if name not in ("api_calls", "host_ranges", "gpu_ops", "steps", "health"):
                yield name, (_owned(name, block, facts) for block in self._spools[name].blocks())
        yield "health", [self._health_rows()]

    def _api_calls(self, owners: Owners | None, candidates: Candidates | None) -> Iterator[pa.Table]:
        for block in self._spools["api_calls"].blocks():
            if owners is not None:
                owners.see(block)
            if candidates is not None:
                candidates.see_calls(block)
            yield block

    def _host_ranges(self, marks: list[pa.Table]) -> Iterator[pa.Table]:
        nesting = _Nesting()
        for block in self._spools["host_ranges"].blocks():
            marks.append(compacted(step_marks(block)))
            yield nesting.fill(block)

    def _gpu_ops(self, owners: Owners | None, facts: FileFacts, quarantine: Quarantine) -> Iterator[pa.Table]:
        """The operations with the process that the whole file says they are of, while `quarantine` looks at them."""
        rows = disputed = 0
        for block in self._owned_ops(owners, facts):
            quarantine.see(block)
            rows += block.num_rows
            disputed += owners.disputed(block) if owners is not None else 0
            yield replace_column(block, "quarantined", pc.fill_null(block["quarantined"], False))
        if disputed:
            message = (
                "GPU operations have the correlation ids of calls of several processes, and do not say whose they are: what launched "
                "them cannot be told; analyse the traces that were merged into this file one by one"
            )
            self.health(RANKS_IN_DOUBT, HIGH if 2 * disputed > rows else LOW, message, disputed)

    def _judged(self, owners: Owners | None, facts: FileFacts, quarantine: Quarantine) -> Iterator[pa.Table]:
        """The same, those flagged whose times cannot be."""
        for block in self._owned_ops(owners, facts):
            flags = quarantine.flags(block)
            new = np.flatnonzero(flags & ~pc.fill_null(block["quarantined"], False).to_numpy())
            if len(new):
                message = "GPU operations with impossible times were set aside: they are not on the ledger"
                self.health(IMPOSSIBLE_TIMES, LOW, message, len(new), block["name"][int(new[0])].as_py())
            yield replace_column(block, "quarantined", pa.array(flags))

    def _owned_ops(self, owners: Owners | None, facts: FileFacts) -> Iterator[pa.Table]:
        for block in self._spools["gpu_ops"].blocks():
            if owners is None:
                yield _owned("gpu_ops", block, facts)
            else:
                yield replace_column(block, "process", owners.of(block, facts.process))

    def _all_candidates(self) -> Candidates | None:
        if not self._maybe:
            return None
        rows, beyond = _within_reach(pa.concat_tables(self._maybe, promote_options="permissive").combine_chunks())
        self._impossible["times beyond 146 years were cut to that"] += beyond
        self._maybe = []
        return Candidates(_with_real_ids(rows))

    def _settle(self, candidates: Candidates) -> None:
        """Put those that are work among the operations, which takes one more look at all of these."""
        for block in self._spools["gpu_ops"].blocks(Candidates.OPS):
            candidates.see(block)
        for note, rows in candidates.judge():
            self.health(NOT_ALL_READ, note.severity, note.message, note.count)
            if rows is not None:
                self._spools["gpu_ops"].add(rows.drop_columns(["category", "told"]))

    def _health_rows(self) -> pa.Table:
        rows = [
            {"code": code, "severity": severity, "message": message, "count": count, "example": example}
            for (code, severity, message), (count, example) in sorted(
                self._health.items(), key=lambda item: item[0][::2]
            )
        ]
        return conform(pa.Table.from_pylist(rows), HEALTH.schema)


class _Nesting:
    """Depth and parent of host ranges, thread by thread, over blocks sorted by (process, thread, start, -end).

    A range of no thread lies in no other.
    """

    def __init__(self) -> None:
        self._rows = 0
        # The ranges of the last thread that may hold what comes next: number of the row, start and end.
        self._thread: tuple[int, int] | None = None
        self._open: tuple[Ints, Ints, Ints] = (np.empty(0, np.int64),) * 3

    def fill(self, ranges: pa.Table) -> pa.Table:
        starts, ends = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
        process, thread = (pc.fill_null(ranges[name], _NO_ID).to_numpy() for name in ("process", "thread"))
        depth, parent = np.zeros(len(starts), np.int64), np.full(len(starts), -1)
        change = np.flatnonzero((np.diff(process) != 0) | (np.diff(thread) != 0)) + 1
        for first, stop in pairwise([0, *change.tolist(), len(starts)]):
            if thread[first] != _NO_ID:
                here = slice(first, stop)
                whose = (int(process[first]), int(thread[first]))
                depth[here], parent[here] = self._of_thread(whose, self._rows + first, starts[here], ends[here])
        self._rows += len(starts)
        ranges = replace_column(ranges, "depth", pa.array(depth, pa.int32()))
        return replace_column(ranges, "parent", pa.array(parent, mask=parent < 0))

    def _of_thread(self, thread: tuple[int, int], first_row: int, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Depth and parent (-1 at the top) of ranges that follow each other on one thread."""
        if thread != self._thread:
            self._thread, self._open = thread, (np.empty(0, np.int64),) * 3
        held = len(self._open[0])
        rows = np.concatenate((self._open[0], np.arange(first_row, first_row + len(starts))))
        starts, ends = np.concatenate((self._open[1], starts)), np.concatenate((self._open[2], ends))
        depth, inside = intervals.nesting(starts, ends)
        # An empty range lasts for what starts with it.
        last = np.maximum(ends, starts + 1) > starts[-1]
        self._open = rows[last], starts[last], ends[last]
        return depth[held:], np.where(inside >= 0, rows[inside], -1)[held:]


def _within_reach(rows: pa.Table) -> tuple[pa.Table, int]:
    """The rows with times that can be subtracted from each other, and how many times were cut."""
    beyond = 0
    for name in rows.column_names:
        if name.endswith("_ns"):
            extremes = pc.min_max(rows[name]).as_py()
            if (extremes["min"] or 0) < -_FARTHEST or (extremes["max"] or 0) > _FARTHEST:
                least = pc.max_element_wise(rows[name], -_FARTHEST, skip_nulls=False)
                cut = pc.min_element_wise(least, _FARTHEST, skip_nulls=False)
                beyond += pc.sum(pc.not_equal(cut, rows[name])).as_py()
                rows = replace_column(rows, name, cut)
    return rows, beyond


def _without_weeks(rows: pa.Table) -> tuple[pa.Table, int]:
    """The rows, those that last more than a week without duration, and how many those are: they would cover all that is real."""
    damaged = pc.greater(pc.subtract(rows["end_ns"], rows["start_ns"]), WEEK)
    if not (count := pc.sum(damaged).as_py()):
        return rows, 0
    return replace_column(rows, "end_ns", pc.if_else(damaged, rows["start_ns"], rows["end_ns"])), count


def _with_real_ids(rows: pa.Table) -> pa.Table:
    """No call has the correlation id 0: it says that there is none."""
    if "correlation" not in rows.column_names:
        return rows
    return replace_column(rows, "correlation", pc.if_else(pc.equal(rows["correlation"], 0), None, rows["correlation"]))


def _owned(name: str, rows: pa.Table, facts: FileFacts) -> pa.Table:
    if name not in _OF_THE_GPU or facts.process is None:
        return rows
    return replace_column(rows, "process", pc.fill_null(rows["process"], facts.process))


def replace_column(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with other values in one column."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)
