"""The report: one HTML file with everything inside it. It never asks the network for anything, and its policy forbids it to."""

from __future__ import annotations

from functools import cache
from typing import Any

from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.data import redacted
from traceanalyzer.report.assets import assets
from traceanalyzer.report.charts import build_charts
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.page_size import LIMIT, Budget, Made, fitted
from traceanalyzer.report.sections import gpu_names
from traceanalyzer.report.sections.devices_view import device_views, ledger_legend
from traceanalyzer.report.sections.findings_view import finding_groups
from traceanalyzer.report.sections.first_view import first_view
from traceanalyzer.report.sections.glossary import GLOSSARY
from traceanalyzer.report.sections.job_view import job_view
from traceanalyzer.report.sections.many_gpus import gpus_to_show, many_gpus
from traceanalyzer.report.sections.page_data import page_data
from traceanalyzer.report.sections.rules_view import silent_rules
from traceanalyzer.report.sections.steps_view import steps_views
from traceanalyzer.report.tables import build_tables, packed_tables
from traceanalyzer.report.tables.plain import plain_table
from traceanalyzer.report.templating import environment
from traceanalyzer.report.timeline.timeline import Draft, Layout, draft_timeline, made
from traceanalyzer.report.trees.forest import Forest, read_forest
from traceanalyzer.report.trees.view import call_trees_view
from traceanalyzer.result.clocks import clock_offsets
from traceanalyzer.result.document import Result


def render_html(
    result: Result, tables: Tables | None, *, title: str | None = None, limit: int = LIMIT, redact: bool = True
) -> bytes:
    """The report as UTF-8 HTML of at most `limit` bytes; the same result and tables give the same bytes.

    Without tables it has no timeline. Paths, users and hosts are left out unless `redact` is false. Raises InputError when the page
    cannot be made small enough.
    """
    if redact:
        result, tables = redacted(result, tables)
    draft = None if tables is None else _draft(result, tables)
    forest = None if tables is None else read_forest(tables)
    parts = cache(
        lambda rows, nodes: _parts(result, tables, draft, forest, title, rows, nodes)
    )  # growing and shrinking ask for the same again

    def page(budget: Budget) -> Made:
        timeline = draft.timeline(budget.slices) if draft else None
        return made(
            environment().get_template("report.html.j2").render(timeline=timeline, **parts(budget.rows, budget.nodes)),
            timeline,
        )

    return fitted(page, limit)


def _draft(result: Result, tables: Tables) -> Draft | None:
    every = [item for finding in result.findings for item in finding.evidence]
    rank_name, claims = gpu_names.rank_namer(result), gpu_names.rank_claims(result)
    draft = draft_timeline(tables, rank_name, every, clock_offsets(result), claims=claims)
    return draft if draft.events else None


def _parts(
    result: Result,
    tables: Tables | None,
    layout: Layout | None,
    forest: Forest | None,
    title: str | None,
    rows: int,
    nodes: int,
) -> dict[str, Any]:
    """What the template shows beside the timeline, with so many rows in each table and nodes in trees of calls."""
    names = gpu_names.input_names(result)
    rank_name, ahead = gpu_names.rank_namer(result), clock_offsets(result)
    place = layout.place if layout else lambda _: None
    labels = gpu_names.gpu_labels(result, tables, rank_name)
    gpus = gpu_names.gpu_names(result, labels)
    groups = finding_groups(result, place, lambda number: layout.groups[number].label if layout else "")
    findings = [finding for group in groups for finding in group.shown]
    timeline_ranks = gpu_names.timeline_ranks(result, layout)
    data_tables = build_tables(result, tables, layout, timeline_ranks, rows, gpus)
    charts = build_charts(result, tables, rank_name, place, ahead, gpus, timeline_ranks)
    shown = gpus_to_show(result)
    devices = device_views(shown, result.devices, labels)
    return {
        "title": title or gpu_names.title(names),
        "assets": assets(charts.code),
        "tool": result.tool,
        "result": result,
        "input_names": names,
        "first": first_view(result, [group.first for group in groups]),
        "glossary": GLOSSARY,
        "devices": devices,
        "many": many_gpus(result, gpus),
        "job": job_view(result),
        "legend": ledger_legend(devices),
        "groups": groups,
        "steps": steps_views(shown, result, labels),
        "unprofiled": any(steps.unprofiled_step_ns is not None for steps in result.steps),
        "charts": charts,
        "call_trees": None
        if tables is None
        else call_trees_view(forest, tables, rank_name, nodes, result.verdict.bound_by),
        "data_tables": data_tables,
        "plain_table": plain_table,
        "tables_data": packed_tables(data_tables),
        "silent": silent_rules(result),
        "timeline_ranks": timeline_ranks,
        "page_data": inline_json(page_data(findings)),
    }
