"""`traceanalyzer analyze`."""

from __future__ import annotations

from pathlib import Path

import typer

from traceanalyzer.cli.common import (
    Disabled,
    FailOn,
    Format,
    FormatOption,
    Inputs,
    Jobs,
    MaxSize,
    Output,
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


def analyze(
    inputs: Inputs,
    format_: FormatOption = Format.TEXT,
    output: Output = Path("-"),
    fail_on: FailOn = None,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    store: Store = None,
    max_size: MaxSize = None,
) -> None:
    """Say where the GPU time went and what to change, as text or JSON.

    The files of a job, one a rank, are judged together: name their folder.

    Example: traceanalyzer analyze trace.json.gz --format json -o result.json --fail-on high

    Example: traceanalyzer analyze s3://bucket/run/ --store s3://bucket/run.store --scheduler tcp://host:8786
    """
    from traceanalyzer.analysis.opening import How
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.render.text import render_text

    check_output(output, inputs)
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    use_little_memory()
    with analyzed(inputs, config, How(jobs, scheduler, store, limit)) as (_, found):
        result = found.result
    write(result.to_json() if format_ is Format.JSON else render_text(result).encode(), output)
    raise typer.Exit(exit_code(result, fail_on))
