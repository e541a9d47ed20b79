"""A comparison as a page: one HTML file like the report, with the timelines of both sides stacked."""

from __future__ import annotations

from functools import cache

from traceanalyzer.columns import integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.data import places_of, redaction_of
from traceanalyzer.report.comparison_context import Compared, ComparisonContext
from traceanalyzer.report.page_size import LIMIT, Budget, Made, fit_page
from traceanalyzer.report.registry import sections_of
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.sections.comparison_view import BASE, NEW
from traceanalyzer.report.sections.glossary import COMPARISON, GLOSSARY
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.report.timeline.stacked_timeline import Trace, draft_stacked_timeline
from traceanalyzer.report.walk import Walk, Words
from traceanalyzer.result.clocks import clock_offsets
from traceanalyzer.result.comparing.comparison import Comparison
from traceanalyzer.result.document import Result


def render_comparison_html(
    comparison: Comparison,
    base: Tables | None,
    new: Tables | None,
    *,
    title: str | None = None,
    limit: int = LIMIT,
    redact: bool = True,
    base_result: Result | None = None,
    new_result: Result | None = None,
) -> bytes:
    """The page as UTF-8 HTML of at most `limit` bytes; the same comparison and tables give the same bytes.

    `base` and `new` are the tables of the ranks to show, and the results belong to them: they name ranks and tell where findings lie.
    A side without tables has no timeline. Paths, users and hosts are left out unless `redact` is false. Raises InputError when the
    page cannot be made small enough.
    """
    schema = f"comparison schema {comparison.schema_version}"
    walk = Walk(sections_of("comparison"), Words("comparison", schema, GLOSSARY | COMPARISON))
    sides = [Compared(BASE, base, base_result), Compared(NEW, new, new_result)]
    if redact:
        redaction = redaction_of(base, new, places=places_of(base_result, new_result))
        comparison = redaction.comparison(comparison)
        sides = [
            Compared(
                side.title,
                side.tables and redaction.tables(side.tables),
                side.result and redaction.result(side.result),
            )
            for side in sides
        ]
    shown = [side for side in sides if side.tables is not None]
    draft = draft_stacked_timeline([_trace(side) for side in shown]) if shown else None
    draft = draft if draft and draft.events else None

    @cache  # growing and shrinking ask for the same again
    def context(rows: int) -> ComparisonContext:
        return ComparisonContext(comparison, sides, draft, title, Budget(rows=rows))

    def page(budget: Budget) -> Made:
        known = context(budget.rows)
        known.timeline = draft.timeline(budget.slices) if draft else None
        return walk.page(known, budget.rows)

    return fit_page(page, limit)


def _trace(side: Compared) -> Trace:
    tables, result = side.tables, side.result
    assert tables is not None
    if result is None:
        return Trace(side.title, tables, _rank_namer(tables))
    evidence = [item for finding in result.findings for item in finding.evidence]
    return Trace(
        side.title, tables, gpu_names.rank_namer(result), evidence, clock_offsets(result), gpu_names.rank_claims(result)
    )


def _rank_namer(tables: Tables) -> RankName:
    """Whose a GPU is where no result tells: the rank as the tables number it, if there are several."""
    ops = table_or_none(tables, "gpu_ops")
    several = ops is not None and len(set(integers(ops, "rank").tolist())) > 1
    return lambda rank: f"rank {rank}" if several else ""
