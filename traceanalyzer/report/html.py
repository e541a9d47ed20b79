"""The report: one HTML file with everything inside it. It never asks the network for anything, and its policy forbids it to."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import jinja2
from markupsafe import Markup

from traceanalyzer.report import view
from traceanalyzer.report.job_view import job_view
from traceanalyzer.report.lanes import TimelineTables
from traceanalyzer.report.many_gpus import gpus_to_show, many_gpus
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.palette import SWATCHES, colour_rules
from traceanalyzer.report.timeline import Timeline, build_timeline
from traceanalyzer.resources import data_folder
from traceanalyzer.result.document import Result
from traceanalyzer.result.ranks import notes, rank_list
from traceanalyzer.units import format_bytes, format_count, format_share

STYLES = ("report.css", "timeline.css", "charts.css", "tables.css")
SCRIPTS = ("data.js", "timeline-data.js", "timeline-paint.js", "timeline.js", "page.js")


def render_html(result: Result, tables: TimelineTables | None, *, title: str | None = None) -> bytes:
    """The report as UTF-8 HTML; the same result and tables give the same bytes. Without tables it has no timeline."""
    names = view.input_names(result)
    rank_name = view.rank_namer(result)
    timeline = None
    if tables is not None:
        every = [item for finding in result.findings for item in finding.evidence]
        timeline = build_timeline(tables, rank_name, every, view.clock_offsets(result))
        timeline = timeline if timeline.events else None
    groups = view.finding_groups(result, timeline.place if timeline else lambda _: None)
    findings = [finding for group in groups for finding in group.shown]
    kernels, kernel_count = view.kernel_views(tables, sum(device.window_ns for device in result.devices))
    shown, steps = gpus_to_show(result)
    devices = view.device_views(shown)
    scripts = [Markup(_read(name)) for name in SCRIPTS]
    style = Markup(colour_rules() + "".join(_read(name) for name in STYLES))
    page = _environment().get_template("report.html.j2")
    text = page.render(
        title=title or _title(names),
        policy=_policy(style, scripts),
        style=style,
        scripts=scripts,
        result=result,
        input_names=names,
        bound=view.bound_swatch(result),
        notes=notes(result.health),
        devices=devices,
        many=many_gpus(result),
        job=job_view(result),
        legend=view.ledger_legend(devices),
        swatches=SWATCHES,
        groups=groups,
        best=min(
            (finding for finding in findings if finding.finding.saving.pays), key=lambda f: f.number, default=None
        ),
        steps=view.steps_views(steps, tables),
        kernels=kernels,
        kernel_count=kernel_count,
        several_gpus=len(result.devices) > 1,
        silent=view.silent_rules(result),
        timeline=timeline,
        timeline_ranks=view.timeline_ranks(result, timeline),
        page_data=inline_json(_page_data(findings, timeline)),
    )
    return text.encode()


def _title(names: list[str]) -> str:
    if not names:
        return "GPU time report"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _page_data(findings: list[view.FindingView], timeline: Timeline | None) -> dict[str, Any]:
    """What the scripts need beside the timeline's blob: where each piece of evidence lies, by the number of its finding."""
    places = {
        str(f.number): [
            None if item.place is None else [item.place.start, item.place.end, item.place.group, item.label]
            for item in f.evidence
        ]
        for f in findings
        if f.first_place is not None
    }
    return {"evidence": places if timeline else {}}


def _policy(style: str, scripts: list[Markup]) -> str:
    """A content security policy that allows this style and these scripts, by their hashes, and nothing else."""
    allowed = " ".join(_hash(script) for script in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"


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
        duration=view.format_duration,
        readable=view.readable,
        bytes=format_bytes,
        share=format_share,
        tenths=_tenths,
        count=format_count,
        ranks=rank_list,
        ms=_milliseconds,
    )
    return environment
