"""`traceanalyzer report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    JUDGED,
    RANKS_SHOWN,
    Disabled,
    FailOn,
    Inputs,
    Jobs,
    MaxSize,
    Offsets,
    Redacted,
    RuleFolders,
    Scheduler,
    Store,
    Thresholds,
    begins_again,
    configuration,
    exit_code,
    offsets_of,
    refuse_nan,
    size_limit,
    write,
)
from traceanalyzer.cli.judging import analysis_of
from traceanalyzer.cli.outputs import Also, Outputs
from traceanalyzer.errors import InputError
from traceanalyzer.render.output import output_names
from traceanalyzer.terminal import tell


@begins_again
def report(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write; - is stdout.")
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="Title of the report.", show_default="the name of the input")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the report in your browser when it is written.")] = False,
    also: Also = None,
    redact: Redacted = True,
    limit_mb: Annotated[
        float,
        typer.Option(
            "--limit-mb",
            callback=refuse_nan,
            metavar="N",
            min=0.1,
            max=1000,
            help="The report is never larger than this, in MB. The more room, the finer the timeline, of as many slices as fit, "
            "up to a million, and the longer the tables.",
        ),
    ] = 10,
    fail_on: FailOn = None,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    store: Store = None,
    max_size: MaxSize = None,
    offset: Offsets = None,
) -> None:
    """Write an HTML report: verdict, ledger, findings, timeline, fixes.

    One file that needs no network and no other file, so it can be mailed or kept as a CI artifact. It does not say who you are or
    where it was recorded (see --redact), but the names of your kernels, operators and ranges are in it.

    Example: traceanalyzer report trace.json.gz -o report.html --open

    Example: traceanalyzer report trace.json.gz -o report.html --also json=result.json --also markdown=summary.md

    Example: traceanalyzer report ranks/ --title "7B, 64 GPUs, run 12" --limit-mb 25
    """
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.ingest.how import How

    if open_ and str(output) == "-":
        raise InputError("--open: standard output cannot be shown in a browser; name a file with -o")
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    outputs = Outputs(inputs, config)
    page, others = outputs.file(output), outputs.also(also, output_names("result"))
    how = How(jobs, scheduler, outputs.store(store), limit, offsets=offsets_of(offset))
    use_little_memory()
    with analysis_of(inputs, config, how, shown=True) as (parts, found):
        from traceanalyzer.analysis import ReportTables
        from traceanalyzer.render.formats import rendered
        from traceanalyzer.report.html import render_html
        from traceanalyzer.report.page_size import MEGABYTE
        from traceanalyzer.report.timeline.selection import ranks_to_show

        result = found.result
        shown = [parts[at] for at in ranks_to_show(result, RANKS_SHOWN)]
        tables = ReportTables(shown, config, found.tables)
        with tables.ahead(how.jobs):
            html = render_html(
                result, tables, sections=found.sections, title=title, limit=int(limit_mb * MEGABYTE), redact=redact
            )
        write(html, page)
        contents = rendered(result, found.tables, [name for name, _ in others], fail_on, redact, found.sections)
        for content, (_, file) in zip(contents, others, strict=True):
            write(content, file)
    tell(result.verdict.headline)
    if str(output) != "-":
        tell(f"report: {output}")
    if open_:
        show(page)
    raise typer.Exit(exit_code(result, fail_on))


def show(page: Path) -> None:
    """Open a page in the user's browser, or say where it is."""
    import webbrowser

    address = page.as_uri()
    if not webbrowser.open(address):
        tell(f"no browser found; open {address} yourself")


COMMAND = Command("report", report, order=10, epilog=JUDGED)
