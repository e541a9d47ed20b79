"""The tables, one a tab."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.tables import packed_tables
from traceanalyzer.report.tables.plain import plain_table


def _view(page: ReportContext) -> dict[str, Any] | None:
    tables = page.data_tables
    if not tables:
        return None
    return {"data_tables": tables, "plain_table": plain_table, "tables_data": packed_tables(tables)}


SECTION = PageSection(
    name="tables",
    title="Tables",
    order=200,
    view=_view,
    styles=("tables.css",),
    scripts=("tables-data.js", "tables.js"),
    needs=("timeline",),
)
