"""The timeline of the page: lanes from the tables on one clock, within a limit, packed for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from traceanalyzer.model.tables import Tables
from traceanalyzer.report.budget import Budget
from traceanalyzer.report.detail import limit
from traceanalyzer.report.encoding import encode
from traceanalyzer.report.lane_groups import lane_groups
from traceanalyzer.report.lanes import Group, RankName, Source, Span, not_shown, rank_spans
from traceanalyzer.report.name_table import Names
from traceanalyzer.report.packing import packed
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.places import Place, Places
from traceanalyzer.report.stills.timeline import timeline_still
from traceanalyzer.result.clocks import origins
from traceanalyzer.result.document import Evidence

ONE_CLOCK = "The ranks' clocks are set by the ends of the collectives that they share."


@dataclass(frozen=True)
class Timeline:
    """What the page needs: the packed payload, how many events it shows, and what was merged or left out.

    `merged_events` counts the events inside merged slices, which lie closer together than `quantum_ns`. `origins` is for each rank
    of the tables the time that is shown as 0, and `zero` says what that is. `places` finds evidence, for each trace on it. `still` is
    a picture of the first view.
    """

    blob: str
    events: int
    merged_events: int
    quantum_ns: int
    notes: list[str]
    groups: list[Group]
    origins: Mapping[int, int]
    places: Sequence[Places]
    still: Markup
    zero: str = "the first one"

    @property
    def swatches(self) -> list[Swatch]:
        """What its slices show, in the palette's order."""
        used = {int(colour) for group in self.groups for row in group.slices for colour in np.unique(row.colour)}
        return [SWATCHES[colour] for colour in sorted(used)]

    def place(self, evidence: Evidence, trace: int = 0) -> Place | None:
        """The evidence on the timeline; None when its lanes are not shown or cannot be told."""
        return self.places[trace].find(evidence)


def build_timeline(
    tables: Tables,
    rank_name: RankName,
    evidence: list[Evidence],
    ahead: Mapping[int, int] | None = None,
    *,
    claims: Mapping[int, int] | None = None,
    most: int = Budget.slices,
) -> Timeline:
    """Lanes from the tables, rebased to the first event shown, merged when there are more than `most` slices and points, and packed.

    `ahead` is how far the clocks of ranks are ahead of the job's, in ns: their lanes are moved by that. `claims` is how many files say
    that they are a rank of the job, for each rank that any of them does.
    """
    source = Source(tables, rank_name)
    groups = lane_groups(source)
    notes = source.notes
    zeros, shared = own_origins(groups, ahead or {})
    if shared and len(zeros) > 1 and ahead:
        notes.append(ONE_CLOCK)
    if not shared:
        notes.append("The ranks' clocks do not overlap: each rank is shown from its own first event.")
    places = Places(groups, zeros, claims or {})
    move(groups, zeros)
    marked = [place for place in map(places.find, evidence) if place is not None]
    return put_together(groups, source.names, home(groups, zeros), zeros, [places], notes, marked, most)


def put_together(
    groups: list[Group],
    names: Names,
    shown: Span,
    zeros: Mapping[int, int],
    places: Sequence[Places],
    notes: list[str],
    marked: list[Place],
    most: int,
    zero: str = Timeline.zero,
) -> Timeline:
    """The timeline of groups whose rows count from the origin: first `shown` from one time to another, what lies at `marked` whole."""
    events = sum(len(row) for group in groups for row in group.slices)
    detail = limit(groups, marked, most)
    left = not_shown(detail.left_out, "samples of counters between the lowest and the highest close by")
    blob = packed(encode(groups, names, shown, zeros))
    still = timeline_still(groups, names.all(), shown)
    notes = [*notes, *left]
    return Timeline(blob, events, detail.merged_events, detail.quantum_ns, notes, groups, zeros, places, still, zero)


def own_origins(groups: list[Group], ahead: Mapping[int, int]) -> tuple[dict[int, int], bool]:
    """For each rank the time that is shown as 0, and whether all ranks share it."""
    spans = rank_spans(groups)
    found, shared = origins(list(spans.values()), [ahead.get(rank, 0) for rank in spans])
    return dict(zip(spans, found, strict=True)), shared


def move(groups: list[Group], origins: Mapping[int, int]) -> None:
    """Let all times count from the origin. A group's window stays as it is."""
    for group in groups:
        for lane in group.lanes:
            lane.rows = [row.moved(-origins[group.rank]) for row in lane.rows]


def home(groups: list[Group], origins: Mapping[int, int]) -> Span:
    """The first view: all GPU windows, with a little air; host events before and after can be reached by zooming out."""
    shown = [group for group in groups if group.device is not None]
    windows = [tuple(time - origins[group.rank] for time in group.window) for group in shown]
    if not windows:  # no GPU work: the host's
        windows = [(0, max((group.window[1] - origins[group.rank] for group in groups), default=1))]
    low, high = min(w[0] for w in windows), max(w[1] for w in windows)
    air = (high - low) // 100
    return max(low - air, 0), high + air
