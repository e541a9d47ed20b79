"""A comparison as a page: one HTML file like the report, with the timelines of both sides stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from traceanalyzer.columns import integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.data import places_of, redaction_of
from traceanalyzer.report.assets import STYLES, assets
from traceanalyzer.report.charts import Charts
from traceanalyzer.report.charts.step_samples import samples_chart
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.page_size import LIMIT, Budget, Made, fitted
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.sections.comparison_view import (
    BASE,
    NEW,
    line_views,
    main_cause,
    problem_groups,
    side_views,
    sum_of_lines,
)
from traceanalyzer.report.sections.findings_view import FindingView, finding_groups
from traceanalyzer.report.sections.glossary import COMPARISON, GLOSSARY
from traceanalyzer.report.sections.page_data import page_data
from traceanalyzer.report.tables import packed_tables
from traceanalyzer.report.tables.changes import change_tables
from traceanalyzer.report.tables.plain import plain_table
from traceanalyzer.report.templating import environment
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.report.timeline.stacked_timeline import Trace, draft_stacked_timeline
from traceanalyzer.report.timeline.timeline import Draft, Layout, made
from traceanalyzer.result.clocks import clock_offsets
from traceanalyzer.result.comparing.comparison import Comparison
from traceanalyzer.result.comparing.words import advice, noise_words, unit_words
from traceanalyzer.result.document import Result
from traceanalyzer.vocabulary.levels import HIGH, INFO


@dataclass(frozen=True)
class _Side:
    """One of the two: its event tables and its result, each only where it has one."""

    title: str
    tables: Tables | None
    result: Result | None


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
    sides = [_Side(BASE, base, base_result), _Side(NEW, new, new_result)]
    if redact:
        redaction = redaction_of(base, new, places=places_of(base_result, new_result))
        comparison = redaction.comparison(comparison)
        sides = [
            _Side(
                side.title,
                side.tables and redaction.tables(side.tables),
                side.result and redaction.result(side.result),
            )
            for side in sides
        ]
    shown = [side for side in sides if side.tables is not None]
    draft = draft_stacked_timeline([_trace(side) for side in shown]) if shown else None
    draft = draft if draft and draft.events else None
    return fitted(lambda budget: _page(comparison, sides, draft, title, budget), limit)


def _page(
    comparison: Comparison, sides: Sequence[_Side], draft: Draft | None, title: str | None, budget: Budget
) -> Made:
    shown = [side for side in sides if side.tables is not None]
    timeline = draft.timeline(budget.slices) if draft else None
    views = _finding_views(shown, timeline)
    chart = samples_chart(comparison)
    charts = Charts([], [], [chart] if chart else [], [])
    tables = change_tables(comparison, budget.rows)
    text = (
        environment()
        .get_template("comparison.html.j2")
        .render(
            title=title or f"{comparison.new.name} compared with {comparison.base.name}",
            assets=assets(charts.code, styles=(*STYLES, "comparison.css")),
            tool=comparison.tool,
            comparison=comparison,
            grave=HIGH,
            harmless=INFO,
            glossary=GLOSSARY | COMPARISON,
            unit=unit_words(comparison),
            noise=noise_words(comparison),
            advice=advice(comparison) if comparison.outcome == "could_not_judge" else [],
            sides=side_views(comparison),
            without_timeline=[side.title for side in sides if side.tables is None],
            cause=main_cause(comparison),
            lines=line_views(comparison),
            sum=sum_of_lines(comparison),
            groups=problem_groups(comparison.problems, _buttons(views)),
            charts=charts,
            data_tables=tables,
            plain_table=plain_table,
            tables_data=packed_tables(tables),
            timeline=timeline,
            timeline_ranks=None,
            page_data=inline_json(page_data([view for _, view in views])),
        )
    )
    return made(text, timeline)


def _trace(side: _Side) -> Trace:
    tables, result = side.tables, side.result
    assert tables is not None
    if result is None:
        return Trace(side.title, tables, _rank_namer(tables))
    evidence = [item for finding in result.findings for item in finding.evidence]
    return Trace(
        side.title, tables, gpu_names.rank_namer(result), evidence, clock_offsets(result), gpu_names.rank_claims(result)
    )


def _rank_namer(tables: Tables) -> RankName:
    """What to say before "GPU n" where no result tells: the rank as the tables number it, if there are several."""
    ops = table_or_none(tables, "gpu_ops")
    several = ops is not None and len(set(integers(ops, "rank").tolist())) > 1
    return lambda rank: f"rank {rank} · " if several else ""


def _finding_views(shown: Sequence[_Side], timeline: Layout | None) -> list[tuple[str, FindingView]]:
    """The findings of both sides with the places of their evidence, each with its side's name, numbered on from one to the other."""
    views: list[tuple[str, FindingView]] = []
    for at, side in enumerate(shown):
        if side.result is None or timeline is None:
            continue
        for group in finding_groups(side.result, partial(timeline.place, trace=at), str):
            for view in group.shown:
                finding = replace(view.finding, title=f"{view.finding.title} ({side.title})")
                views.append(
                    (side.title, replace(view, number=len(views), key=f"{side.title}.{view.key}", finding=finding))
                )
    return views


def _buttons(views: list[tuple[str, FindingView]]) -> dict[str, list[tuple[str, int, int]]]:
    """For each rule, of each side the first finding that the timeline shows: as `ProblemView.shows`."""
    buttons: dict[str, dict[str, tuple[str, int, int]]] = {}
    for title, view in views:
        if view.first_place is not None:
            of_rule = buttons.setdefault(view.finding.rule, {})
            of_rule.setdefault(title, (f"Show in {title}", view.number, view.first_place))
    return {rule: list(of_rule.values()) for rule, of_rule in buttons.items()}
