"""The timeline's payload: lanes as typed arrays in one block, exact to the nanosecond.

Layout, little-endian: uint32 length of the header, the header (JSON, UTF-8), then the arrays one after another, each starting
on a multiple of 8 bytes. All numbers of time are ns.

The header: `names`; `index`, what the search knows of them: {kinds (of lanes), n (counts), left ([names, events] that are not among
the names), hidden (pairs of each row of slices), places (only where no name has more than so many of its pairs)}; `colours`, `labels`
and `meanings` of the palette; `quantum`, within which slices are merged, 0 for none; `home` and `extent`, each [from, to] since the
origin; `groups` of {label, origin (what counts as 0, on the group's own clock, as text), device (true: a GPU), folded (only where it
is so at first), lanes}. A lane is {label, content (its kind in `index`, where that is not the label), kind ("ledger", "slices" or
"counter"), unit (of a counter), rows}.

The first arrays are the n counts: name numbers (uint32), numbers of kinds (uint8), events (float64), and their ns together (float64).

A row of n slices is {n, wide, merged, linked}: start deltas, the first from the origin and below 0 for what began before it, and
durations (both float64 when `wide`, else uint32), name numbers (uint32), event counts (uint32, only when `merged`), links as deltas
(int32, only when `linked`) and colour codes (uint8; 128 more where merging has moved the start, by less than 2 `quantum`). A link is
the number of a launch call, from 1; the call's slice and those of the operations that it launched have the same one. 0 is none.

A row of n points of a counter is {n, wide}: time deltas (as above) and values (float64), each of which holds until the next one's
time. After the last one nothing is known.

Last come the pairs, for each row of slices that has any: the numbers of merged slices as deltas, and of names that they hold but are
not named after (both uint32).

A float64 holds every whole nanosecond up to 2^53, which is 104 days after the origin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.columns import Ints
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.timeline.lanes import Group, Lane, extent
from traceanalyzer.report.timeline.name_index import NameIndex
from traceanalyzer.report.timeline.points import Points
from traceanalyzer.report.timeline.slices import Slices

UINT32_END = 2**32
ROUGH = 128
"""In a colour code: the start is not that of an event."""


def encode(
    groups: list[Group], index: NameIndex, quantum: int, home: tuple[int, int], origins: Mapping[int, int]
) -> bytes:
    """The payload of groups whose rows count from the timeline's origin, merged within `quantum` ns."""
    low, high = extent([lane for group in groups for lane in group.lanes])
    header = {
        "names": index.texts,
        "index": _index_header(index),
        "colours": [swatch.css for swatch in SWATCHES],
        "labels": [swatch.label for swatch in SWATCHES],
        "meanings": [swatch.meaning for swatch in SWATCHES],
        "quantum": quantum,
        "home": home,
        "extent": [min(low, 0), high],
        "groups": [_group_header(group, origins[group.rank]) for group in groups],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [len(head).to_bytes(4, "little"), head]
    size = 4 + len(head)
    rows = (row for group in groups for lane in group.lanes for row in lane.rows)
    of_rows = (_point_arrays(row) if isinstance(row, Points) else _slice_arrays(row, index.number) for row in rows)
    for array in chain(_count_arrays(index), chain.from_iterable(of_rows), _hidden_arrays(index)):
        padding = -size % 8
        data = array.tobytes()
        parts += [bytes(padding), data]
        size += padding + len(data)
    return b"".join(parts)


def _index_header(index: NameIndex) -> dict[str, Any]:
    places = {} if index.places is None else {"places": index.places}
    left = [index.left_names, index.left_events]
    return {
        "kinds": index.counts.kinds,
        "n": len(index.counts.name),
        "left": left,
        "hidden": list(map(len, index.hidden)),
        **places,
    }


def _count_arrays(index: NameIndex) -> list[NDArray[Any]]:
    counts = index.counts
    names = index.number[counts.name].astype("<u4")
    return [names, counts.kind.astype("u1"), counts.count.astype("<f8"), counts.time.astype("<f8")]


def _hidden_arrays(index: NameIndex) -> Iterator[NDArray[Any]]:
    for hidden in index.hidden:
        if len(hidden):
            yield _deltas(hidden.slice).astype("<u4")
            yield index.number[hidden.name].astype("<u4")


def _group_header(group: Group, origin: int) -> dict[str, Any]:
    lanes = [_lane_header(lane) for lane in group.lanes]
    folded = {"folded": True} if group.folded else {}
    return {"label": group.label, "origin": str(origin), "device": group.device is not None, **folded, "lanes": lanes}


def _lane_header(lane: Lane) -> dict[str, Any]:
    unit = {"unit": lane.unit or ""} if lane.kind == "counter" else {}
    content = {"content": lane.content} if lane.content != lane.label else {}
    return {"label": lane.label, **content, "kind": lane.kind, **unit, "rows": [_row_header(row) for row in lane.rows]}


def _row_header(row: Slices | Points) -> dict[str, Any]:
    if isinstance(row, Points):
        return {"n": len(row), "wide": _is_wide(_deltas(row.time))}
    wide = _is_wide(_deltas(row.start)) or _is_wide(row.duration)
    return {"n": len(row), "wide": wide, "merged": bool((row.count > 1).any()), "linked": bool(row.link.any())}


def _slice_arrays(row: Slices, number_of: Ints) -> list[NDArray[Any]]:
    header = _row_header(row)
    number = _number(header["wide"])
    counts = [row.count.astype("<u4")] if header["merged"] else []
    links = [_deltas(row.link.astype(np.int64)).astype("<i4")] if header["linked"] else []
    codes = row.colour | (row.rough * np.uint8(ROUGH))
    names = number_of[row.name].astype("<u4")
    return [
        _deltas(row.start).astype(number),
        row.duration.astype(number),
        names,
        *counts,
        *links,
        codes,
    ]


def _point_arrays(row: Points) -> list[NDArray[Any]]:
    deltas = _deltas(row.time)
    return [deltas.astype(_number(_is_wide(deltas))), row.value.astype("<f8")]


def _number(wide: bool) -> np.dtype[Any]:
    return np.dtype("<f8") if wide else np.dtype("<u4")


def _is_wide(lengths: Ints) -> bool:
    return bool(len(lengths)) and (int(lengths.max()) >= UINT32_END or int(lengths.min()) < 0)


def _deltas(values: Ints) -> Ints:
    return np.diff(values, prepend=0)
