"""`traceanalyzer compare`."""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.captures import Branch, History, Last, OfSeries, last_of_history, read_run, run_of
from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Disabled,
    Jobs,
    MaxSize,
    Output,
    Redacted,
    RuleFolders,
    Scheduler,
    Severity,
    Thresholds,
    begins_again,
    choice,
    configuration,
    refuse_nan,
    size_limit,
    write,
)
from traceanalyzer.cli.outputs import Also, Outputs
from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass
from traceanalyzer.render.output import formats_help, output_names
from traceanalyzer.terminal import tell

if TYPE_CHECKING:
    from traceanalyzer.analysis import ReportTables
    from traceanalyzer.analysis.captures import Run
    from traceanalyzer.result.comparing.comparison import Comparison

EPILOG = (
    "Exit codes: 0 no slower than --fail-over allows · 1 slower than that, or a new finding at or above --fail-on-new · "
    "2 wrong usage or unreadable input · 3 could not judge (not comparable, nothing to compare, a damaged side in which "
    "nothing worse was found, or slower than that within the noise). The comparison is written with 1 and 3 too."
)
RANKS_COMPARED = 4
"""Of a larger job so many ranks have a timeline in the HTML page, on either side."""


HTML = "html"
"""The page, which takes the events of both sides."""
FORMATS = [*output_names("comparison"), HTML]
if TYPE_CHECKING:
    CompareFormat = str
else:
    CompareFormat = choice("CompareFormat", FORMATS)
"""How a comparison is written."""
AS_TEXT = CompareFormat("text")


@dataclass(frozen=True)
class Style:
    """How it looks: what `--title`, `--redact` and `--limit-mb` say."""

    title: str | None
    redact: bool
    limit_mb: float


@begins_again
def compare(
    base: Annotated[
        Path,
        typer.Argument(
            metavar="BASE",
            help="What to compare with: a trace, a folder or archive with one file a rank, a store, or a baseline file. Left out with "
            "--history.",
            show_default=False,
        ),
    ],
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="What it became: the same kinds.", show_default=False)
    ] = None,
    more_base: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CAPTURE",
            help="One more run of the same program as BASE, which tells what varies from run to run; may be repeated.",
            show_default=False,
        ),
    ] = None,
    more_new: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CAPTURE", help="One more run of the same program as NEW; may be repeated.", show_default=False
        ),
    ] = None,
    history: History = None,
    last: Last = 10,
    branch: Branch = None,
    labels: OfSeries = None,
    format_: Annotated[
        CompareFormat,
        typer.Option(
            "--format",
            "-f",
            help=formats_help("comparison", "html with both timelines"),
        ),
    ] = AS_TEXT,
    output: Output = Path("-"),
    also: Also = None,
    fail_over: Annotated[
        str, typer.Option(metavar="SHARE", help="Exit with 1 when NEW is slower by more than this: 5% or 0.05.")
    ] = "5%",
    fail_on_new: Annotated[
        Severity | None,
        typer.Option(help="Exit with 1 when a finding of at least this severity is new.", show_default="never"),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare what is refused too, such as runs on different GPUs.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Title, in markdown and html.", show_default="none")] = None,
    redact: Redacted = True,
    limit_mb: Annotated[
        float,
        typer.Option(
            "--limit-mb",
            callback=refuse_nan,
            metavar="N",
            min=0.1,
            max=1000,
            help="The HTML is at most so large, in MB.",
        ),
    ] = 10,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
) -> None:
    """Compare two runs: faster or slower, and why.

    Says by how much, how sure that is, and what became of each finding. A step is compared with a step, whatever the lengths of the
    captures, and a change within the noise is none. What cannot be compared, such as runs on different GPUs, is refused with the
    reason. Markdown and HTML do not say who you are (see --redact).

    Example: traceanalyzer compare before.json.gz after.json.gz

    Example: traceanalyzer compare run.json.gz --history perf/history --last 10

    Example: traceanalyzer compare baseline.json run.json.gz --format markdown -o comment.md --fail-over 3% --fail-on-new high
    """
    from traceanalyzer.analysis.captures import check_different
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.exit_codes import FAILED
    from traceanalyzer.ingest.how import How
    from traceanalyzer.result.comparing import compare as compared
    from traceanalyzer.result.comparing.gate import gate

    allowed = _share(fail_over)
    config, how = configuration(thresholds, rules, disabled), How(jobs, scheduler, None, size_limit(max_size))
    sides = _sides(base, new, history)
    checked = Outputs([*sides, *(more_base or []), *(more_new or [])], config)
    outputs = [(format_, checked.file(output)), *checked.also(also, FORMATS)]
    read = partial(read_run, config=config, how=how)
    use_little_memory()
    with ExitStack() as events:
        # Only the page needs the events of both sides at once.
        page = any(form == HTML for form, _ in outputs)
        first = [
            last_of_history(one, labels, branch, last)
            if one is history
            else events.enter_context(run_of(one, config, how))
            if page
            else read(one)
            for one in sides
        ]
        before, after = (
            [*run.captures, *(capture for place in more or [] for capture in read(place).captures)]
            for run, more in zip(first, (more_base, more_new), strict=True)
        )
        check_different(before)
        check_different(after)
        comparison = compared(before, after, anyway)
        style = Style(title, redact, limit_mb)
        for form, place in outputs:
            write(_rendered(comparison, form, first, style), place)
    if str(output) != "-":
        tell(comparison.headline)
    passed = gate(comparison, allowed, fail_on_new.value if fail_on_new else None)
    for reason in passed.reasons:
        tell(f"{'failed' if passed.exit_code == FAILED else 'not judged'}: {reason}")
    raise typer.Exit(passed.exit_code)


