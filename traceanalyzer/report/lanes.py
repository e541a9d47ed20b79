"""The lanes of the timeline: for each GPU its ledger, steps and streams; for each launching thread its calls and ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.report.columns import MISSING, Ints, Names, encoded, integers, lookup, row_groups
from traceanalyzer.report.palette import API_CLASS_KEYS, BY_KEY, CODES, GPU_OP_KEYS, RANGE_KEYS
from traceanalyzer.report.slices import Slices, make_slices, pack

STREAM_ROWS = 4
CALL_ROWS = 2
RANGE_ROWS = 8
THREADS_PER_PROCESS = 8
RANGE_LANES = (("annotations", ("annotation", "nvtx")), ("operators", ("operator",)), ("Python", ("python",)))

RankName = Callable[[int], str]


class TimelineTables(Protocol):
    """Where the tables come from: event and derived tables by their declared names; KeyError for one that is not there."""

    def table(self, name: str) -> pa.Table: ...


@dataclass
class Lane:
    """One labelled lane of rows. A tiled lane covers its whole window and is drawn as shares when zoomed out."""

    label: str
    rows: list[Slices]
    tiled: bool = False


@dataclass
class Group:
    """The lanes of one GPU (`device` set) or of one host thread (`device` None); `window` in the file's own ns."""

    label: str
    rank: int
    device: int | None
    window: tuple[int, int]
    lanes: list[Lane] = field(default_factory=list)


def table_or_none(tables: TimelineTables, name: str) -> pa.Table | None:
    """A table with rows, or None."""
    try:
        table = tables.table(name)
    except KeyError:
        return None
    return table if table.num_rows else None


