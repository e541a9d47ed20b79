"""The timelines of two traces, one above the other on one axis, each from the start of its own first complete step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from traceanalyzer.columns import Ints, integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.lane_groups import lane_groups
from traceanalyzer.report.timeline.lanes import Group, RankName, Source, Span, table_or_none
from traceanalyzer.report.timeline.name_table import Names
from traceanalyzer.report.timeline.places import Place, Places
from traceanalyzer.report.timeline.points import Points
from traceanalyzer.report.timeline.slices import Slices
from traceanalyzer.report.timeline.timeline import ONE_CLOCK, Draft, home, move, own_origins
from traceanalyzer.result.document import Evidence

ZERO = "the start of the first complete step of each side"


@dataclass(frozen=True)
class Trace:
    """One of the two: what its lanes are called, and what `draft_timeline` is told of a trace."""

    title: str
    tables: Tables
    rank_name: RankName
    evidence: list[Evidence] = field(default_factory=list)
    ahead: Mapping[int, int] = field(default_factory=dict)
    claims: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Lanes:
    """The lanes of one trace, their times counted from its own zeros by rank. `ends` are those of the complete steps on one GPU."""

    groups: list[Group]
    zeros: Mapping[int, int]
    places: Places
    marked: list[Place]
    notes: list[str]
    ends: Ints


def draft_stacked_timeline(traces: Sequence[Trace]) -> Draft:
    """The lanes of the traces in their order; ranks are numbered on from trace to trace.

    The first view begins at 0. It shows as many steps of each trace as all of them have, or everything where one has none. So that both
    traces are in sight, host threads are folded, and GPUs where a trace has several.
    """
    names, every = Names(), list[_Lanes]()
    groups, zeros = list[Group](), dict[int, int]()
    for trace in traces:
        lanes = _lanes_of(trace, names, len(groups))
        rank, link = max(zeros, default=-1) + 1, _last_link(groups)
        groups += [_renumbered(group, trace.title, rank, link) for group in lanes.groups]
        zeros |= {number + rank: zero for number, zero in lanes.zeros.items()}
        every.append(lanes)
    notes = [f"{trace.title}: {note}" for trace, lanes in zip(traces, every, strict=True) for note in lanes.notes]
    marked = [place for lanes in every for place in lanes.marked]
    gpus = max((sum(group.device is not None for group in lanes.groups) for lanes in every), default=0)
    for group in groups:
        group.folded = group.device is None or gpus > 1
    shown = _first_view(every, home(groups, zeros))
    places = [lanes.places for lanes in every]
    return Draft(
        groups=groups,
        origins=zeros,
        places=places,
        notes=notes,
        zero=ZERO,
        names=names,
        shown=shown,
        marked=marked,
    )


def _lanes_of(trace: Trace, names: Names, before: int) -> _Lanes:
    source = Source(trace.tables, trace.rank_name, names)
    # All GPUs come before the threads of any rank.
    groups = sorted(lane_groups(source), key=lambda group: group.device is None)
    zeros, shared = own_origins(groups, trace.ahead)
    steps = _complete_steps(trace.tables, groups)
    begins = {rank: int(start.min()) for rank, (start, _) in steps.items()} or _first_operations(groups)
    notes = source.notes
    if shared and begins:
        zero = min(begin - trace.ahead.get(rank, 0) for rank, begin in begins.items())
        zeros = {rank: zero + trace.ahead.get(rank, 0) for rank in zeros}
    else:
        zeros |= begins
    if shared and len(zeros) > 1 and trace.ahead:
        notes.append(ONE_CLOCK)
    if not shared:
        notes.append("The ranks' clocks do not overlap: each rank is shown from its own beginning.")
    if not steps:
        notes.append("No complete step is known: 0 is where its GPU work begins.")
    places = Places(groups, zeros, trace.claims, before)
    marked = [place for place in map(places.find, trace.evidence) if place is not None]
    move(groups, zeros)
    ends = next((np.sort(end) - zeros[rank] for rank, (_, end) in steps.items()), np.empty(0, np.int64))
    return _Lanes(groups, zeros, places, marked, notes, ends)


def _complete_steps(tables: Tables, groups: list[Group]) -> dict[int, tuple[Ints, Ints]]:
    """Starts and ends of the complete steps, for each rank that is shown, on the first of its GPUs that has any."""
    table = table_or_none(tables, "step_stats")
    if table is None:
        return {}
    table = table.filter(table["complete"])
    rank, device, start, end = (integers(table, column) for column in ("rank", "device", "start_ns", "end_ns"))
    steps: dict[int, tuple[Ints, Ints]] = {}
    for group in groups:
        mine = (rank == group.rank) & (device == group.device)
        if group.device is not None and group.rank not in steps and mine.any():
            steps[group.rank] = start[mine], end[mine]
    return steps


def _first_operations(groups: list[Group]) -> dict[int, int]:
    """For each rank with GPU work where that begins."""
    first: dict[int, int] = {}
    for group in groups:
        if group.device is not None:
            first[group.rank] = min(group.window[0], first.get(group.rank, group.window[0]))
    return first


def _last_link(groups: list[Group]) -> int:
    return max((int(row.link.max()) for group in groups for row in group.slices if len(row)), default=0)


def _renumbered(group: Group, title: str, rank: int, link: int) -> Group:
    """The group as one of several traces: with the trace's name, and numbers of ranks and launches that no other trace has."""

    def numbered_on(row: Slices | Points) -> Slices | Points:
        if isinstance(row, Points):
            return row
        return replace(row, link=np.where(row.link > 0, row.link + np.uint32(link), 0).astype(np.uint32))

    lanes = [replace(lane, rows=[numbered_on(row) for row in lane.rows]) for lane in group.lanes]
    return replace(group, label=f"{title} · {group.label}", rank=group.rank + rank, lanes=lanes)


def _first_view(every: Sequence[_Lanes], whole: Span) -> Span:
    """From 0 to the end of the last step that all traces have, with a little air."""
    common = min((len(lanes.ends) for lanes in every), default=0)
    end = max(int(lanes.ends[common - 1]) for lanes in every) if common else whole[1]
    air = end // 100
    return -air, end + air
