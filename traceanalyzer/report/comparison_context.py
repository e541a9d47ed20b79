"""What the sections of a comparison's page are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from markupsafe import Markup

from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts import Charts
from traceanalyzer.report.charts.step_samples import samples_chart
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.page_size import Budget
from traceanalyzer.report.sections.comparison_view import SideView, side_views
from traceanalyzer.report.sections.findings_view import FindingView, finding_groups
from traceanalyzer.report.sections.page_data import page_data
from traceanalyzer.report.tables.changes import change_tables
from traceanalyzer.report.tables.table import DataTable
from traceanalyzer.report.timeline.timeline import Draft, Timeline
from traceanalyzer.result.comparing.comparison import Comparison
from traceanalyzer.result.comparing.words import unit_words
from traceanalyzer.result.document import Result


@dataclass(frozen=True)
class Compared:
    """One of the two: its event tables and its result, each only where it has one."""

    title: str
    tables: Tables | None
    result: Result | None


@dataclass
class ComparisonContext:
    """Of a comparison. `layout` is the timeline's lanes, `timeline` these as the page holds them; its tables have `budget.rows` at
    most. Only `timeline` changes once it is made: what is shared must not depend on it."""

    comparison: Comparison
    compared: Sequence[Compared]
    layout: Draft | None
    given_title: str | None
    budget: Budget
    timeline: Timeline | None = None

    @property
    def title(self) -> str:
        one = self.comparison
        return self.given_title or f"{one.new.name} compared with {one.base.name}"

    @property
    def tool(self) -> Mapping[str, str]:
        return self.comparison.tool

    @cached_property
    def unit(self) -> str:
        """What times are of: "a step" and the like."""
        return unit_words(self.comparison)

    @cached_property
    def sides(self) -> list[SideView]:
        return side_views(self.comparison)

    @cached_property
    def charts(self) -> Charts:
        chart = samples_chart(self.comparison)
        return Charts([], [], [chart] if chart else [], [])

    @cached_property
    def data_tables(self) -> list[DataTable]:
        return change_tables(self.comparison, self.budget.rows)

    @cached_property
    def findings(self) -> list[tuple[str, FindingView]]:
        """The findings of both sides with the places of their evidence, each with its side's name, numbered on from side to side."""
        views: list[tuple[str, FindingView]] = []
        if self.layout is None:
            return views
        shown = [side for side in self.compared if side.tables is not None]
        for at, side in enumerate(shown):
            groups = finding_groups(side.result, partial(self.layout.place, trace=at), str) if side.result else []
            for view in (view for group in groups for view in group.shown):
                finding = replace(view.finding, title=f"{view.finding.title} ({side.title})")
                key = f"{side.title}.{view.key}"
                views.append((side.title, replace(view, number=len(views), key=key, finding=finding)))
        return views

    @cached_property
    def page_data(self) -> Markup:
        return inline_json(page_data([view for _, view in self.findings]))
