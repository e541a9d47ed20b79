"""Phases of a step by DeepSpeed's timers: each timer over the whole log, and step by step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.evidence.deepspeed_log.derived_tables import PHASES, STEPS
from traceanalyzer.evidence.deepspeed_log.tables import MICRO, OPTIMIZER, OTHER, PIPE, STEP

MAIN = ("fwd", "bwd", "step")
"""The timers that a step is made of; all others are parts of these, or of something else."""
LABELS = {
    "fwd": "the forward pass",
    "bwd": "the backward pass",
    "step": "the optimizer's step",
    "bwd_inner": "backward without the reduction of gradients",
    "bwd_allreduce": "the reduction of gradients",
    "optimizer_step": "the update of the optimizer's own partition",
    "optimizer_gradients": "preparing gradients for the optimizer",
    "optimizer_allgather": "gathering updated parameters",
    "init_optimizer_state": "making the optimizer's state",
    "batch_input": "loading the batch",
    "pipe_send_output": "sending activations to the next stage",
    "pipe_send_grad": "sending gradients to the previous stage",
    "pipe_recv_input": "receiving activations from the previous stage",
    "pipe_recv_grad": "receiving gradients from the next stage",
}
_GROUPS = (STEP, OPTIMIZER, PIPE, MICRO, OTHER)
MOST_STEPS = 400
"""Steps that are drawn; of a longer log the medians of as many neighbours as need be."""
Floats = npt.NDArray[np.float64]


def label_of(phase: str) -> str:
    """What a timer times, in words."""
    name = phase.removesuffix("_microstep")
    return LABELS.get(name, name) + (" of a micro-batch" if name != phase else "")


def of_one_rank(times: pa.Table) -> pa.Table:
    """The rows of the lowest rank that the lines name: all ranks time about the same, and mostly rank 0 is the only one."""
    lowest = pc.min(times["log_rank"]).as_py()
    return times if lowest is None else times.filter(pc.equal(times["log_rank"], lowest))


def steps_a_line(times: pa.Table, progress: pa.Table) -> int:
    """How many steps a line of a step is the sum of: a pipeline's engine prints now and then what it counted since. 1 for others."""
    if not pc.any(pc.equal(times["group"].cast(pa.string()), PIPE)).as_py():
        return 1
    told = np.unique(progress.filter(progress["iteration"].is_valid())["step"].drop_null().to_numpy())
    apart = np.diff(told)
    return int(np.median(apart)) if len(apart) else 1


def series(times: pa.Table, group: str) -> dict[str, Floats]:
    """By timer: its durations in ns, in the order of the lines."""
    rows = times.filter(pc.equal(times["group"].cast(pa.string()), group)).sort_by("line")
    if not rows.num_rows:
        return {}
    code, names = frames.codes(rows, "phase")
    took = rows["duration"].to_numpy().astype(float)
    return {names[one]: took[code == one] for one in dict.fromkeys(code.tolist())}


def steps_of(times: pa.Table, progress: pa.Table) -> dict[str, Floats]:
    """By one of MAIN: a value a step, in ns; empty where no step was timed as a whole. Steps that lack one of them are left out."""
    times = of_one_rank(times)
    rows = times.filter(pc.equal(times["group"].cast(pa.string()), STEP))
    if not rows.num_rows:
        return {}
    apart = steps_a_line(times, progress)
    samples, phase = rows["sample"].to_numpy(), np.array(rows["phase"].cast(pa.string()).to_pylist())
    took = rows["duration"].to_numpy().astype(float) / apart
    values = np.full((len(MAIN), int(samples.max()) + 1), np.nan)
    for at, name in enumerate(MAIN):
        own = phase == name
        values[at, samples[own]] = took[own]
    whole = ~np.isnan(values).any(axis=0)
    return {name: values[at, whole] for at, name in enumerate(MAIN)} if whole.any() else {}


def phases(deepspeed_times: pa.Table, deepspeed_progress: pa.Table) -> pa.Table:
    """One row a timer of each rank's log."""
    rows = [
        row
        for rank in _ranks(deepspeed_times)
        for row in _phases(rank, _own(deepspeed_times, rank), _own(deepspeed_progress, rank))
    ]
    return pa.Table.from_pylist(rows, PHASES.schema)


def _phases(rank: int, times: pa.Table, progress: pa.Table) -> Iterator[dict[str, object]]:
    whole = steps_of(times, progress)
    total = float(np.median(sum(whole.values(), np.zeros(1)))) if whole else 0.0
    times = of_one_rank(times)
    apart = steps_a_line(times, progress)
    order = 0
    for group in _GROUPS:
        for phase, took in series(times, group).items():
            low, median, high = (float(value) / apart for value in np.quantile(took, (0.1, 0.5, 0.9)))
            yield {
                "rank": rank,
                "order": order,
                "group": group,
                "phase": phase,
                "label": label_of(phase),
                "samples": len(took),
                "median": round(median),
                "low": round(low),
                "high": round(high),
                "share": median / total if group == STEP and total else None,
                "part": group != STEP or phase not in MAIN,
            }
            order += 1


def step_times(deepspeed_times: pa.Table, deepspeed_progress: pa.Table) -> pa.Table:
    """One row a step of each rank's log, or a few hundred of many."""
    tables = []
    for rank in _ranks(deepspeed_times):
        found = steps_of(_own(deepspeed_times, rank), _own(deepspeed_progress, rank))
        if not found:
            continue
        parts = np.array_split(np.arange(len(found["fwd"])), min(len(found["fwd"]), MOST_STEPS))
        columns = {name: [round(float(np.median(values[part]))) for part in parts] for name, values in found.items()}
        tables.append(
            pa.table(
                {"rank": [rank] * len(parts), "sample": [int(part[0]) for part in parts], **columns},
                schema=STEPS.schema,
            )
        )
    return pa.concat_tables(tables) if tables else STEPS.empty()


def _ranks(times: pa.Table) -> list[int]:
    return sorted(times["rank"].unique().to_pylist())


def _own(table: pa.Table, rank: int) -> pa.Table:
    return table.filter(pc.equal(table["rank"], rank))
