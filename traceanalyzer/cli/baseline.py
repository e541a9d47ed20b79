"""`traceanalyzer baseline`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.captures import read_run
from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Disabled,
    Jobs,
    MaxSize,
    RuleFolders,
    Scheduler,
    Thresholds,
    begins_again,
    configuration,
    size_limit,
    write,
)
from traceanalyzer.cli.outputs import Outputs
from traceanalyzer.cli.values import QuickCommand, QuickGroup
from traceanalyzer.terminal import tell

app = typer.Typer(
    cls=QuickGroup,
    help="Keep what a run took, in a small file for git.",
    no_args_is_help=True,
)
EPILOG = (
    "Exit codes: 0 written · 2 wrong usage or unreadable input · 3 a capture is no sound measure; nothing is written."
)


@app.command("save", cls=QuickCommand, epilog=EPILOG)
@begins_again
def save(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Runs of one program, each a trace, a folder or archive with one file a rank, or a store.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The baseline file to write; - is stdout.")
    ],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Save captures too that are damaged, have no unit of work or differ.")
    ] = False,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
) -> None:
    """Write a baseline: what a step takes, and where the time goes.

    With several captures of the same program it is known what varies from run to run, and not only from step to step: three
    make a good baseline.

    Example: traceanalyzer baseline save run1.json.gz run2.json.gz run3.json.gz -o perf/baseline.json
    """
    from traceanalyzer.analysis.baselines import baseline_of
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.ingest.how import How
    from traceanalyzer.render.comparing.baseline_text import summary
    from traceanalyzer.result.captures.baseline_file import baseline_bytes

    config, how = configuration(thresholds, rules, disabled), How(jobs, scheduler, None, size_limit(max_size))
    place = Outputs(captures, config).file(output)
    use_little_memory()
    found = [capture for one in captures for capture in read_run(one, config, how).captures]
    baseline = baseline_of(found, anyway)
    write(baseline_bytes(baseline), place)
    tell(f"{'' if str(output) == '-' else f'{output}: '}{summary(baseline)}")


@app.command("show", cls=QuickCommand)
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A baseline file.", show_default=False)],
) -> None:
    """Say what a baseline holds.

    What it is of, step times, ledger, kernels, findings, and the figures that budgets can be held against.

    Example: traceanalyzer baseline show perf/baseline.json
    """
    from traceanalyzer.render.comparing.baseline_text import render_baseline
    from traceanalyzer.result.captures.baseline_file import read_baseline

    write(render_baseline(read_baseline(file)).encode(), Path("-"))


COMMAND = Command("baseline", app, order=50)
