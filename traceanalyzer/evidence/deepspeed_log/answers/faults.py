"""Figures of DeepSpeed's that cannot be right, or that are something else than their names say, each with what makes that certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.answers.modules import EPOCH_S
from traceanalyzer.evidence.deepspeed_log.answers.rates import counted_once
from traceanalyzer.evidence.deepspeed_log.derived_tables import FAULTS
from traceanalyzer.units import format_bytes, format_duration

CLOCK, SHARD, TWICE, MICRO_BATCH, CUMULATIVE, CONTRADICTED = (
    *("clock", "shard", "twice", "micro-batch", "cumulative", "contradicted"),
)
MUCH_LONGER = 5
"""A mean latency so many times as long as the longest such kernel of the trace is none of the transfer."""
Row = dict[str, Any]


def faults(
    deepspeed_run: pa.Table,
    deepspeed_profiles: pa.Table,
    deepspeed_module_costs: pa.Table,
    deepspeed_collectives: pa.Table,
    deepspeed_phases: pa.Table,
) -> pa.Table:
    """The faults of each rank's files."""
    rows: list[Row] = []
    for run in deepspeed_run.to_pylist():
        profiles, modules, collectives = (
            table.filter(pc.equal(table["rank"], run["rank"]))
            for table in (deepspeed_profiles, deepspeed_module_costs, deepspeed_collectives)
        )
        profile = profiles.to_pylist()[-1] if profiles.num_rows else None
        found = [
            *(_of_clock(profile, modules) if modules.num_rows else ()),
            *(_of_shard(profile, modules) if modules.num_rows else ()),
            *(_of_micro_batch(run, profile) if profile else ()),
            *_of_comms(run, collectives.to_pylist()),
        ]
        rows += [{"rank": run["rank"], "order": order, **row} for order, row in enumerate(found)]
    return pa.Table.from_pylist(rows, FAULTS.schema)


