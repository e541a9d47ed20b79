"""The timeline's payload: lanes as typed arrays in one compressed blob, exact to the nanosecond.

Layout, little-endian: uint32 length of the header, the header (JSON, UTF-8), then the arrays one after another, each starting
on a multiple of 8 bytes. A row of n slices is: start deltas and durations (float64 when `wide`, else uint32), name numbers
(uint32), event counts (uint32, only when `merged`) and colour codes (uint8). A float64 holds every whole nanosecond up to 2^53,
which is 104 days after the origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.report.lanes import Group, Lane, LaneBuilder, RankName, TimelineTables
from traceanalyzer.report.packing import packed
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.slices import Slices, merge, merged_size
from traceanalyzer.result.document import Evidence

MAX_SLICES = 200_000
PROTECTED_SHARE = 4
UINT32_END = 2**32


@dataclass(frozen=True)
class Place:
    """Where a piece of evidence lies on the timeline: ns since the origin, and the group of lanes to look at."""

    start: int
    end: int
    group: int


@dataclass(frozen=True)
class Timeline:
    """What the page needs: the blob (gzip, base64), how many events it shows, and what was merged or left out.

    `merged_events` counts the events inside merged slices, which lie closer together than `quantum_ns`.
    """

    blob: str
    events: int
    merged_events: int
    quantum_ns: int
    notes: list[str]
    groups: list[Group]
    origins: dict[int, int]

    def place(self, evidence: Evidence) -> Place | None:
        """The evidence on the timeline; None when none of its lanes show that GPU."""
        fits = [
            (number, group)
            for number, group in enumerate(self.groups)
            if group.device is not None
            and evidence.rank in (None, group.rank)
            and evidence.device in (None, group.device)
        ]
        if not fits:
            return None
        # A rank the result does not know can be several in the tables: the GPU that was recording at that time.
        inside = [fit for fit in fits if fit[1].window[0] <= evidence.start_ns <= fit[1].window[1]]
        if not inside and len({group.rank for _, group in fits}) > 1:
            return None
        number, group = (inside or fits)[0]
        origin = self.origins[group.rank]
        return Place(evidence.start_ns - origin, evidence.end_ns - origin, number)


def build_timeline(
    tables: TimelineTables, rank_name: RankName, evidence: list[Evidence], ahead: Mapping[int, int] | None = None
) -> Timeline:
    """Lanes from the tables, rebased to the first event shown, merged when there are too many, and encoded.

    `ahead` is how far the clocks of ranks are ahead of the job's, in ns: their lanes are moved by that.
    """
    builder = LaneBuilder(tables, rank_name)
    groups = builder.build()
    notes = builder.notes
    origins, shared = _origins(groups, ahead or {})
    if shared and len(origins) > 1 and ahead:
        notes.append("The ranks' clocks are set by the ends of the collectives that they share.")
    if not shared:
        notes.append("The ranks' clocks do not overlap: each rank is shown from its own first event.")
    for group in groups:
        for lane in group.lanes:
            lane.rows = [replace(row, start=row.start - origins[group.rank]) for row in lane.rows]
    timeline = Timeline("", _events(groups), 0, 0, notes, groups, origins)
    places = [place for place in map(timeline.place, evidence) if place is not None]
    merged_events, quantum = _limit(groups, places)
    blob = _encode(timeline, builder)
    return replace(timeline, blob=blob, merged_events=merged_events, quantum_ns=quantum)


def _origins(groups: list[Group], ahead: Mapping[int, int]) -> tuple[dict[int, int], bool]:
    """For each rank the time that is shown as 0, and whether all ranks share it: they do when their GPU windows overlap."""
    first: dict[int, int] = {}
    windows: dict[int, tuple[int, int]] = {}
    for group in groups:
        begin, end = (time - ahead.get(group.rank, 0) for time in group.window)
        first[group.rank] = min(first.get(group.rank, begin), begin)
        low, high = windows.get(group.rank, (begin, end))
        windows[group.rank] = min(low, begin), max(high, end)
    shared = max((low for low, _ in windows.values()), default=0) <= min(
        (high for _, high in windows.values()), default=0
    )
    start = min(first.values(), default=0)
    return {rank: (start if shared else begin) + ahead.get(rank, 0) for rank, begin in first.items()}, shared


def _events(groups: list[Group]) -> int:
    return sum(len(row) for group in groups for lane in group.lanes for row in lane.rows)


def _limit(groups: list[Group], places: list[Place]) -> tuple[int, int]:
    """Merge small slices until at most MAX_SLICES are left; returns the events inside merged slices and the quantum in ns.

    What lies in or next to the evidence stays as it is, unless that alone would fill a quarter of the page.
    """
    if _events(groups) <= MAX_SLICES:
        return 0, 0
    rows = [row for group in groups for lane in group.lanes for row in lane.rows]
    keeps = [_near_evidence(row, places) for row in rows]
    if sum(int(keep.sum()) for keep in keeps) > MAX_SLICES // PROTECTED_SHARE:
        keeps = [np.zeros(len(row), dtype=np.bool_) for row in rows]
    extent = max(int(row.end.max()) for row in rows if len(row))
    quantum = max(extent >> 22, 1)
    while (
        sum(merged_size(row, quantum, keep) for row, keep in zip(rows, keeps, strict=True)) > MAX_SLICES
        and quantum < extent
    ):
        quantum *= 2
    merged_events = 0
    remaining = iter(keeps)
    for group in groups:
        for lane in group.lanes:
            lane.rows = [merge(row, quantum, next(remaining)) for row in lane.rows]
            merged_events += sum(int(row.count[row.count > 1].sum()) for row in lane.rows)
    return merged_events, quantum


def _near_evidence(row: Slices, places: list[Place]) -> NDArray[np.bool_]:
    near = np.zeros(len(row), dtype=np.bool_)
    for place in places:
        margin = place.end - place.start
        low = np.searchsorted(row.end, place.start - margin, side="right")
        high = np.searchsorted(row.start, place.end + margin)
        near[low:high] = True
    return near


def _encode(timeline: Timeline, builder: LaneBuilder) -> str:
    rows = [row for group in timeline.groups for lane in group.lanes for row in lane.rows]
    used = np.concatenate([row.name for row in rows]) if rows else np.empty(0, dtype=np.uint32)
    names, renumber = builder.names.compact(used)
    header = {
        "names": names,
        "colours": [swatch.css for swatch in SWATCHES],
        "labels": [swatch.label for swatch in SWATCHES],
        "home": _home(timeline),
        "extent": [0, max((int(row.end.max()) for row in rows if len(row)), default=0)],
        "groups": [_group_header(group, timeline.origins[group.rank]) for group in timeline.groups],
    }
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [len(head).to_bytes(4, "little"), head]
    size = 4 + len(head)
    for row in rows:
        for array in _row_arrays(row, renumber):
            padding = -size % 8
            data = array.tobytes()
            parts += [bytes(padding), data]
            size += padding + len(data)
    return packed(b"".join(parts))


def _home(timeline: Timeline) -> list[int]:
    """The first view: all GPU windows, with a little air; host events before and after can be reached by zooming out."""
    windows = [
        (group.window[0] - timeline.origins[group.rank], group.window[1] - timeline.origins[group.rank])
        for group in timeline.groups
        if group.device is not None
    ]
    if not windows:  # no GPU work: the host's
        windows = [(0, max((group.window[1] - timeline.origins[group.rank] for group in timeline.groups), default=1))]
    low, high = min(w[0] for w in windows), max(w[1] for w in windows)
    air = (high - low) // 100
    return [max(low - air, 0), high + air]


def _group_header(group: Group, origin: int) -> dict[str, Any]:
    return {"label": group.label, "origin": str(origin), "lanes": [_lane_header(lane) for lane in group.lanes]}


def _lane_header(lane: Lane) -> dict[str, Any]:
    return {"label": lane.label, "tiled": lane.tiled, "rows": [_row_header(row) for row in lane.rows]}


def _row_header(row: Slices) -> dict[str, Any]:
    return {"n": len(row), "wide": _is_wide(row), "merged": bool((row.count > 1).any())}


def _is_wide(row: Slices) -> bool:
    return bool(len(row)) and max(int(_deltas(row).max()), int(row.duration.max())) >= UINT32_END


def _deltas(row: Slices) -> NDArray[np.int64]:
    return np.diff(row.start, prepend=0)


def _row_arrays(row: Slices, renumber: NDArray[np.uint32]) -> list[NDArray[Any]]:
    number = np.dtype("<f8") if _is_wide(row) else np.dtype("<u4")
    counts = [row.count.astype("<u4")] if (row.count > 1).any() else []
    names = renumber[row.name].astype("<u4")
    return [_deltas(row).astype(number), row.duration.astype(number), names, *counts, row.colour]
