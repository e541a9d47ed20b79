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
from traceanalyzer.records import dataclass

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
    "fwd_moe": "mixtures of experts in the forward pass",
    "1st_a2a": "sending tokens to their experts",
    "2nd_a2a": "sending them back",
    "top_k": "choosing experts",
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
    named = pc.min_max(times["log_rank"]).as_py()
    return times if named["min"] == named["max"] else times.filter(pc.equal(times["log_rank"], named["min"]))


def steps_a_line(times: pa.Table, progress: pa.Table, settings: pa.Table) -> int:
    """How many steps a line of a step is the sum of: a pipeline's engine prints now and then what it counted since. 1 for others."""
    if not frames.equals(times, "group", PIPE).any():
        return 1
    told = np.unique(progress.filter(progress["iteration"].is_valid())["step"].drop_null().to_numpy())
    apart = np.diff(told)
    if len(apart):
        return int(np.median(apart))
    values = dict(zip(settings["name"].to_pylist(), settings["value"].to_pylist(), strict=True))
    set_to = values.get("steps_per_print", "")
    return int(set_to) if set_to.isdigit() and 0 < len(set_to) < 10 and int(set_to) else 1


@dataclass(frozen=True)
class Series:
    """The timers of one file, of one rank: by group and timer, durations in ns a step (a micro-batch in the group micro), in the order
    of the lines; `steps` are those of steps that have all of MAIN, and `between` the times from the line of one to that of the next.

    Where no step is timed as a whole, micro-batches stand for steps (`unit`).
    """

    groups: dict[str, dict[str, Floats]]
    steps: dict[str, Floats]
    between: Floats
    unit: str = "step"


NONE = Series({}, {}, np.zeros(0))


def series(deepspeed_times: pa.Table, deepspeed_progress: pa.Table, deepspeed_settings: pa.Table) -> dict[int, Series]:
    """By rank of the tables."""
    own, progress, settings = (
        dict(_by_rank(table)) for table in (deepspeed_times, deepspeed_progress, deepspeed_settings)
    )
    none = deepspeed_progress[:0], deepspeed_settings[:0]
    return {
        rank: _series(table, progress.get(rank, none[0]), settings.get(rank, none[1])) for rank, table in own.items()
    }


def _by_rank(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    ranks = table["rank"].unique().to_pylist()
    for rank in sorted(ranks):
        yield rank, table if len(ranks) == 1 else table.filter(pc.equal(table["rank"], rank))


def _series(times: pa.Table, progress: pa.Table, settings: pa.Table) -> Series:
    apart = steps_a_line(times, progress, settings)
    times = of_one_rank(times).sort_by([("line", "ascending")])
    group, groups = frames.codes(times, "group")
    phase, phases_ = frames.codes(times, "phase")
    took = times["duration"].to_numpy().astype(float) / apart
    found: dict[str, dict[str, Floats]] = {}
    for name in _GROUPS:
        rows = np.flatnonzero(group == groups.index(name)) if name in groups else np.zeros(0, np.int64)
        if len(rows):
            kinds = phase[rows]
            _, first = np.unique(kinds, return_index=True)
            found[name] = {str(phases_[kinds[at]]): took[rows[kinds == kinds[at]]] for at in sorted(first.tolist())}
    whole_steps = STEP in found
    one = STEP if whole_steps else MICRO
    step = group == groups.index(one) if one in groups else np.zeros(len(group), bool)
    sample = times["sample"].to_numpy()
    values = np.full((len(MAIN), int(sample[step].max(initial=-1)) + 1), np.nan)
    moments = np.zeros(0)
    for at, name in enumerate(MAIN):
        timer = name if whole_steps else f"{name}_microstep"
        rows = np.flatnonzero(step & (phase == phases_.index(timer))) if timer in phases_ else np.zeros(0, np.int64)
        values[at, sample[rows]] = took[rows]
        if name == "step":
            moments = times["logged"].take(pa.array(rows)).drop_null().to_numpy()
    whole = ~np.isnan(values).any(axis=0)
    steps = {name: values[at, whole] for at, name in enumerate(MAIN)} if whole.any() else {}
    between = np.diff(moments) / apart if np.any(moments % 1_000_000_000) else np.zeros(0)
    return Series(found, steps, between[between > 0], "step" if whole_steps else "micro-batch")


def phases(deepspeed_series: dict[int, Series]) -> pa.Table:
    """One row a timer of each rank's log."""
    rows = [row for rank, own in deepspeed_series.items() for row in _phases(rank, own)]
    return pa.Table.from_pylist(rows, PHASES.schema)


def _phases(rank: int, own: Series) -> Iterator[dict[str, object]]:
    total = float(np.median(sum(own.steps.values(), np.zeros(1)))) if own.steps else 0.0
    order, whole = 0, STEP if own.unit == "step" else MICRO
    for group, timers in own.groups.items():
        for phase, took in timers.items():
            low, median, high = (float(value) for value in np.quantile(took, (0.1, 0.5, 0.9)))
            yield {
                "rank": rank,
                "order": order,
                "group": group,
                "phase": phase,
                "label": label_of(phase),
                "samples": len(took),
                "median": round(median),
                "tenth": round(low),
                "nine_tenths": round(high),
                "share": median / total if group == whole and total else None,
                "part": group != whole or phase.removesuffix("_microstep") not in MAIN,
            }
            order += 1


def step_times(deepspeed_series: dict[int, Series]) -> pa.Table:
    """One row a step of each rank's log, or a few hundred of many."""
    tables = []
    for rank, own in deepspeed_series.items():
        if not own.steps:
            continue
        parts = np.array_split(np.arange(len(own.steps["fwd"])), min(len(own.steps["fwd"]), MOST_STEPS))
        columns = {
            name: [round(float(np.median(values[part]))) for part in parts] for name, values in own.steps.items()
        }
        tables.append(
            pa.table(
                {"rank": [rank] * len(parts), "sample": [int(part[0]) for part in parts], **columns},
                schema=STEPS.schema,
            )
        )
    return pa.concat_tables(tables) if tables else STEPS.empty()