def _sides(base: Path, new: Path | None, history: Path | None) -> tuple[Path, Path]:
    """What to compare with, and what it became: with a history only that is named. Raises InputError."""
    if history is None:
        if new is None:
            raise InputError("name two runs, BASE and NEW; or one, and with --history what to compare it with")
        return base, new
    if new is not None:
        raise InputError("--history is what is compared with: name one run besides")
    return history, base


def _share(text: str) -> float:
    """The share that `--fail-over` says. Raises InputError for what is none."""
    from traceanalyzer.units import SHARE, parse_quantity

    try:
        value, unit = parse_quantity(text)
    except ValueError:
        value, unit = -1, None
    if not 0 <= value < math.inf or not (unit == SHARE or (unit is None and value < 1)):
        raise InputError(f"--fail-over: '{text}' is not a share such as 5% or 0.05")
    return float(value)


def _rendered(comparison: Comparison, form: str, runs: list[Run], style: Style) -> bytes:
    """What is made to be published tells of no person and no machine."""
    from traceanalyzer.redaction.data import redaction_of
    from traceanalyzer.render.output import Asked, output

    if form == HTML:
        return _html(comparison, runs, style)
    one = output("comparison", form)
    shown = redaction_of().comparison(comparison) if one.published and style.redact else comparison
    return one.render(shown, Asked(title=style.title))


def _html(comparison: Comparison, runs: list[Run], style: Style) -> bytes:
    from traceanalyzer.report.comparison_page import render_comparison_html
    from traceanalyzer.report.page_size import MEGABYTE

    base, new = runs
    return render_comparison_html(
        comparison,
        _tables(base),
        _tables(new),
        title=style.title,
        limit=int(style.limit_mb * MEGABYTE),
        redact=style.redact,
        base_result=base.result,
        new_result=new.result,
    )


def _tables(run: Run) -> ReportTables | None:
    """The events of a side that are shown; None for a baseline file."""
    from traceanalyzer.analysis.captures import OpenRun
    from traceanalyzer.report.timeline.selection import ranks_to_show

    if not isinstance(run, OpenRun) or run.result is None or run.tables is None:
        return None
    return run.tables([run.parts[at] for at in ranks_to_show(run.result, RANKS_COMPARED)])


COMMAND = Command("compare", compare, order=40, epilog=EPILOG)
