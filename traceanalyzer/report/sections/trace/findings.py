"""The findings, with their evidence, and what to change."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.trace.first import is_judged


def _view(page: ReportContext) -> dict[str, Any]:
    return {"groups": page.groups, "judged": is_judged(page.result)}


SECTION = PageSection(name="findings", title="Findings", order=30, view=_view)
