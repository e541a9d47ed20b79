"""Sections of other kinds of evidence: what all of them need, and one of the page for each of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.evidence.section import SHOWN_ROWS
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.tables.plain import plain_table
from traceanalyzer.result.sections import Section

SECTION = PageSection[ReportContext](
    name="evidence",
    order=100,
    view=lambda _: None,
    styles=("evidence.css",),
    scripts=("flames.js",),
    needs=("stacks", "charts", "tables"),
)
"""Never shown itself: the styles and scripts of those that are."""


def evidence_sections(sections: Iterable[Section]) -> list[PageSection[ReportContext]]:
    """For each of theirs one of the page. It stands where that says, and is left out where it has nothing to show."""
    return [_of(section) for section in sections]


def _of(section: Section) -> PageSection[ReportContext]:
    def view(page: ReportContext) -> dict[str, Any] | None:
        found = page.evidence.get(section.name)
        return {"view": found, "plain_table": plain_table, "shown_rows": SHOWN_ROWS} if found else None

    return PageSection(
        name=section.name,
        title=section.title,
        order=section.order,
        view=view,
        template="evidence.html.j2",
        needs=(SECTION.name,),
    )
