"""How fast a GPU computes, by each figure that there is: operations that the flops profiler counts over one time or another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.answers.instruments import traced_steps
from traceanalyzer.evidence.deepspeed_log.derived_tables import RATES
from traceanalyzer.units import format_share

PASSES = 3.0
"""An iteration counts as so many forward passes: the backward pass does about twice the work (as DeepSpeed assumes)."""
BY_PROFILER, ONCE = "by the flops profiler", "the same, each product counted once"
BY_TIMERS = "over the median step by DeepSpeed's timers"
PROFILED = "the profiled step, slowed by its own timing"
Row = dict[str, Any]


def rates(
    deepspeed_run: pa.Table,
    deepspeed_profiles: pa.Table,
    deepspeed_progress: pa.Table,
    deepspeed_module_costs: pa.Table,
    step_ledger: pa.Table,
    roofline: pa.Table,
) -> pa.Table:
    """The figures of each rank, those that DeepSpeed prints first."""
    rows: list[Row] = []
    for run in deepspeed_run.to_pylist():
        profiles, progress, modules = (
            table.filter(pc.equal(table["rank"], run["rank"]))
            for table in (deepspeed_profiles, deepspeed_progress, deepspeed_module_costs)
        )
        profile = profiles.to_pylist()[-1] if profiles.num_rows else None
        told = progress["tflops"].drop_null().to_numpy()
        shapes = roofline.filter(pc.equal(roofline["rank"], run["rank"])).to_pylist()
        work = _work(run, profile, modules) if profile else None
        found = [
            *(_profiled(run, profile, modules, traced_steps(step_ledger, run["rank"])) if profile else ()),
            *(row for one in shapes for row in _of_shapes(one, work)),
            *(_of_program(float(np.median(told)), len(told)) if len(told) else ()),
        ]
        rows += [{"rank": run["rank"], "order": order, **row} for order, row in enumerate(found)]
    return pa.Table.from_pylist(rows, RATES.schema)


def counted_once(profile: Row, modules: pa.Table) -> float | None:
    """Operations of a forward pass on one GPU, with matrix products that are counted twice counted once."""
    flops, macs = profile["flops"], profile["macs"]
    told = float(flops) if flops is not None else 2.0 * macs if macs else None
    root = modules.filter(pc.equal(modules["depth"], 0)).to_pylist() if modules.num_rows else []
    if told is None or not root or root[0]["macs"] is None:
        return told
    return max(told - 2.0 * float(root[0]["macs"] - root[0]["once"]), 0.0)


def _work(run: Row, profile: Row, modules: pa.Table) -> float | None:
    """Operations of a step on one GPU, by what the profiler counts of one micro-batch's forward pass, each product once."""
    once = counted_once(profile, modules)
    return None if once is None else (profile["passes"] or PASSES) * once * (run["accumulation"] or 1)


def _profiled(run: Row, profile: Row, modules: pa.Table, traced: Row) -> Iterator[Row]:
    flops, once, work = profile["flops"], counted_once(profile, modules), _work(run, profile, modules)
    passes, micro = profile["passes"] or PASSES, run["accumulation"] or 1
    twice = flops is not None and once is not None and once < 0.99 * flops
    said = "matrix products are counted twice: too high" if twice else PROFILED
    if profile["fwd_rate"] is not None:
        yield _row("the forward pass, by the flops profiler", flops, profile["fwd"], said, profile["fwd_rate"])
    if micro > 1 and not twice:
        said = f"counts one of {micro} micro-batches: too low"
    if profile["rate"] is not None or (flops is not None and profile["iteration"]):
        iteration = profile["iteration"]
        yield _row(BY_PROFILER, passes * flops if flops else None, iteration, said, profile["rate"])
    if once is None or work is None:
        return
    if twice and profile["iteration"]:
        yield _row(ONCE, passes * once, profile["iteration"], PROFILED)
    if run["total"]:
        yield _row(BY_TIMERS, work, run["total"], "what the run gets with its timers on")
    if traced["step"]:
        yield _row("over the median step in the trace", work, traced["step"], "with the trace's profiler on")
    if traced["compute"]:
        label = "over the GPU's compute time in the trace"
        yield _row(label, work, traced["compute"], "how fast kernels are, the optimizer's among them")


def _of_shapes(found: Row, work: float | None) -> Iterator[Row]:
    """What the shapes of the trace's operators say: of a step, and of the kernels of matrix products alone."""
    steps = max(found["steps"], 1)
    if found["step_flops"] and found["step_time"] and found["steps"]:
        flops = found["step_flops"] / steps
        said = (
            f"{format_share(flops / work)} of what the profiler's come to" if work else "with the trace's profiler on"
        )
        yield _row("by shapes of operators, over a step in the trace", flops, round(found["step_time"] / steps), said)
    if found["flops"] and found["known_time"]:
        label = "by shapes, over the kernels of matrix products"
        yield _row(label, float(found["flops"]), found["known_time"], "how fast these kernels are")


def _row(label: str, flops: float | None, time: int | None, meaning: str, rate: float | None = None) -> Row:
    told = rate if rate is not None else flops / time * 1e9 if flops is not None and time else None
    return {
        "label": label,
        "flops": flops,
        "time": time,
        "tflops": None if told is None else told / 1e12,
        "meaning": meaning,
    }


def _of_program(tflops: float, lines: int) -> Iterator[Row]:
    yield {
        "label": f"by the training program, median of {lines:,} lines",
        "flops": None,
        "time": None,
        "tflops": tflops,
        "meaning": "by the model's sizes, over all of an iteration",
    }
