"""What sections of a page are made from: the result or the comparison, the tables behind it, and what several sections share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import Protocol

from markupsafe import Markup

from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts import Charts, build_charts
from traceanalyzer.report.evidence.section import SHOWN_ROWS, EvidenceView, evidence_view
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.page_size import Budget
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.sections.devices_view import DeviceView, device_views
from traceanalyzer.report.sections.findings_view import FindingGroup, finding_groups
from traceanalyzer.report.sections.many_gpus import gpus_to_show
from traceanalyzer.report.sections.page_data import page_data
from traceanalyzer.report.tables import build_tables
from traceanalyzer.report.tables.table import DataTable
from traceanalyzer.report.timeline.lanes import RankName
from traceanalyzer.report.timeline.places import Place
from traceanalyzer.report.timeline.timeline import Draft, Timeline
from traceanalyzer.report.trees.forest import Forest
from traceanalyzer.result.clocks import clock_offsets
from traceanalyzer.result.document import Evidence, Result
from traceanalyzer.result.sections import Section


class Context(Protocol):
    """What the page around its sections needs to know."""

    timeline: Timeline | None

    @property
    def title(self) -> str: ...
    @property
    def tool(self) -> Mapping[str, str]: ...
    @property
    def charts(self) -> Charts: ...
    @property
    def page_data(self) -> Markup: ...


@dataclass
class ReportContext:
    """Of a report. `layout` is the timeline's lanes, `timeline` these as the page holds them; neither where nothing ran. Tables of the
    page have `budget.rows` at most. Only `timeline` changes once it is made: what is shared must not depend on it."""

    result: Result
    tables: Tables | None
    layout: Draft | None
    forest: Forest | None
    given_title: str | None
    budget: Budget
    sections: Sequence[Section] = ()
    timeline: Timeline | None = None

    @cached_property
    def input_names(self) -> list[str]:
        return gpu_names.input_names(self.result)

    @property
    def title(self) -> str:
        files = self.input_names or [PurePath(one.path).name for one in self.result.evidence]
        return self.given_title or gpu_names.title(files)

    @property
    def tool(self) -> Mapping[str, str]:
        return self.result.tool

    @cached_property
    def rank_name(self) -> RankName:
        """Whose a GPU is, by its rank in the tables."""
        return gpu_names.rank_namer(self.result)

    @cached_property
    def labels(self) -> list[str]:
        """What each of `result.devices` is called."""
        return gpu_names.gpu_labels(self.result, self.tables, self.rank_name)

    @cached_property
    def gpus(self) -> list[str]:
        """The same as shortly as possible."""
        return gpu_names.gpu_names(self.result, self.labels)

    def place(self, evidence: Evidence) -> Place | None:
        """Where evidence lies on the timeline; None when that does not show it."""
        return self.layout.place(evidence) if self.layout else None

    @cached_property
    def groups(self) -> list[FindingGroup]:
        """The findings, by rule."""
        layout = self.layout
        return finding_groups(
            self.result, self.place, lambda number: layout.groups[number].label if layout is not None else ""
        )

    @cached_property
    def timeline_ranks(self) -> str | None:
        """Which ranks the timeline shows; None when it shows all of them."""
        return gpu_names.timeline_ranks(self.result, self.layout)

    @cached_property
    def shown_gpus(self) -> list[int]:
        """The positions in `result.devices` of the GPUs whose ledgers and steps are drawn."""
        return gpus_to_show(self.result)

    @cached_property
    def devices(self) -> list[DeviceView]:
        """The ledgers of these."""
        return device_views(self.shown_gpus, self.result.devices, self.labels)

    @cached_property
    def evidence(self) -> dict[str, EvidenceView]:
        """What other kinds of evidence add to the report, by the names of their sections; without those that have nothing to show."""
        found = (evidence_view(one, self.budget.rows, self.budget.nodes) for one in self.sections)
        return {view.name: view for view in found if view is not None}

    @cached_property
    def data_tables(self) -> list[DataTable]:
        """All tables; of evidence those that its own section does not show whole."""
        own = build_tables(self.result, self.tables, self.layout, self.timeline_ranks, self.budget.rows, self.gpus)
        return [*own, *(one for view in self.evidence.values() for one in view.tables if one.rows > SHOWN_ROWS)]

    @cached_property
    def charts(self) -> Charts:
        found = build_charts(
            self.result,
            self.tables,
            self.rank_name,
            self.place,
            clock_offsets(self.result),
            self.gpus,
            self.timeline_ranks,
        )
        return replace(found, evidence=[chart for view in self.evidence.values() for chart in view.charts])

    @cached_property
    def page_data(self) -> Markup:
        return inline_json(page_data([finding for group in self.groups for finding in group.shown]))
