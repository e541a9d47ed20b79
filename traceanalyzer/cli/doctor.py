"""`traceanalyzer doctor`."""

from __future__ import annotations

from pathlib import Path

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Format,
    FormatOption,
    Inputs,
    MaxSize,
    Output,
    reading,
    size_limit,
    write,
)
from traceanalyzer.cli.outputs import Outputs


def doctor(
    inputs: Inputs,
    format_: FormatOption = Format.TEXT,
    output: Output = Path("-"),
    max_size: MaxSize = None,
) -> None:
    """Say what a trace is, what it holds and lacks, and the profiler settings to use next time.

    Example: traceanalyzer doctor trace.json.gz

    Exits with 0 when every file can be judged, with 3 when one cannot (no GPU work in it, or damage that hides it), with 2 when one
    cannot be read. So a pipeline can check a capture before it keeps it: traceanalyzer doctor traces/ || exit 1
    """
    from traceanalyzer.doctor import diagnose
    from traceanalyzer.render.doctor import render_diagnosis

    place = Outputs(inputs).file(output)
    limit = size_limit(max_size)
    with reading() as progress:
        diagnosis = diagnose(inputs, progress, limit)
    write(diagnosis.to_json() if format_ is Format.JSON else render_diagnosis(diagnosis).encode(), place)
    raise typer.Exit(0 if diagnosis.can_judge else 3)


COMMAND = Command("doctor", doctor, order=70)
