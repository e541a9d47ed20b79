"""`traceanalyzer history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Disabled,
    Format,
    FormatOption,
    Jobs,
    MaxSize,
    Output,
    RuleFolders,
    Scheduler,
    Thresholds,
    begins_again,
    configuration,
    size_limit,
    write,
)
from traceanalyzer.cli.values import QuickCommand, QuickGroup
from traceanalyzer.terminal import tell

if TYPE_CHECKING:
    from traceanalyzer.result.history.entry import Entry

app = typer.Typer(
    cls=QuickGroup,
    help="Follow a program over many captures: what changed, when, and whose doing that is.",
    no_args_is_help=True,
)
EPILOG = "Exit codes: 0 done · 2 wrong usage or unreadable input."
To = Annotated[
    Path,
    typer.Option(
        "--to",
        metavar="PLACE",
        help="The history: a folder, or a URL such as s3://bucket/history. It is made.",
        show_default=False,
    ),
]
Place = Annotated[Path, typer.Argument(metavar="PLACE", help="A history: a folder or a URL.", show_default=False)]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="commit, branch, project, config, host, or one of your own; may be repeated. The first three and the host are taken from "
        "the variables of a pipeline, commit and branch also from Git, where they are not given.",
        show_default=False,
    ),
]


@app.command("add", cls=QuickCommand, epilog=EPILOG)
@begins_again
def add(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Each a trace, a folder or archive with one file a rank, a store, a result (analyze --format json), or a baseline.",
            show_default=False,
        ),
    ],
    to: To,
    labels: Labels = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="When it was recorded, such as 2026-11-30T02:00Z.",
            show_default="as the trace says, else when its file was last changed",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="LINK", help="Where its report is: a URL, or a path beside the history.", show_default="none"
        ),
    ] = None,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
) -> None:
    """Put captures into a history.

    Of each a row of figures and a small document are kept, never its events. One that is there already is left as it is. Any number of
    jobs may add to the same place at once.

    Example: traceanalyzer history add run.json.gz --to perf/history

    Example: traceanalyzer history add nightly/*.store --to s3://bucket/perf --label config=8gpu-bf16
    """
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.cli.captures import read_run
    from traceanalyzer.history.adding import labelled, moment
    from traceanalyzer.history.documents import is_document, run_of_document
    from traceanalyzer.history.shelf import Shelf
    from traceanalyzer.ingest.how import How

    config, how = configuration(thresholds, rules, disabled), How(jobs, scheduler, None, size_limit(max_size))
    given = moment(time) if time else None
    use_little_memory()
    shelf = Shelf(to)
    for place in captures:
        run = run_of_document(place) if is_document(place) else read_run(place, config, how)
        for entry, capture in labelled(run, labels or [], given, report):
            added = shelf.add(entry, capture)
            tell(f"{entry.name}: {'added' if added else 'was there already'}")
    shelf.pack()


@app.command("show", cls=QuickCommand, epilog=EPILOG)
def show(place: Place, format_: FormatOption = Format.TEXT, output: Output = Path("-")) -> None:
    """Say what changed in a history, when, and whose doing it is.

    Each series of captures has levels, and changes between them that are more than noise: real ones are the program's, others are
    of the way it was recorded (method) or of the hardware. A capture that is far off its neighbours is noise.

    Example: traceanalyzer history show perf/history
    """
    from traceanalyzer.cli.outputs import Outputs
    from traceanalyzer.render.history.trend_text import render_trend
    from traceanalyzer.result.history.trend import trend_of

    target = Outputs([place]).file(output)
    entries = _entries(place)
    trend = trend_of(entries)
    write(trend.to_json() if format_ is Format.JSON else render_trend(trend, entries).encode(), target)


@app.command("report", cls=QuickCommand, epilog=EPILOG)
def report(
    place: Place,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write; - is stdout.", show_default=False)
    ],
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default="History")] = None,
) -> None:
    """Write a history as a page: step time, ledger lines, findings and kinds of kernels over all captures.

    With levels, noise, changes and whose doing they are, and links to the captures' reports.

    Example: traceanalyzer history report perf/history -o trend.html
    """
    from traceanalyzer.cli.outputs import Outputs
    from traceanalyzer.report.trend_page import render_trend_html
    from traceanalyzer.result.history.trend import trend_of

    target = Outputs([place]).file(output)
    entries = _entries(place)
    trend = trend_of(entries)
    write(render_trend_html(trend, entries, title=title), target)
    if str(output) != "-":
        tell(trend.headline)


@app.command("fleet", cls=QuickCommand, epilog=EPILOG)
def fleet(
    place: Place,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only captures since then: 7d, 12h, or a time such as 2026-11-30.", show_default="all"
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
    output: Output = Path("-"),
) -> None:
    """Say which finding costs most GPU hours, by project and host, and which hosts and GPUs are slower at the same work.

    A capture stands for its job: label it with gpu_hours=N for what the job takes in all, else only what was recorded counts.

    Example: traceanalyzer history fleet s3://bucket/history --since 7d
    """
    import msgspec

    from traceanalyzer.cli.outputs import Outputs
    from traceanalyzer.history.adding import since_ns
    from traceanalyzer.render.history.fleet_text import render_fleet
    from traceanalyzer.result.history.fleet import fleet_of
    from traceanalyzer.result.history.trend import trend_of

    target, begin = Outputs([place]).file(output), since_ns(since) if since else 0
    entries = _entries(place)
    found = fleet_of(trend_of(entries), entries, begin)
    plain = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    write(plain if format_ is Format.JSON else render_fleet(found).encode(), target)


def _entries(place: Path) -> list[Entry]:
    from traceanalyzer.history.shelf import Shelf

    contents = Shelf(place).read()
    for one in contents.damaged:
        tell(f"left out: {one.name}: {one.reason}")
    return contents.entries


COMMAND = Command("history", app, order=55)
