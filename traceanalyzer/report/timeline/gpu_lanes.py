"""The lanes of a GPU: where its time went, its steps, and its streams."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.columns import MISSING, Flags, encoded, integers, short_encoded
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.columns.uniques import unique
from traceanalyzer.model.launch_links import Numbers
from traceanalyzer.report.palette import BY_KEY, CODES, GPU_OP_KEYS
from traceanalyzer.report.parted import TABLES as PARTED
from traceanalyzer.report.parted import parted
from traceanalyzer.report.timeline.lanes import Key, Lane, Source, slices_of
from traceanalyzer.report.timeline.name_table import Names, looked_up, lookup
from traceanalyzer.report.timeline.slices import pack
from traceanalyzer.vocabulary.lines import COMPUTE, IDLE_PREFIX, UNATTRIBUTED

TABLES = ("ledger_intervals", "gaps", "step_stats", "gpu_ops", *PARTED)
"""What these lanes read."""
STREAM_ROWS = 4
STEP_ROWS = 2


def ledger_lanes(source: Source) -> dict[Key, Lane]:
    """By (rank, device) the tiles of the ledger, idle ones named after their cause and what the host was doing."""
    table = source.table("ledger_intervals")
    if table is None:
        return {}
    table = parted(table, *(source.table(name) for name in PARTED))
    index, lines = short_encoded(table, "line")
    colour = looked_up(lookup(lines, CODES, CODES[UNATTRIBUTED.name]), index)
    labels = [BY_KEY[line].label if line in BY_KEY else line for line in lines]
    name = looked_up(np.array([*(source.names.id(label) for label in labels), 0], dtype=np.uint32), index)
    idle = np.array([*(line.startswith(IDLE_PREFIX) for line in lines), False])
    name = _name_gaps(table, source.table("gaps"), name, looked_up(idle, index), source.names)
    return {
        key: Lane("where time went", pack(slices_of(table, rows, name, colour), 1)[0], kind="ledger")
        for key, rows in row_groups(table, ("rank", "device"))
    }


def _name_gaps(
    intervals: pa.Table, gaps: pa.Table | None, name: NDArray[np.uint32], is_idle: Flags, names: Names
) -> NDArray[np.uint32]:
    """Idle intervals that begin with a gap row of a known range say what the host was doing."""
    if gaps is None:
        return name
    gaps = gaps.select(["rank", "device", "start_ns", "range_name"]).filter(pc.is_valid(gaps["range_name"]))
    index, ranges = encoded(gaps, "range_name")
    ids = np.array([*(names.id(text) for text in ranges), 0], dtype=np.uint32)[index]
    by_device = dict(row_groups(gaps, ("rank", "device")))
    starts, gap_starts = integers(intervals, "start_ns"), integers(gaps, "start_ns")
    shown = name.copy()
    matched, spans = [np.empty(0, np.int64)], [ids[:0]]
    for key, rows in row_groups(intervals, ("rank", "device")):
        found = by_device.get(key)
        if found is None:
            continue
        idle = rows[is_idle[rows]]
        ordered = found[np.argsort(gap_starts[found], kind="stable")]
        position = np.searchsorted(gap_starts[ordered], starts[idle])
        hit = ordered[np.minimum(position, len(ordered) - 1)]
        match = gap_starts[hit] == starts[idle]
        matched.append(idle[match])
        spans.append(ids[hit[match]])
    rows, span = np.concatenate(matched), np.concatenate(spans)
    shown[rows] = _joined(name[rows], span, names)
    return shown


def _joined(name: NDArray[np.uint32], span: NDArray[np.uint32], names: Names) -> NDArray[np.uint32]:
    """Numbers of the names "cause · range" of pairs of names."""
    every = names.all()
    pairs, place = unique((span.astype(np.int64) << 32) + name)
    ids = [names.id(f"{every[pair & 0xFFFFFFFF]} · {every[pair >> 32]}") for pair in pairs.tolist()]
    return np.array(ids, dtype=np.uint32)[place]


def step_lanes(source: Source) -> dict[Key, Lane]:
    """By (rank, device) the steps as the GPU ran them."""
    table = source.table("step_stats")
    if table is None:
        return {}
    name = source.names.column(table, "name")
    colour = np.full(table.num_rows, CODES["annotation"], dtype=np.uint8)
    return {
        key: Lane("steps", pack(slices_of(table, rows, name, colour), STEP_ROWS)[0])
        for key, rows in row_groups(table, ("rank", "device"))
    }


def stream_lanes(source: Source, link: Numbers) -> dict[Key, list[Lane]]:
    """By (rank, device) one lane a stream. `link` is the launch of each row of `gpu_ops`."""
    table = source.table("gpu_ops")
    if table is None:
        return {}
    bad = pc.fill_null(table["quarantined"], False)
    dropped = int(pc.sum(bad).as_py() or 0)
    source.leave_out(dropped, "GPU operations with impossible times")
    if dropped:
        good = pc.invert(bad)
        table, link = table.filter(good), link[good.to_numpy()]
    name, colour = source.names.column(table, "name"), _op_colours(table)
    keys = list(row_groups(table, ("rank", "device", "process", "context", "stream")))
    ambiguous = len({(k[0], k[1], k[4]) for k, _ in keys}) < len(keys)  # one stream number in two contexts
    lanes: dict[Key, list[Lane]] = {}
    crowded = 0
    for (rank, device, process, context, stream), rows in keys:
        packed, left = pack(slices_of(table, rows, name, colour, link), STREAM_ROWS)
        crowded += left
        label = "stream ?" if stream == MISSING else f"stream {stream}"
        if ambiguous:
            label += f" · process {process} context {context}"
        lanes.setdefault((rank, device), []).append(Lane(label, packed))
    source.leave_out(crowded, f"operations that overlap more than {STREAM_ROWS} deep on one stream")
    return lanes


def _op_colours(table: pa.Table) -> NDArray[np.uint8]:
    kind, kinds = short_encoded(table, "kind")
    work, works = short_encoded(table, "class")
    by_kind = lookup(kinds, {key: CODES[line] for key, line in GPU_OP_KEYS.items()}, CODES[COMPUTE.name])
    colour = looked_up(by_kind, kind)
    if "communication" in works:
        communicates = work == works.index("communication")
        colour = np.where(communicates, np.uint8(CODES["communication"]), colour)
    return colour
