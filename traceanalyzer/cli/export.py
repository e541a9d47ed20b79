"""`traceanalyzer export`."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import (
    RANKS_SHOWN,
    Disabled,
    Inputs,
    Jobs,
    MaxSize,
    Redacted,
    RuleFolders,
    Scheduler,
    Store,
    Thresholds,
    analyzed,
    check_output,
    configuration,
    exit_code,
    size_limit,
    tell,
    written,
)

EPILOG = "Exit codes: 0 written · 2 wrong usage or unreadable input · 3 written, but nothing could be judged."


class Target(StrEnum):
    """Programs that can be written for."""

    PERFETTO = "perfetto"


def export(
    inputs: Inputs,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The trace to write, packed when its name ends in .gz; - is stdout."
        ),
    ],
    target: Annotated[
        Target,
        typer.Option(
            "--format", "-f", help="perfetto: Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open."
        ),
    ] = Target.PERFETTO,
    ranks: Annotated[
        int,
        typer.Option(
            "--ranks",
            metavar="N",
            min=1,
            help="Of a larger job so many ranks: late ones, those that findings are about, the lowest.",
        ),
    ] = RANKS_SHOWN,
    redact: Redacted = True,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    store: Store = None,
    max_size: MaxSize = None,
) -> None:
    """Write a trace with the findings on it, for Perfetto.

    On top the findings, a track a rule; for each GPU where its time went, its steps, streams and counters; for each process of
    the host its threads. Arrows lead from launches to what they started. Ranks are on one clock. Times are exact to the nanosecond
    and count from the first event.

    Example: traceanalyzer export trace.json.gz -o found.json.gz      # then open it at https://ui.perfetto.dev

    Example: traceanalyzer export report.sqlite --format perfetto -o found.json
    """
    from traceanalyzer.analysis import Shown
    from traceanalyzer.analysis.opening import How
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.export.packing import packing
    from traceanalyzer.export.perfetto import Recording, write_trace
    from traceanalyzer.model.trace import rank_names
    from traceanalyzer.report.selection import ranks_to_show

    check_output(output, inputs)
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    use_little_memory()
    with analyzed(inputs, config, How(jobs, scheduler, store, limit)) as (parts, found), ExitStack() as stack:
        named = rank_names([part.input for part in parts])
        recordings = [
            Recording(
                named.get(part.input.ordinal, f"file {at + 1}") + " "
                if len(parts) > 1 or part.input.rank is not None
                else "",
                part.input.rank,
                part.input.ordinal,
                partial(Shown, [part], config, found.tables),
            )
            for at, part in enumerate(parts)
            if at in ranks_to_show(found.result, ranks)
        ]
        out = stack.enter_context(written(output))
        write_trace(found.result, recordings, stack.enter_context(packing(out, output.suffix == ".gz")), redact)
    tell(found.result.verdict.headline)
    if str(output) != "-":
        tell(f"trace: {output} (open it at https://ui.perfetto.dev)")
    raise typer.Exit(exit_code(found.result, None))