class LaneBuilder:
    """Reads the tables once and collects groups, names and notes about what was left out."""

    def __init__(self, tables: TimelineTables, rank_name: RankName) -> None:
        self.names = Names()
        self.notes: list[str] = []
        self.groups: list[Group] = []
        self._tables = tables
        self._rank_name = rank_name

    def build(self) -> list[Group]:
        """All groups: rank by rank, first its GPUs, then its launching threads."""
        devices = self._device_groups()
        threads = self._thread_groups()
        ranks = sorted({group.rank for group in (*devices, *threads)})
        self.groups = [group for rank in ranks for group in (*devices, *threads) if group.rank == rank]
        return self.groups

    def _device_groups(self) -> list[Group]:
        groups: dict[tuple[int, int], Group] = {}

        def group_of(rank: int, device: int) -> Group:
            label = f"{self._rank_name(rank)}GPU {device}"
            return groups.setdefault((rank, device), Group(label, rank, device, (0, 0)))

        for (rank, device), lane in self._ledger_lanes():
            group_of(rank, device).lanes.append(lane)
        streams = self._stream_lanes()
        shown = groups.keys() | {key for key, _ in streams}
        for (rank, device), lane in self._step_lanes():
            if (rank, device) in shown:  # of many ranks the steps are known, but not the events
                group_of(rank, device).lanes.append(lane)
        for (rank, device), lane in streams:
            group_of(rank, device).lanes.append(lane)
        for group in groups.values():
            group.window = _extent(group.lanes)
        return [groups[key] for key in sorted(groups)]

    def _ledger_lanes(self) -> list[tuple[tuple[int, int], Lane]]:
        table = table_or_none(self._tables, "ledger_intervals")
        if table is None:
            return []
        index, lines = encoded(table, "line")
        colour = lookup(lines, CODES, CODES["idle.unattributed"])[index]
        labels = [BY_KEY[line].label if line in BY_KEY else line for line in lines]
        name = np.array([*(self.names.id(label) for label in labels), 0], dtype=np.uint32)[index]
        name = self._name_gaps(table, name)
        lanes = []
        for (rank, device), rows in row_groups(table, ("rank", "device")):
            packed, _ = pack(_slices(table, rows, name, colour), 1)
            lanes.append(((rank, device), Lane("where time went", packed, tiled=True)))
        return lanes

    def _name_gaps(self, intervals: pa.Table, name: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Idle intervals that begin with a gap row of a known range say what the host was doing."""
        gaps = table_or_none(self._tables, "gaps")
        if gaps is None:
            return name
        gaps = gaps.filter(pc.is_valid(gaps["range_name"]))
        index, ranges = encoded(gaps, "range_name")
        ids = np.array([*(self.names.id(text) for text in ranges), 0], dtype=np.uint32)[index]
        by_device = dict(row_groups(gaps, ("rank", "device")))
        starts, gap_starts = integers(intervals, "start_ns"), integers(gaps, "start_ns")
        is_idle = pc.starts_with(intervals["line"].cast(pa.string()), "idle.").to_numpy().astype(bool)
        name, combined = name.copy(), name.astype(np.int64)
        for key, rows in row_groups(intervals, ("rank", "device")):
            found = by_device.get(key)
            if found is None:
                continue
            ordered = found[np.argsort(gap_starts[found], kind="stable")]
            position = np.searchsorted(gap_starts[ordered], starts[rows])
            hit = ordered[np.minimum(position, len(ordered) - 1)]
            match = (gap_starts[hit] == starts[rows]) & is_idle[rows]
            combined[rows[match]] = name[rows[match]] + ((ids[hit[match]].astype(np.int64) + 1) << 32)
        return self._combine(combined)

    def _combine(self, combined: Ints) -> NDArray[np.uint32]:
        """Numbers of the joined names "cause · range" for pairs packed as (range + 1) << 32 | cause."""
        every = self.names.all()
        distinct, inverse = np.unique(combined, return_inverse=True)
        ids = []
        for pair in distinct.tolist():
            cause, span = every[pair & 0xFFFFFFFF], pair >> 32
            ids.append(self.names.id(f"{cause} · {every[span - 1]}" if span else cause))
        joined: NDArray[np.uint32] = np.array(ids, dtype=np.uint32)[inverse]
        return joined

    def _step_lanes(self) -> list[tuple[tuple[int, int], Lane]]:
        table = table_or_none(self._tables, "step_stats")
        if table is None:
            return []
        name = self.names.column(table, "name")
        colour = np.full(table.num_rows, CODES["annotation"], dtype=np.uint8)
        lanes = []
        for (rank, device), rows in row_groups(table, ("rank", "device")):
            packed, _ = pack(_slices(table, rows, name, colour), 2)
            lanes.append(((rank, device), Lane("steps", packed)))
        return lanes

    def _stream_lanes(self) -> list[tuple[tuple[int, int], Lane]]:
        table = table_or_none(self._tables, "gpu_ops")
        if table is None:
            return []
        bad = pc.fill_null(table["quarantined"], False)
        dropped = int(pc.sum(bad).as_py() or 0)
        if dropped:
            self.notes.append(f"{dropped:,} GPU operations with impossible times are not shown.")
            table = table.filter(pc.invert(bad))
        kind, kinds = encoded(table, "kind")
        work, works = encoded(table, "class")
        colour = lookup(kinds, {key: CODES[line] for key, line in GPU_OP_KEYS.items()}, CODES["compute"])[kind]
        is_communication = lookup(works, {"communication": 1}, 0)[work] == 1
        colour[is_communication] = CODES["exposed_communication"]
        name = self.names.column(table, "name")
        lanes, crowded = [], 0
        keys = list(row_groups(table, ("rank", "device", "process", "context", "stream")))
        ambiguous = len({(k[0], k[1], k[4]) for k, _ in keys}) < len(keys)  # one stream number in two contexts
        for (rank, device, process, context, stream), rows in keys:
            packed, left = pack(_slices(table, rows, name, colour), STREAM_ROWS)
            crowded += left
            label = "stream ?" if stream == MISSING else f"stream {stream}"
            if ambiguous:
                label += f" · process {process} context {context}"
            lanes.append(((rank, device), Lane(label, packed)))
        if crowded:
            self.notes.append(
                f"{crowded:,} operations that overlap more than {STREAM_ROWS} deep on one stream are not shown."
            )
        return lanes

    def _thread_groups(self) -> list[Group]:
        groups, crowded = [], 0
        calls, ranges = self._call_lanes(), self._range_lanes()
        titles = self._thread_titles()
        for key in self._launching_threads():
            lanes = [lane for lane, _ in (*ranges.get(key, []), *calls.get(key, []))]
            crowded += sum(left for _, left in ranges.get(key, []))
            if lanes:
                rank, _, thread = key
                name = titles.get(key) or f"thread {thread}"
                groups.append(Group(f"{self._rank_name(rank)}{name}", rank, None, _extent(lanes), lanes))
        groups.sort(key=lambda group: group.window[0])  # the thread that starts the work before those that help it
        if crowded:
            self.notes.append(f"{crowded:,} host ranges nested deeper than {RANGE_ROWS} are not shown.")
        return groups

    def _launching_threads(self) -> list[tuple[int, int, int]]:
        """Threads that launched GPU work, or made API calls when no launch is known; the busiest of each process."""
        source = table_or_none(self._tables, "launches")
        if source is None:
            source = table_or_none(self._tables, "api_calls")
        if source is None:
            source = table_or_none(self._tables, "host_ranges")
        if source is None:
            return []
        found = [(key, len(rows)) for key, rows in row_groups(source, ("rank", "process", "thread"))]
        chosen: list[tuple[int, int, int]] = []
        for process in sorted({key[:2] for key, _ in found}):
            threads = sorted((item for item in found if item[0][:2] == process), key=lambda item: (-item[1], item[0]))
            chosen += [(key[0], key[1], key[2]) for key, _ in threads[:THREADS_PER_PROCESS]]
            if len(threads) > THREADS_PER_PROCESS:
                hidden = len(threads) - THREADS_PER_PROCESS
                self.notes.append(
                    f"{hidden:,} threads that launch less than the busiest {THREADS_PER_PROCESS} are not shown."
                )
        return chosen

    def _thread_titles(self) -> dict[tuple[int, ...], str]:
        table = table_or_none(self._tables, "threads")
        if table is None:
            return {}
        names = table["name"].to_pylist()
        keys = row_groups(table, ("rank", "process", "thread"))
        named = {key: names[rows[0]] for key, rows in keys if names[rows[0]]}
        # Some profilers put the number into the name: "thread 807 (pt_autograd_0)".
        return {key: name if str(key[2]) in name else f"{name} · thread {key[2]}" for key, name in named.items()}

    def _call_lanes(self) -> dict[tuple[int, ...], list[tuple[Lane, int]]]:
        table = table_or_none(self._tables, "api_calls")
        if table is None:
            return {}
        index, classes = encoded(table, "class")
        colour = lookup(classes, {key: CODES[line] for key, line in API_CLASS_KEYS.items()}, CODES["api"])[index]
        name = self.names.column(table, "name")
        lanes: dict[tuple[int, ...], list[tuple[Lane, int]]] = {}
        for key, rows in row_groups(table, ("rank", "process", "thread")):
            packed, _ = pack(_slices(table, rows, name, colour), CALL_ROWS)
            lanes[key] = [(Lane("runtime calls", packed), 0)]
        return lanes

    def _range_lanes(self) -> dict[tuple[int, ...], list[tuple[Lane, int]]]:
        table = table_or_none(self._tables, "host_ranges")
        if table is None:
            return {}
        index, categories = encoded(table, "category")
        colour = lookup(categories, {key: CODES[kind] for key, kind in RANGE_KEYS.items()}, CODES["operator"])[index]
        name = self.names.column(table, "name")
        lanes: dict[tuple[int, ...], list[tuple[Lane, int]]] = {}
        for key, rows in row_groups(table, ("rank", "process", "thread")):
            for label, members in RANGE_LANES:
                chosen = rows[lookup(categories, dict.fromkeys(members, 1), 0)[index[rows]] == 1]
                if len(chosen):
                    packed, left = pack(_slices(table, chosen, name, colour), RANGE_ROWS)
                    lanes.setdefault(key, []).append((Lane(label, packed), left))
        return lanes


def _slices(table: pa.Table, rows: Ints, name: NDArray[np.uint32], colour: NDArray[np.uint8]) -> Slices:
    return make_slices(integers(table, "start_ns")[rows], integers(table, "end_ns")[rows], name[rows], colour[rows])


def _extent(lanes: list[Lane]) -> tuple[int, int]:
    rows = [row for lane in lanes for row in lane.rows if len(row)]
    if not rows:
        return 0, 0
    return min(int(row.start[0]) for row in rows), max(int(row.end.max()) for row in rows)
