"""The ledger of each GPU: where its time went."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.sections.devices_view import ledger_legend
from traceanalyzer.report.sections.many_gpus import many_gpus


def _view(page: ReportContext) -> dict[str, Any] | None:
    if not page.devices:
        return None
    return {
        "devices": page.devices,
        "many": many_gpus(page.result, page.gpus),
        "legend": ledger_legend(page.devices),
    }


SECTION = PageSection(name="ledger", order=20, view=_view)
