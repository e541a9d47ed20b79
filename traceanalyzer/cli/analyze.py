"""`traceanalyzer analyze`."""

from __future__ import annotations

from pathlib import Path

import typer

from traceanalyzer.cli.common import (
    Disabled,
    FailOn,
    Inputs,
    Jobs,
    MaxSize,
    Output,
    Redacted,
    ResultFormat,
    ResultFormatOption,
    RuleFolders,
    Scheduler,
    Store,
    Thresholds,
    analyzed,
    begins_again,
    configuration,
    exit_code,
    size_limit,
    write,
)
from traceanalyzer.cli.outputs import Also, Outputs


@begins_again
def analyze(
    inputs: Inputs,
    format_: ResultFormatOption = ResultFormat.TEXT,
    output: Output = Path("-"),
    also: Also = None,
    redact: Redacted = True,
    fail_on: FailOn = None,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    store: Store = None,
    max_size: MaxSize = None,
) -> None:
    """Say where the GPU time went and what to change.

    The files of a job, one a rank, are judged together: name their folder. Text and JSON say all; the other formats are made to be
    published and leave out what tells of you or your machine (see --redact).

    Example: traceanalyzer analyze trace.json.gz --format json -o result.json --fail-on high

    Example: traceanalyzer analyze run/ --also json=result.json --also markdown=summary.md --also sarif=result.sarif

    Example: traceanalyzer analyze s3://bucket/run/ --store s3://bucket/run.store --scheduler tcp://host:8786
    """
    from traceanalyzer.analysis.opening import How
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.render.formats import rendered

    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    checked = Outputs(inputs, config)
    outputs = [(format_, checked.file(output)), *checked.also(also, ResultFormat)]
    how = How(jobs, scheduler, checked.store(store), limit)
    use_little_memory()
    with analyzed(inputs, config, how) as (_, found):
        result = found.result
        contents = rendered(result, found.tables, [name for name, _ in outputs], fail_on, redact)
        for content, (_, file) in zip(contents, outputs, strict=True):
            write(content, file)
    raise typer.Exit(exit_code(result, fail_on))
