"""The timeline of the page: lanes from the tables on one clock, then within a limit and packed for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from markupsafe import Markup

from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.packing import pack
from traceanalyzer.report.page_size import Budget, Made
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.report.stills.timeline import timeline_still
from traceanalyzer.report.timeline.detail import Levels
from traceanalyzer.report.timeline.encoding import encode
from traceanalyzer.report.timeline.lane_groups import lane_groups
from traceanalyzer.report.timeline.lanes import Group, RankName, Source, Span, not_shown, rank_spans
from traceanalyzer.report.timeline.name_index import Counts, count_names, index_names
from traceanalyzer.report.timeline.name_table import Names
from traceanalyzer.report.timeline.path_lane import path_on_top
from traceanalyzer.report.timeline.places import Place, Places
from traceanalyzer.result.clocks import origins
from traceanalyzer.result.document import Evidence
from traceanalyzer.result.sections import Lane as EvidenceLane

ONE_CLOCK = "The ranks' clocks are set by the ends of the collectives that they share."


NAME_BYTES = 12
"""What names that no slice shows may take in the search's index, in bytes for each slice that is allowed."""
PAIRS = 4
"""How many names inside merged slices the index tells for each slice that is allowed: two or three are usual."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which lanes there are, and where they lie: what other parts of the page need to know of the timeline.

    `groups` have every event, and count from the origin: `origins` is for each rank of the tables the time that is shown as 0, and
    `zero` says what that is. `places` finds evidence, for each trace on it.
    """

    groups: list[Group]
    origins: Mapping[int, int]
    places: Sequence[Places]
    notes: list[str]
    zero: str = "the first one"

    @cached_property
    def events(self) -> int:
        return sum(len(row) for group in self.groups for row in group.slices)

    @cached_property
    def swatches(self) -> list[Swatch]:
        """What its slices show, in the palette's order."""
        used = {colour for group in self.groups for row in group.slices for colour in row.colours.tolist()}
        return [SWATCHES[colour] for colour in sorted(used)]

    def place(self, evidence: Evidence, trace: int = 0) -> Place | None:
        """The evidence on the timeline; None when its lanes are not shown or cannot be told."""
        return self.places[trace].find(evidence)


@dataclass(frozen=True, kw_only=True)
class Timeline(Layout):
    """The timeline as the page holds it: the packed payload, and what was merged or left out.

    `slices` are those in the payload, points of counters too; `is_whole`: they are all there are. `merged_events` counts the events
    inside merged slices, which lie closer together than `quantum_ns`. `still` is a picture of the first view.
    """

    blob: str
    still: Markup
    slices: int
    is_whole: bool
    merged_events: int
    quantum_ns: int


@dataclass(frozen=True, kw_only=True)
class Draft(Layout):
    """The timeline before what is too much for a page is merged: first `shown` from one time to another, `marked` stays whole."""

    names: Names
    shown: Span
    marked: list[Place]

    @cached_property
    def counts(self) -> Counts:
        """How often and how long each name ran."""
        return count_names([lane for group in self.groups for lane in group.lanes], len(self.names))

    @cached_property
    def levels(self) -> Levels:
        """It with more or less of its detail."""
        return Levels(self.groups, self.marked, len(self.names))

    @cached_property
    def still(self) -> Markup:
        """A picture of the first view, of all events."""
        return timeline_still(self.groups, self.names.all(), self.shown)

    def timeline(self, most: int) -> Timeline:
        """The timeline with at most so many slices and points."""
        detail = self.levels.limit(most)
        rows = [row for group in detail.groups for row in group.slices]
        index = index_names(self.names, self.counts, rows, detail.hidden, most * NAME_BYTES, most * PAIRS)
        left = not_shown(detail.left_out, "samples of counters between the lowest and the highest close by")
        return Timeline(
            groups=self.groups,
            origins=self.origins,
            places=self.places,
            notes=[*self.notes, *left],
            zero=self.zero,
            still=self.still,
            blob=pack(encode(detail.groups, index, detail.quantum_ns, self.shown, self.origins)),
            slices=detail.size,
            is_whole=not detail.quantum_ns,
            merged_events=detail.merged_events,
            quantum_ns=detail.quantum_ns,
        )


def build_timeline(
    tables: Tables,
    rank_name: RankName,
    evidence: list[Evidence],
    ahead: Mapping[int, int] | None = None,
    *,
    claims: Mapping[int, int] | None = None,
    most: int = Budget.slices,
) -> Timeline:
    """The timeline of `draft_timeline` with at most so many slices and points."""
    return draft_timeline(tables, rank_name, evidence, ahead, claims=claims).timeline(most)


def draft_timeline(
    tables: Tables,
    rank_name: RankName,
    evidence: list[Evidence],
    ahead: Mapping[int, int] | None = None,
    *,
    claims: Mapping[int, int] | None = None,
    lanes: Sequence[EvidenceLane] = (),
) -> Draft:
    """Lanes from the tables, rebased to the first event shown.

    `ahead` is how far the clocks of ranks are ahead of the job's, in ns: their lanes are moved by that. `claims` is how many files say
    that they are a rank of the job, for each rank that any of them does. `lanes` are those of other kinds of evidence.
    """
    source = Source(tables, rank_name, lanes=lanes)
    groups = lane_groups(source)
    notes = source.notes
    zeros, shared = own_origins(groups, ahead or {})
    if shared and len(zeros) > 1 and ahead:
        notes.append(ONE_CLOCK)
    if not shared:
        notes.append("The ranks' clocks do not overlap: each rank is shown from its own first event.")
    places = Places(groups, zeros, claims or {})
    move(groups, zeros)
    above = path_on_top(groups) if shared else []
    places.put_below(len(above))
    groups = [*above, *groups]
    marked = [place for place in map(places.find, evidence) if place is not None]
    return Draft(
        groups=groups,
        origins=zeros,
        places=[places],
        notes=notes,
        names=source.names,
        shown=home(groups, zeros),
        marked=marked,
    )


def made(page: str, timeline: Timeline | None) -> Made:
    """A page with this timeline on it."""
    data = page.encode()
    return Made(data, len(timeline.blob), timeline.slices, timeline.is_whole) if timeline else Made(data)


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
