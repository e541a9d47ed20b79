"""`traceanalyzer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import (
    Disabled,
    FailOn,
    Inputs,
    Jobs,
    MaxSize,
    RuleFolders,
    Scheduler,
    Store,
    Thresholds,
    analyzed,
    check_output,
    configuration,
    exit_code,
    size_limit,
    write,
)

RANKS_SHOWN = 8
"""More than that on one timeline no one looks through, and no page should carry."""


def report(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write; - is stdout.")
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="Title of the report.", show_default="the name of the input")
    ] = None,
    fail_on: FailOn = None,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    store: Store = None,
    max_size: MaxSize = None,
) -> None:
    """Write an HTML report: verdict, ledger, findings, timeline, fixes.

    One file that needs no network and no other file, so it can be mailed or kept as a CI artifact.

    Example: traceanalyzer report trace.json.gz -o report.html
    """
    from traceanalyzer.analysis import Shown
    from traceanalyzer.analysis.opening import How
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.report.html import render_html
    from traceanalyzer.report.selection import ranks_to_show

    check_output(output, inputs)
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    use_little_memory()
    with analyzed(inputs, config, How(jobs, scheduler, store, limit)) as (parts, found):
        result = found.result
        shown = [parts[at] for at in ranks_to_show(result, RANKS_SHOWN)]
        write(render_html(result, Shown(shown, config, found.tables), title=title), output)
    typer.echo(result.verdict.headline, err=True)
    if str(output) != "-":
        typer.echo(f"report: {output}", err=True)
    raise typer.Exit(exit_code(result, fail_on))
