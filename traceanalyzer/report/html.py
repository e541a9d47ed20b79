"""The report: one HTML file with everything inside it. It never asks the network for anything, and its policy forbids it to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.data import places_of, redaction_of
from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.page_size import LIMIT, Budget, Made, fit_page
from traceanalyzer.report.registry import sections_of
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.sections.glossary import GLOSSARY
from traceanalyzer.report.sections.trace.evidence import evidence_sections
from traceanalyzer.report.timeline.timeline import Draft, draft_timeline
from traceanalyzer.report.trees.forest import Forest, read_forest
from traceanalyzer.report.walk import Walk, Words
from traceanalyzer.result.clocks import clock_offsets
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Lane, Section


def render_html(
    result: Result,
    tables: Tables | None,
    *,
    sections: Sequence[Section] = (),
    title: str | None = None,
    limit: int = LIMIT,
    redact: bool = True,
) -> bytes:
    """The report as UTF-8 HTML of at most `limit` bytes; the same result and tables give the same bytes.

    Without tables it has no timeline. `sections` are those of other kinds of evidence. Paths, users and hosts are left out unless
    `redact` is false. Raises InputError when the page cannot be made small enough.
    """
    folder = gpu_names.job_folder(result)
    known_sections = sections_of("report", evidence_sections(sections))
    walk = Walk(known_sections, Words("report", f"result schema {result.schema_version}", GLOSSARY))
    if redact:
        redaction = redaction_of(tables, places=places_of(result))
        folder = folder and redaction.text(folder)
        result, sections = redaction.result(result), redaction.sections(sections)
        tables = None if tables is None else redaction.tables(tables)
    lanes = [lane for section in sections for lane in section.lanes]
    draft = None if tables is None else _draft(result, tables, lanes)

    @cache
    def forest() -> Forest | None:
        return None if tables is None else read_forest(tables)

    @cache  # growing and shrinking ask for the same again
    def context(rows: int) -> ReportContext:
        return ReportContext(result, tables, draft, forest(), title or folder, Budget(rows=rows), sections)

    def page(budget: Budget) -> Made:
        # First, since the trees may be in the making meanwhile.
        timeline = draft.timeline(budget.slices) if draft else None
        known = context(budget.rows)
        known.timeline = timeline
        return walk.page(known, budget.rows)

    return fit_page(page, limit)


def _draft(result: Result, tables: Tables, lanes: Sequence[Lane]) -> Draft | None:
    every = [item for finding in result.findings for item in finding.evidence]
    rank_name, claims = gpu_names.rank_namer(result), gpu_names.rank_claims(result)
    draft = draft_timeline(tables, rank_name, every, clock_offsets(result), claims=claims, lanes=lanes)
    return draft if draft.events else None
