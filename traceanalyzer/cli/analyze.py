"""`traceanalyzer analyze`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import (
    FailOn,
    Inputs,
    MaxSize,
    Thresholds,
    check_output,
    configuration,
    exit_code,
    reading,
    size_limit,
    write,
)


class Format(StrEnum):
    """How the result is written."""

    TEXT = "text"
    JSON = "json"


def analyze(
    inputs: Inputs,
    format_: Annotated[Format, typer.Option("--format", "-f", help="text for people, json for scripts.")] = Format.TEXT,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is stdout.")] = Path(
        "-"
    ),
    fail_on: FailOn = None,
    thresholds: Thresholds = None,
    max_size: MaxSize = None,
) -> None:
    """Say where the GPU time went and what to change, as text or JSON.

    Example: traceanalyzer analyze trace.json.gz --format json -o result.json --fail-on high
    """
    from traceanalyzer.analysis import analyze as run
    from traceanalyzer.analysis import load
    from traceanalyzer.render.text import render_text

    check_output(output, inputs)
    config, limit = configuration(thresholds), size_limit(max_size)
    with reading() as progress:
        trace = load(inputs, progress, limit)
    result = run(trace, config)
    write(result.to_json() if format_ is Format.JSON else render_text(result).encode(), output)
    raise typer.Exit(exit_code(result, fail_on))
