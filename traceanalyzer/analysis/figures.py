"""The report's charts as figures, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.analysis import analyze_parts, parts_of
from traceanalyzer.analysis.report_tables import ReportTables
from traceanalyzer.config import Config
from traceanalyzer.model.trace import Trace
from traceanalyzer.report.charts import build_charts
from traceanalyzer.report.charts.notebook import notebook_figures
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.result.clocks import clock_offsets

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def figures(trace: Trace, config: Config | None = None) -> dict[str, Figure]:
    """The charts of a report of this trace as plotly's figures, by their titles, each only where its data exist.

    Nothing is left out of names. Raises ConfigError for rules that do not fit.
    """
    config = config or Config()
    parts = parts_of(trace)
    found = analyze_parts(parts, config)
    tables = ReportTables(parts, config, found.tables)
    rank_name = gpu_names.rank_namer(found.result)
    gpus = gpu_names.gpu_names(found.result, gpu_names.gpu_labels(found.result, tables, rank_name))
    charts = build_charts(found.result, tables, rank_name, lambda _: None, clock_offsets(found.result), gpus)
    return notebook_figures(charts)
