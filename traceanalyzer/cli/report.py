"""`traceanalyzer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import (
    Disabled,
    FailOn,
    Inputs,
    MaxSize,
    RuleFolders,
    Thresholds,
    check_output,
    configuration,
    exit_code,
    reading,
    size_limit,
    write,
)


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
    max_size: MaxSize = None,
) -> None:
    """Write an HTML report: verdict, ledger, findings, timeline, fixes.

    One file that needs no network and no other file, so it can be mailed or kept as a CI artifact.

    Example: traceanalyzer report trace.json.gz -o report.html
    """
    from traceanalyzer.analysis import analyze_tables, catalog_of, load
    from traceanalyzer.ingest.arrow import use_little_memory
    from traceanalyzer.report.html import render_html

    check_output(output, inputs)
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    use_little_memory()
    with reading() as progress:
        trace = load(inputs, progress, limit)
    catalog = catalog_of(trace, config)
    result = analyze_tables(trace, catalog, config)
    write(render_html(result, catalog, title=title), output)
    typer.echo(result.verdict.headline, err=True)
    if str(output) != "-":
        typer.echo(f"report: {output}", err=True)
    raise typer.Exit(exit_code(result, fail_on))
