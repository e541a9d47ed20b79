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
    MaxSize,
    Output,
    RuleFolders,
    Thresholds,
    check_output,
    configuration,
    exit_code,
    reading,
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
    max_size: MaxSize = None,
) -> None:
    """Say where the GPU time went and what to change, as text or JSON.

    Example: traceanalyzer analyze trace.json.gz --format json -o result.json --fail-on high
    """
    from traceanalyzer.analysis import analyze as run
    from traceanalyzer.analysis import load
    from traceanalyzer.ingest.arrow import use_little_memory
    from traceanalyzer.render.text import render_text

    check_output(output, inputs)
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    use_little_memory()
    with reading() as progress:
        trace = load(inputs, progress, limit)
    result = run(trace, config)
    write(result.to_json() if format_ is Format.JSON else render_text(result).encode(), output)
    raise typer.Exit(exit_code(result, fail_on))
