"""The lanes of a GPU: where its time went, its steps, and its streams."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.columns import MISSING, integers, short_encoded
from traceanalyzer.columns.frames import row_groups, row_parts
from traceanalyzer.columns.uniques import unique
from traceanalyzer.model.launch_links import Numbers
from traceanalyzer.report.palette import BY_KEY, CODES, GPU_OP_KEYS
from traceanalyzer.report.parted import TABLES as PARTED
from traceanalyzer.report.parted import Tiles, tiles_by_gpu
from traceanalyzer.report.timeline.lanes import Key, Lane, Source, slices_of
from traceanalyzer.report.timeline.name_table import Names, looked_up, lookup
from traceanalyzer.report.timeline.slices import make_slices, pack
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
    tiles = dict(tiles_by_gpu(table, *(source.table(name) for name in PARTED)))
    lines = dict.fromkeys(line for one in tiles.values() for line in one.lines)
    number = {line: source.names.id(BY_KEY[line].label if line in BY_KEY else line) for line in lines}
    names = {
        key: looked_up(np.array([*(number[line] for line in one.lines), 0], np.uint32), one.line)
        for key, one in tiles.items()
    }
    _name_gaps(tiles, source.table("gaps"), names, source.names)
    lanes = {}
    for key, one in tiles.items():
        colour = looked_up(lookup(one.lines, CODES, CODES[UNATTRIBUTED.name]), one.line)
        slices = make_slices(one.start, one.end, names[key], colour)
        lanes[key] = Lane("where time went", pack(slices, 1)[0], kind="ledger")
    return lanes


def _name_gaps(
    tiles: Mapping[Key, Tiles], gaps: pa.Table | None, shown: dict[Key, NDArray[np.uint32]], names: Names
) -> None:
    """Let idle tiles that begin with a gap row of a known range say what the host was doing; `shown` are the names of all."""
    if gaps is None:
        return
    gaps = gaps.select(["rank", "device", "start_ns", "range_name"]).filter(pc.is_valid(gaps["range_name"]))
    index, ranges = short_encoded(gaps, "range_name")
    ids = np.array([*(names.id(text) for text in ranges), 0], dtype=np.uint32)
    starts = integers(gaps, "start_ns")
    matched = []
    for key, rows in row_parts(gaps, ("rank", "device")):
        begins, span = starts[rows], index[rows]
        if (begins[1:] < begins[:-1]).any():
            order = np.argsort(begins, kind="stable")
            begins, span = begins[order], span[order]
        if key in tiles:
            one = tiles[key]
            is_idle = np.array([*(line.startswith(IDLE_PREFIX) for line in one.lines), False])
            idle = np.flatnonzero(looked_up(is_idle, one.line))
            at = np.minimum(np.searchsorted(begins, one.start[idle]), len(begins) - 1)
            match = begins[at] == one.start[idle]
            matched.append((key, idle[match], ids[span[at[match]]]))
    if matched:
        joined = _joined(
            np.concatenate([shown[key][rows] for key, rows, _ in matched]),
            np.concatenate([span for _, _, span in matched]),
            names,
        )
        ends = np.cumsum([len(rows) for _, rows, _ in matched])
        for (key, rows, _), told in zip(matched, np.split(joined, ends[:-1]), strict=True):
            shown[key] = np.array(shown[key])
            shown[key][rows] = told


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
    keys = list(row_parts(table, ("rank", "device", "process", "context", "stream")))
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
