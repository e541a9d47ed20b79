"""`traceanalyzer check`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.captures import Branch, History, Last, OfSeries, last_of_history, read_run
from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Disabled,
    Jobs,
    MaxSize,
    Output,
    Redacted,
    RuleFolders,
    Scheduler,
    Thresholds,
    begins_again,
    choice,
    configuration,
    size_limit,
    write,
)
from traceanalyzer.cli.outputs import Also, Outputs
from traceanalyzer.errors import InputError
from traceanalyzer.render.output import formats_help, output_names
from traceanalyzer.terminal import tell

if TYPE_CHECKING:
    from traceanalyzer.budgets.judge import Given
    from traceanalyzer.config import Budgets, Config
    from traceanalyzer.ingest.how import How
    from traceanalyzer.result.captures.check import Check

EPILOG = (
    "Exit codes: 0 all budgets are kept, but for those that only warn · 1 a budget of level error is broken · "
    "2 wrong usage or configuration, or unreadable input · 3 nothing is broken, but not everything could be judged."
)


if TYPE_CHECKING:
    CheckFormat = str
else:
    CheckFormat = choice("CheckFormat", output_names("check"))
"""How a check is written."""
AS_TEXT = CheckFormat("text")


class Aggregate(StrEnum):
    """What several captures come to."""

    MEDIAN = "median"
    WORST = "worst"


@begins_again
def check(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Runs of one program, each a trace, a folder or archive with one file a rank, a store, or a baseline file.",
            show_default=False,
        ),
    ],
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Budgets: a YAML file, or TOML with [tool.traceanalyzer.check].",
            show_default="the nearest pyproject.toml",
        ),
    ] = None,
    asserted: Annotated[
        list[str] | None,
        typer.Option(
            "--assert",
            metavar="ASSERTION",
            help='One more budget, such as "idle_share <= 20%" or INP001; may be repeated.',
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What `baseline` in a budget means: a file of `baseline save`, or a capture.",
            show_default="as configured",
        ),
    ] = None,
    history: History = None,
    last: Last = 10,
    branch: Branch = None,
    labels: OfSeries = None,
    aggregate: Annotated[
        Aggregate | None,
        typer.Option(
            help="What of several captures must keep to the budgets.", show_default="as configured, else median"
        ),
    ] = None,
    format_: Annotated[
        CheckFormat,
        typer.Option(
            "--format",
            "-f",
            help=formats_help("check"),
        ),
    ] = AS_TEXT,
    output: Output = Path("-"),
    also: Also = None,
    redact: Redacted = True,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
) -> None:
    """Hold captures against budgets on figures and rules.

    Figures are such as the idle share or a step's time; a rule that is named must find nothing. Budgets stand in
    [tool.traceanalyzer.check.budgets] of pyproject.toml, in a YAML file, or in --assert. Markdown, JUnit and annotations do not say
    who you are (see --redact).

    Example: traceanalyzer check run.json.gz --assert "idle_share <= 20%" --assert INP001

    Example: traceanalyzer check run1.json.gz run2.json.gz run3.json.gz --config perf/budgets.yaml --baseline perf/baseline.json
    """
    from traceanalyzer.analysis.examine import rules_for
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.budgets.assertions import assertions
    from traceanalyzer.budgets.judge import baseline_for, judge
    from traceanalyzer.ingest.how import How

    config, how = configuration(thresholds, rules, disabled), How(jobs, scheduler, None, size_limit(max_size))
    if history is not None and baseline is not None:
        raise InputError("--history and --baseline: both are what `baseline` in a budget means; name one of them")
    budgets = _budgets(config, config_file, asserted or [], history or baseline)
    checked = Outputs(captures, config, [config_file, budgets.baseline])
    outputs = [(format_, checked.file(output)), *checked.also(also, output_names("check"))]
    how_taken = aggregate.value if aggregate else budgets.aggregate or Aggregate.MEDIAN.value
    held = assertions(budgets, [rule.id for rule in rules_for(config)], how_taken)
    use_little_memory()
    compared = baseline_for(held, budgets.baseline, history is not None)
    if compared is not None and compared is history:
        saved = last_of_history(compared, labels, branch, last).captures
    else:
        saved = read_run(compared, config, how).captures if compared else []
    given = [one for capture in captures for one in _given(capture, config, how)]
    found = judge(given, held, saved, str(compared) if compared else None)
    for form, place in outputs:
        write(_rendered(found, form, redact), place)
    if str(output) != "-":
        tell(found.headline)
    raise typer.Exit(found.exit_code)


def _budgets(config: Config, file: Path | None, asserted: list[str], baseline: Path | None) -> Budgets:
    """What is configured, and over it what the command line says."""
    from traceanalyzer.budgets.files import budgets_in
    from traceanalyzer.config import Entry

    budgets = budgets_in(file) if file else config.check
    more = tuple(Entry(text.strip(), "error", None, "--assert") for text in asserted)
    return replace(budgets, entries=(*budgets.entries, *more), baseline=baseline or budgets.baseline)


def _given(place: Path, config: Config, how: How) -> list[Given]:
    from traceanalyzer.budgets.judge import Given

    run = read_run(place, config, how)
    return [Given(capture, str(place), run.result is None) for capture in run.captures]


def _rendered(found: Check, form: str, redact: bool) -> bytes:
    """What is made to be published tells of no person and no machine."""
    from traceanalyzer.redaction.data import redaction_of
    from traceanalyzer.render.output import Asked, output

    one = output("check", form)
    if one.published and redact:
        places = [capture.place for capture in found.captures] + ([found.baseline] if found.baseline else [])
        found = redaction_of(places=places).check(found)
    return one.render(found, Asked())


COMMAND = Command("check", check, order=30, epilog=EPILOG)
