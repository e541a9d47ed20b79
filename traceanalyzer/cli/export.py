"""`traceanalyzer export`."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.command import Command
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
    begins_again,
    configuration,
    exit_code,
    output_file,
    size_limit,
)
from traceanalyzer.cli.judging import analysis_of
from traceanalyzer.cli.outputs import Outputs
from traceanalyzer.errors import InputError
from traceanalyzer.terminal import tell

EPILOG = "Exit codes: 0 written · 2 wrong usage or unreadable input · 3 written, but nothing could be judged."


class Target(StrEnum):
    """Programs that can be written for."""

    PERFETTO = "perfetto"
    SPEEDSCOPE = "speedscope"
    FOLDED = "folded"


class Tree(StrEnum):
    """Trees of calls, see the table `call_trees`."""

    IDLE = "idle"
    GPU = "gpu"
    COMMUNICATION = "communication"
    COPIES = "copies"
    HOST = "host"


_WRITTEN = {
    Target.PERFETTO: ("trace", "open it at https://ui.perfetto.dev"),
    Target.SPEEDSCOPE: ("flame graphs", "open them at https://www.speedscope.app"),
    Target.FOLDED: ("stacks", "weights are nanoseconds; draw them with flamegraph.pl --countname ns"),
}


@begins_again
def export(
    inputs: Inputs,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write, packed when its name ends in .gz; - is stdout."
        ),
    ],
    target: Annotated[
        Target,
        typer.Option(
            "--format",
            "-f",
            help="perfetto: Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open. speedscope: flame graphs for "
            "speedscope.app. folded: stacks with their nanoseconds, one a line, which flamegraph.pl and inferno-flamegraph read.",
        ),
    ] = Target.PERFETTO,
    tree: Annotated[
        list[Tree] | None,
        typer.Option(
            "--tree",
            help="Of flame graphs, may be repeated. idle: idle time of GPUs by cause, then by what the launching thread did. "
            "gpu: compute by the calls that launched it. communication, copies: what of them no other work hides, likewise. "
            "host: the time of launching threads.",
            show_default="idle",
        ),
    ] = None,
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
    """Write a trace with the findings on it for Perfetto, or flame graphs.

    Perfetto: on top the findings, a track a rule; for each GPU where its time went, its steps, streams and counters; for each process
    of the host its threads. Arrows lead from launches to what they started. Ranks are on one clock. Times are exact to the nanosecond
    and count from the first event.

    Flame graphs say where time went by the stack of what the host did: Python frames, ranges, operators, calls. Each is as wide as its
    line of the ledger, to the nanosecond. They have no order in time.

    Example: traceanalyzer export trace.json.gz -o found.json.gz      # then open it at https://ui.perfetto.dev

    Example: traceanalyzer export trace.json.gz --format speedscope --tree idle --tree gpu -o idle.json

    Example: traceanalyzer export report.sqlite --format folded -o - | flamegraph.pl --countname ns > idle.svg
    """
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.ingest.how import How

    if tree and target is Target.PERFETTO:
        raise InputError("--tree: chooses flame graphs; name their format too: --format speedscope or --format folded")
    trees = [str(one) for one in dict.fromkeys(tree or [Tree.IDLE])]
    config, limit = configuration(thresholds, rules, disabled), size_limit(max_size)
    outputs = Outputs(inputs, config)
    place, how = outputs.file(output), How(jobs, scheduler, outputs.store(store), limit)
    use_little_memory()
    with analysis_of(inputs, config, how) as (parts, found), ExitStack() as stack:
        from traceanalyzer.analysis import ReportTables
        from traceanalyzer.export.packing import packing
        from traceanalyzer.export.perfetto import Recording, write_trace
        from traceanalyzer.export.stacks import write_folded, write_speedscope
        from traceanalyzer.model.trace import rank_names
        from traceanalyzer.report.timeline.selection import ranks_to_show

        named = rank_names([part.input for part in parts])
        recordings = [
            Recording(
                named.get(part.input.ordinal, f"file {at + 1}")
                if len(parts) > 1 or part.input.rank is not None
                else "",
                part.input.rank,
                part.input.ordinal,
                partial(ReportTables, [part], config, found.tables),
            )
            for at, part in enumerate(parts)
            if at in ranks_to_show(found.result, ranks)
        ]
        out = stack.enter_context(packing(stack.enter_context(output_file(place)), output.suffix == ".gz"))
        if target is Target.PERFETTO:
            write_trace(found.result, recordings, out, redact)
        else:
            write = write_speedscope if target is Target.SPEEDSCOPE else write_folded
            if not write(found.result, recordings, trees, out, redact):
                tell(f"no tree: nothing of the time of {', '.join(trees)} was recorded")
    tell(found.result.verdict.headline)
    if str(output) != "-":
        tell(f"{_WRITTEN[target][0]}: {output} ({_WRITTEN[target][1]})")
    raise typer.Exit(exit_code(found.result, None))


COMMAND = Command("export", export, order=60, epilog=EPILOG)