def scaled(value: float, unit: str = "") -> str:
    """A number of operations or parameters rounded to two decimals and with a prefix of a thousand, as DeepSpeed prints it."""
    for size, prefix in ((1e12, "T"), (1e9, "B" if unit == "params" else "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{round(value / size, 2):g} {prefix}"
    return f"{value:g}"


def _of_clock(profile: Row | None, modules: pa.Table) -> Iterator[Row]:
    """A latency that is a moment: the module's start was never noted, so that all seconds since 1970 count as its forward pass."""
    broken = [one for one in modules.to_pylist() if one["seconds"] is not None and one["seconds"] >= EPOCH_S]
    if not broken:
        return
    first = broken[0]
    who = f"the root module ({first['class']})" if first["depth"] == 0 else f"{first['path']} ({first['class']})"
    kids = [one for one in modules.to_pylist() if one["parent"] == first["order"]]
    inside = sum(one["latency"] * one["repeat"] for one in kids if one["latency"]) if kids else 0
    timer = format_duration(profile["fwd"]) if profile is not None and profile["fwd"] else None
    right, short = [], []
    if inside:
        right.append(f"{format_duration(inside)} in the modules inside of it")
        short.append(f"{format_duration(inside)} inside of it")
    if timer:
        right.append(f"{timer} by DeepSpeed's timer of the forward pass")
        short.append(f"{timer} by the timer")
    others = f", and {len(broken) - 1:,} more modules" if len(broken) > 1 else ""
    yield {
        "fault": CLOCK,
        "figure": f"latency of {who}{others}",
        "said": f"{scaled(first['seconds'])}s",
        "right": ", ".join(short) or None,
        "words": f"The flops profiler's latency of {who}{others} is no duration but the time of day, and so is its FLOPS and every "
        "share of latency" + (f": right are {', '.join(right)}" if right else ""),
        "why": f"It is {scaled(first['seconds'])}s, the seconds since 1970: the start was not subtracted. Modules inside of it are "
        "not affected",
    }


def _of_shard(profile: Row | None, modules: pa.Table) -> Iterator[Row]:
    """Parameters of a shard, and matrix products counted twice: both are ZeRO-3's doing."""
    rows = modules.to_pylist()
    root = rows[0]
    sharded = [one for one in rows if one["sharded"]]
    doubled = [one for one in rows if one["twice"]]
    operations = None
    if doubled and profile is not None and (once := counted_once(profile, modules)) is not None:
        operations = f"{scaled(once)}" + (f" ({scaled(root['once'])} MACs)" if root["once"] else "")
    if sharded:
        one = sharded[0]
        said = scaled(profile["params"] if profile and profile["params"] is not None else root["params"] or 0, "params")
        known = root["shaped"]
        least = sum((row["shaped"] or 0) * row["repeat"] for row in rows if not _has_inside(row, rows))
        right: str | None = (
            f"{scaled(known, 'params')} by the printed shapes of its modules"
            if known
            else (f"at least {scaled(least, 'params')} by those shapes that are printed")
        )
        yield {
            "fault": SHARD,
            "figure": "parameters",
            "said": said,
            "right": right,
            "words": f"The flops profiler's parameters are not the model's but what this rank holds of a partitioned one: "
            f"the model has {right}"
            + (f". Matrix products are counted twice: a forward pass does {operations}" if operations else ""),
            "why": f"{one['path'] or one['class']} has {scaled(one['shaped'] or 0, 'params')} weights by its shape and is said to have "
            f"{scaled(one['params'] or 0, 'params')}",
        }
    if operations and profile is not None:
        said = scaled(profile["flops"] if profile["flops"] is not None else 2.0 * (profile["macs"] or 0))
        yield {
            "fault": TWICE,
            "figure": "operations of a forward pass",
            "said": said,
            "right": operations,
            "words": "The flops profiler counts matrix products twice, so that its operations and every FLOPS are too high: "
            f"a forward pass does {operations} instead of what it prints",
            "why": f"{doubled[0]['path'] or doubled[0]['class']} has twice as many rows as the normalisation or activation beside "
            "it: ZeRO-3's own linear function is counted, and so is the product inside of it",
        }


def _has_inside(row: Row, rows: list[Row]) -> bool:
    """Whether modules stand inside of it: the next one in the tree is deeper."""
    after = row["order"] + 1
    return after < len(rows) and bool(rows[after]["depth"] > row["depth"])


def _of_micro_batch(run: Row, profile: Row) -> Iterator[Row]:
    """The profiler starts anew with each micro-batch, so that what it counts is of one."""
    if (run["accumulation"] or 1) < 2 or not profile["engine"]:
        return
    many = run["accumulation"]
    yield {
        "fault": MICRO_BATCH,
        "figure": "operations, samples/second and FLOPS",
        "said": f"{profile['samples_per_second']:,.2f} samples/second"
        if profile["samples_per_second"]
        else "of one step",
        "right": None,
        "words": f"The flops profiler counts one of the {many} micro-batches of a step: its operations are of one, and its "
        "samples/second and FLOPS leave out that the optimizer's step serves all of them",
        "why": f"The log tells {many} micro-batches a step (gradient_accumulation_steps), and the profiler starts anew with each",
    }


def _of_comms(run: Row, lines: list[Row]) -> Iterator[Row]:
    """Latencies of the comms logger that are sums of all before, or that the trace contradicts."""
    compared = [
        one
        for one in lines
        if one["traced_most"] and one["average"] and one["average"] > MUCH_LONGER * one["traced_most"]
    ]
    worst = max(compared, key=lambda one: (one["bytes"], one["op"]), default=None)
    beside = ""
    if worst is not None:
        beside = (
            f"{worst['op']} of {format_bytes(worst['bytes'])} takes {format_duration(worst['traced_median'])} in the trace (at most "
            f"{format_duration(worst['traced_most'])}), not {format_duration(worst['average'])}"
        )
    if not lines or not (run["cumulative"] or worst is not None):
        return
    top = worst or lines[0]
    cumulative = bool(run["cumulative"])
    yield {
        "fault": CUMULATIVE if cumulative else CONTRADICTED,
        "figure": "latency and bandwidth of collectives",
        "said": f"{format_duration(top['average'] or 0)} for {top['op']} of {format_bytes(top['bytes'])}",
        "right": f"{format_duration(worst['traced_median'])} in the trace" if worst else None,
        "words": (
            "The comms logger's latencies are sums over all earlier calls and its bandwidths follow from them, so that neither is "
            "of the network"
            if cumulative
            else "The comms logger's latencies are mostly waiting, for other ranks and for the first call, and its bandwidths follow "
            "from them"
        )
        + (f": {beside}" if beside else ""),
        "why": str(run["why_cumulative"] or "DeepSpeed 0.18.4 and later sums them up") if cumulative else beside,
    }
