"""`traceanalyzer analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    AS_TEXT,
    JUDGED,
    RANKS_SHOWN,
    Disabled,
    FailOn,
    Inputs,
    Jobs,
    MaxSize,
    Offsets,
    Output,
    Redacted,
    ResultFormatOption,
    RuleFolders,
    Scheduler,
    Store,
    Thresholds,
    begins_again,
    configuration,
    exit_code,
    offsets_of,
    size_limit,
    write,
)
from traceanalyzer.cli.judging import analysis_of
from traceanalyzer.cli.outputs import Also, Outputs
from traceanalyzer.errors import InputError
from traceanalyzer.render.output import output_names

if TYPE_CHECKING:
    from traceanalyzer.analysis.parts import Part
    from traceanalyzer.config import Config
    from traceanalyzer.result.document import Result


@begins_again
def analyze(
    inputs: Inputs,
    format_: ResultFormatOption = AS_TEXT,
    output: Output = Path("-"),
    also: Also = None,
    stacks: Annotated[
        bool,
        typer.Option(
            "--stacks",
            help="Show the heaviest paths of calls too, as text: what the host did while each GPU was idle, what launched its work, "
            "and where host threads spent their time. Of a larger job as many ranks as a report shows.",
        ),
    ] = False,
    redact: Redacted = True,
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
    """Say where the GPU time went and what to change.

    The files of a job, one a rank, are judged together: name their folder. Text and JSON say all; the other formats are made to be
    published and leave out what tells of you or your machine (see --redact).

    Example: traceanalyzer analyze trace.json.gz --format json -o result.json --fail-on high

    Example: traceanalyzer analyze trace.json.gz --stacks      # which calls the GPU waited for, from the program down

    Example: traceanalyzer analyze run/ --also json=result.json --also markdown=summary.md --also sarif=result.sarif

    Example: traceanalyzer analyze s3://bucket/run/ --store s3://bucket/run.store --scheduler tcp://host:8786
    """
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.ingest.how import How

    if stacks and format_ != "text":
        raise InputError("--stacks: shows paths as text; leave --format out, or use export --format folded for scripts")
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    checked = Outputs(inputs, config)
    outputs = [(format_, checked.file(output)), *checked.also(also, output_names("result"))]
    how = How(jobs, scheduler, checked.store(store), limit, offsets=offsets_of(offset))
    use_little_memory()
    with analysis_of(inputs, config, how) as (parts, found):
        from traceanalyzer.render.formats import rendered

        result = found.result
        names = [name for name, _ in outputs]
        contents = rendered(result, found.tables, names, fail_on, redact, found.sections)
        for number, (content, (_, file)) in enumerate(zip(contents, outputs, strict=True)):
            paths = _heaviest(parts, config, result) if stacks and number == 0 else b""
            write(content + paths, file)
    raise typer.Exit(exit_code(result, fail_on))


def _heaviest(parts: Sequence[Part], config: Config, result: Result) -> bytes:
    """The heaviest paths of calls, as text."""
    from traceanalyzer.analysis.stacks import stacks
    from traceanalyzer.render.stacks_text import render_stacks
    from traceanalyzer.report.timeline.selection import ranks_to_show

    shown = [parts[at] for at in ranks_to_show(result, RANKS_SHOWN)]
    return render_stacks([tree for part in shown for tree in stacks(part, config)]).encode()


COMMAND = Command("analyze", analyze, order=20, epilog=JUDGED)
