"""The report: one HTML file with everything inside it. It never asks the network for anything, and its policy forbids it to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from traceanalyzer.redaction.data import redacted
from traceanalyzer.report import sources, words
from traceanalyzer.report.budget import LIMIT, Budget, fitted
from traceanalyzer.report.charts import build_charts
from traceanalyzer.report.devices_view import device_views, ledger_legend
from traceanalyzer.report.findings_view import FindingView, finding_groups
from traceanalyzer.report.first_view import first_view
from traceanalyzer.report.glossary import GLOSSARY
from traceanalyzer.report.job_view import job_view
from traceanalyzer.report.lanes import TimelineTables
from traceanalyzer.report.many_gpus import gpus_to_show, many_gpus
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.palette import SWATCHES, colour_rules
from traceanalyzer.report.rules_view import silent_rules
from traceanalyzer.report.steps_view import steps_views
from traceanalyzer.report.tables import build_tables, packed_tables
from traceanalyzer.report.timeline import Timeline, build_timeline
from traceanalyzer.resources import data_folder
from traceanalyzer.result.document import Result
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.units import format_bytes, format_count, format_share

STYLES = ("report.css", "timeline.css", "charts.css", "tables.css")
SCRIPTS = (
    "data.js",
    "dom.js",
    "format.js",
    "timeline-data.js",
    "timeline-layout.js",
    "timeline-columns.js",
    "timeline-paint.js",
    "timeline-links.js",
    "timeline-search.js",
    "timeline-hit.js",
    "timeline-details.js",
    "timeline-minimap.js",
    "timeline-selection.js",
    "timeline-input.js",
    "timeline-address.js",
    "timeline.js",
    "timeline-start.js",
    "perfetto.js",
    "charts.js",
    "tables-data.js",
    "tables.js",
    "page.js",
)


def render_html(
    result: Result, tables: TimelineTables | None, *, title: str | None = None, limit: int = LIMIT, redact: bool = True
) -> bytes:
    """The report as UTF-8 HTML of at most `limit` bytes; the same result and tables give the same bytes.

    Without tables it has no timeline. Paths, users and hosts are left out unless `redact` is false. Raises InputError when the page
    cannot be made small enough.
    """
    if redact:
        result, tables = redacted(result, tables)
    return fitted(lambda budget: _page(result, tables, title, budget), limit)


def _page(result: Result, tables: TimelineTables | None, title: str | None, budget: Budget) -> bytes:
    names = sources.input_names(result)
    rank_name = sources.rank_namer(result)
    timeline = None
    if tables is not None:
        every = [item for finding in result.findings for item in finding.evidence]
        timeline = build_timeline(
            tables,
            rank_name,
            every,
            sources.clock_offsets(result),
            claims=sources.rank_claims(result),
            most=budget.slices,
        )
        timeline = timeline if timeline.events else None
    place = timeline.place if timeline else lambda _: None
    groups = finding_groups(result, place)
    findings = [finding for group in groups for finding in group.shown]
    timeline_ranks = sources.timeline_ranks(result, timeline)
    data_tables = build_tables(result, tables, timeline, timeline_ranks, budget.rows)
    charts = build_charts(result, tables, rank_name, place, sources.clock_offsets(result))
    shown, steps = gpus_to_show(result)
    devices = device_views(shown)
    scripts = [Markup(_read(name)) for name in SCRIPTS]
    style = Markup(colour_rules() + "".join(_read(name) for name in STYLES))
    page = _environment().get_template("report.html.j2")
    text = page.render(
        title=title or _title(names),
        policy=_policy(style, [*scripts, charts.code]),
        style=style,
        scripts=scripts,
        result=result,
        input_names=names,
        first=first_view(result, [group.first for group in groups]),
        glossary=GLOSSARY,
        devices=devices,
        many=many_gpus(result),
        job=job_view(result),
        legend=ledger_legend(devices),
        swatches=SWATCHES,
        groups=groups,
        steps=steps_views(steps),
        charts=charts,
        data_tables=data_tables,
        tables_data=packed_tables(data_tables),
        silent=silent_rules(result),
        timeline=timeline,
        timeline_ranks=timeline_ranks,
        page_data=inline_json(_page_data(findings, timeline)),
    )
    return text.encode()


def _title(names: list[str]) -> str:
    if not names:
        return "GPU time report"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _page_data(findings: list[FindingView], timeline: Timeline | None) -> dict[str, Any]:
    """What the scripts need beside the timeline's blob: of each finding, by its number, where its evidence lies and what it says."""
    places = {
        str(f.number): [
            None if item.place is None else [item.place.start, item.place.end, item.place.group, item.label]
            for item in f.evidence
        ]
        for f in findings
        if f.first_place is not None
    }
    about = {
        str(f.number): [
            f"{f.finding.rule} {f.finding.title}",
            f.finding.severity,
            f.finding.message,
            f.gain and f.gain.words,
        ]
        for f in findings
        if f.first_place is not None
    }
    rules = {f.finding.rule: f.number for f in reversed(findings)}
    return (
        {"evidence": places, "findings": about, "rules": rules}
        if timeline
        else {"evidence": {}, "findings": {}, "rules": {}}
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy that allows this style and these scripts, by their hashes, and nothing else.

    But for one: the empty style sheet, which plotly makes and fills rule by rule.
    """
    allowed = " ".join(_hash(script) for script in scripts if script)
    styles = f"{_hash(style)} {_hash('')}"
    return f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (data_folder("templates") / name).read_text(encoding="utf-8")


def _milliseconds(ns: int) -> str:
    """Milliseconds with three decimals, so that figures align in a column."""
    return f"{ns / 1e6:,.3f}"


def _tenths(share: float) -> str:
    """Percent with one decimal, so that figures align in a column; what is tiny but there is never shown as zero."""
    return "<0.1%" if 0 < share < 0.0005 else f"{share * 100:.1f}%"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        duration=words.format_duration,
        readable=words.readable,
        sentence=words.sentence,
        bytes=format_bytes,
        share=format_share,
        tenths=_tenths,
        count=format_count,
        ranks=rank_list,
        ms=_milliseconds,
    )
    return environment
