"""The charts of the page: built here as plain figures, drawn in the page by plotly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import Chart, View
from traceanalyzer.report.charts.gpus import Gpu, Placing, gpus_of
from traceanalyzer.report.charts.heat import heat_charts
from traceanalyzer.report.charts.kernels import kinds_chart, top_kernels_chart
from traceanalyzer.report.charts.late import arrivals_chart, late_bars_chart
from traceanalyzer.report.charts.library import library, packed_library
from traceanalyzer.report.charts.memory import memory_chart
from traceanalyzer.report.charts.sizes import collectives_chart, copies_chart
from traceanalyzer.report.charts.steps import steps_chart
from traceanalyzer.report.charts.use import use_chart
from traceanalyzer.report.packing import packed_json
from traceanalyzer.report.timeline.lanes import RankName
from traceanalyzer.result.document import Result

__all__ = ["Charts", "build_charts"]


@dataclass(frozen=True)
class Charts:
    """Charts by section of the page, each only where its data exist. `gpus` are those among which the page lets one choose."""

    gpus: list[Gpu]
    of_gpu: list[Chart]
    of_all: list[Chart]
    job: list[Chart]
    evidence: list[Chart] = field(default_factory=list)

    @property
    def every(self) -> list[Chart]:
        return [*self.of_gpu, *self.of_all, *self.job, *self.evidence]

    @property
    def steps(self) -> Chart | None:
        return next((chart for chart in self.of_gpu if chart.id == "steps"), None)

    @property
    def code(self) -> str:
        """The text of the script that draws them, for the page's policy; empty when there is nothing to draw."""
        return library() if self.every else ""

    @property
    def packed_code(self) -> str:
        return packed_library()

    @property
    def data(self) -> str:
        """What the page's script reads: each chart's views by the number of their GPU."""
        return packed_json(
            {
                chart.id: [_view(at, view, bool(chart.choices)) for at, view in chart.views.items()]
                for chart in self.every
            }
        )


def build_charts(
    result: Result,
    tables: Tables | None,
    rank_name: RankName,
    placing: Placing,
    ahead: Mapping[int, int],
    gpu_names: Sequence[str] | None = None,
    shown_ranks: str | None = None,
) -> Charts:
    """`placing` says where evidence lies on the timeline, `ahead` how far ranks' clocks are ahead of the job's, in ns.

    `gpu_names` are those of `result.devices`; `shown_ranks` says whose copies are known, as in `build_tables`.
    """
    job = heat_charts(result, gpu_names) if result.job else []
    late = late_bars_chart(result)
    if tables is None:
        return Charts([], [], [], [*([late] if late else []), *job])
    gpus = gpus_of(tables, rank_name, placing)
    of_gpu = [make(gpus) for make in (steps_chart, use_chart, kinds_chart, top_kernels_chart, memory_chart)]
    of_all = [copies_chart(tables, shown_ranks), collectives_chart(tables)]
    arrivals = arrivals_chart(result, tables, rank_name, ahead) if result.job else None
    return Charts(gpus.every, _made(of_gpu), _made(of_all), [*_made([arrivals, late]), *job])


def _made(charts: list[Chart | None]) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


def _view(at: int | None, view: View, chosen: bool) -> dict[str, Any]:
    return {
        "gpu": None if chosen else at,
        "choice": at if chosen else None,
        "scale": view.scale,
        "caption": view.caption,
        "data": view.data,
        "layout": view.layout,
        "jumps": view.jumps,
        "best": view.best,
    }
