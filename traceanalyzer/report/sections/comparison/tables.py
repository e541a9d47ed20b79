"""What changed, as tables."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.comparison_context import ComparisonContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.trace import tables
from traceanalyzer.report.tables import packed_tables
from traceanalyzer.report.tables.plain import plain_table


def _view(page: ComparisonContext) -> dict[str, Any] | None:
    found = page.data_tables
    if not found:
        return None
    return {"data_tables": found, "plain_table": plain_table, "tables_data": packed_tables(found)}


SECTION = PageSection(
    name="tables",
    page="comparison",
    title="Tables",
    order=50,
    view=_view,
    styles=tables.SECTION.styles,
    scripts=tables.SECTION.scripts,
    needs=tables.SECTION.needs,
)
