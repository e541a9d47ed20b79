"""The timeline's payload: lanes as typed arrays in one block, exact to the nanosecond.

Layout, little-endian: uint32 length of the header, the header (JSON, UTF-8), then the arrays one after another, each starting
on a multiple of 8 bytes. All numbers of time are ns.

The header: `names`; `colours`, `labels` and `meanings` of the palette; `home` and `extent`, each [from, to] since the origin;
`groups` of {label, origin (what counts as 0, on the group's own clock, as text), device (true: a GPU), folded (only where it is so at
first), lanes}. A lane is {label, kind ("ledger", "slices" or "counter"), unit (of a counter), rows}.

A row of n slices is {n, wide, merged, linked}: start deltas, the first from the origin and below 0 for what began before it, and
durations (both float64 when `wide`, else uint32), name numbers (uint32), event counts (uint32, only when `merged`), links as deltas
(int32, only when `linked`) and colour codes (uint8). A link is the number of a launch call, from 1; the call's slice and those of the
operations that it launched have the same one. 0 is none.

A row of n points of a counter is {n, wide}: time deltas (as above) and values (float64), each of which holds until the next one's
time. After the last one nothing is known.

A float64 holds every whole nanosecond up to 2^53, which is 104 days after the origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints
from traceanalyzer.report.lanes import Group, Lane, extent
from traceanalyzer.report.name_table import Names
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.points import Points
from traceanalyzer.report.slices import Slices

UINT32_END = 2**32


def encode(groups: list[Group], names: Names, home: tuple[int, int], origins: Mapping[int, int]) -> bytes:
    """The payload of groups whose rows count from the timeline's origin; only names that occur travel."""
    used = [row.name for group in groups for row in group.slices]
    kept, renumber = names.compact(np.concatenate(used) if used else np.empty(0, dtype=np.uint32))
    low, high = extent([lane for group in groups for lane in group.lanes])
    header = {
        "names": kept,
        "colours": [swatch.css for swatch in SWATCHES],
        "labels": [swatch.label for swatch in SWATCHES],
        "meanings": [swatch.meaning for swatch in SWATCHES],
        "home": home,
        "extent": [min(low, 0), high],
        "groups": [_group_header(group, origins[group.rank]) for group in groups],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [len(head).to_bytes(4, "little"), head]
    size = 4 + len(head)
    for row in (row for group in groups for lane in group.lanes for row in lane.rows):
        for array in _point_arrays(row) if isinstance(row, Points) else _slice_arrays(row, renumber):
            padding = -size % 8
            data = array.tobytes()
            parts += [bytes(padding), data]
            size += padding + len(data)
    return b"".join(parts)


def _group_header(group: Group, origin: int) -> dict[str, Any]:
    lanes = [_lane_header(lane) for lane in group.lanes]
    folded = {"folded": True} if group.folded else {}
    return {"label": group.label, "origin": str(origin), "device": group.device is not None, **folded, "lanes": lanes}


def _lane_header(lane: Lane) -> dict[str, Any]:
    unit = {"unit": lane.unit or ""} if lane.kind == "counter" else {}
    return {"label": lane.label, "kind": lane.kind, **unit, "rows": [_row_header(row) for row in lane.rows]}


def _row_header(row: Slices | Points) -> dict[str, Any]:
    if isinstance(row, Points):
        return {"n": len(row), "wide": _is_wide(_deltas(row.time))}
    wide = _is_wide(_deltas(row.start)) or _is_wide(row.duration)
    return {"n": len(row), "wide": wide, "merged": bool((row.count > 1).any()), "linked": bool(row.link.any())}


def _slice_arrays(row: Slices, renumber: NDArray[np.uint32]) -> list[NDArray[Any]]:
    header = _row_header(row)
    number = _number(header["wide"])
    counts = [row.count.astype("<u4")] if header["merged"] else []
    links = [_deltas(row.link.astype(np.int64)).astype("<i4")] if header["linked"] else []
    names = renumber[row.name].astype("<u4")
    return [_deltas(row.start).astype(number), row.duration.astype(number), names, *counts, *links, row.colour]


def _point_arrays(row: Points) -> list[NDArray[Any]]:
    deltas = _deltas(row.time)
    return [deltas.astype(_number(_is_wide(deltas))), row.value.astype("<f8")]


def _number(wide: bool) -> np.dtype[Any]:
    return np.dtype("<f8") if wide else np.dtype("<u4")


def _is_wide(lengths: Ints) -> bool:
    return bool(len(lengths)) and (int(lengths.max()) >= UINT32_END or int(lengths.min()) < 0)


def _deltas(values: Ints) -> Ints:
    return np.diff(values, prepend=0)
