"""The section of a DeepSpeed log in the report: where steps go, how fast the GPU computes by each figure, modules, collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.answers.faults import scaled
from traceanalyzer.evidence.deepspeed_log.answers.growth import LEAST, WARM_UP
from traceanalyzer.evidence.deepspeed_log.answers.instruments import counted
from traceanalyzer.evidence.deepspeed_log.answers.phases import MAIN, label_of
from traceanalyzer.evidence.deepspeed_log.answers.rates import BY_PROFILER, BY_TIMERS, ONCE
from traceanalyzer.evidence.deepspeed_log.tables import MICRO
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Flame, Grid, Levels, Section, Unit, Words
from traceanalyzer.units import format_duration, format_share

SHOWN_MODULES = 40
SHOWN_COLLECTIVES = 25
MOST_PATHS = 2000
"""Modules that are drawn, those with most operations."""
WORTH = 0.05
Row = dict[str, Any]


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all logs; none without one."""
    runs = _table(tables, "run")
    if not runs:
        return
    ranks = {row["rank"]: _whose(row["rank"], result, tables) for row in runs}
    blocks: list[Block] = []
    for run in sorted(runs, key=lambda run: (not run["total"], run["rank"])):
        blocks += _blocks(run, runs, ranks[run["rank"]], tables)
    if blocks:
        yield Section("deepspeed-log", "DeepSpeed's log", blocks, order=160)


def headline(tables: Tables) -> str | None:
    """Where a step goes; without timers, how many operations a forward pass does. None where the log tells neither."""
    for run in _table(tables, "run"):
        if run["breakdown"]:
            return str(run["breakdown"])
    rates = {row["label"]: row["tflops"] for row in _table(tables, "rates") if row["tflops"]}
    told = "DeepSpeed's flops profiler gives one GPU {:.4g} TFLOPS in the step that it profiled"
    for label, words in ((ONCE, f"{told}, each product counted once"), (BY_PROFILER, told)):
        if label in rates:
            return words.format(rates[label])
    if rates:
        label, tflops = next(iter(rates.items()))
        return f"One GPU computes at {tflops:.4g} TFLOPS ({label})"
    for run in _table(tables, "run"):
        if run["samples"]:
            return f"DeepSpeed's log gives {run['samples']:,.4g} samples a second (median), and no times of phases"
    return None


def _table(tables: Tables, name: str) -> list[Row]:
    rows: list[Row] = tables.table(f"deepspeed_{name}").to_pylist()
    return rows


def _whose(rank: int, result: Result, tables: Tables) -> str:
    """Which file it is of, where several are given that are not beside one trace."""
    placed = [row for row in tables.table("placed_evidence").to_pylist() if row["kind"] == "deepspeed_log"]
    if len({row["rank"] for row in placed}) < 2:
        return ""
    names = sorted(PurePath(row["path"]).name for row in placed if row["rank"] == rank)
    return f" ({', '.join(names)})"


def _blocks(run: Row, runs: Sequence[Row], whose: str, tables: Tables) -> Iterator[Block]:
    rank = run["rank"]
    yield Words(" ".join(f"{one}." for one in _told(run)))
    phases = _of(tables, "phases", rank)
    steps = tables.table("deepspeed_step_times").filter(pc.equal(tables.table("deepspeed_step_times")["rank"], rank))
    if steps.num_rows > 1:
        yield _levels(steps, whose)
    if phases:
        yield _phases(phases, whose)
    if rates := _rates(run, runs, tables):
        yield rates
    if faults := _of(tables, "faults", rank):
        columns: list[tuple[str, Unit]] = [("Figure", "text"), ("DeepSpeed says", "text"), ("Right", "text")]
        yield Grid(
            f"What not to believe{whose}", columns, [[row["figure"], row["said"], row["right"]] for row in faults]
        )
    yield from _modules(_of(tables, "module_costs", rank), whose)
    if collectives := _of(tables, "collectives", rank):
        yield _collectives(collectives, whose)


def _of(tables: Tables, name: str, rank: int) -> list[Row]:
    return [row for row in _table(tables, name) if row["rank"] == rank]


def _told(run: Row) -> Iterator[str]:
    """What the log tells of the run, as sentences without their stops."""
    zero: str = run["zero"]
    facts = [zero[:1].upper() + zero[1:]]
    if run["version"]:
        facts.append(f"DeepSpeed {run['version']}")
    if run["world_size"]:
        facts.append(counted(run["world_size"], "rank"))
    if run["batch"]:
        facts.append(f"{counted(run['batch'], 'sample')} a micro-batch and GPU")
    if run["accumulation"]:
        facts.append(f"{run['accumulation']:,} micro-batches a step")
    yield "; ".join(facts)
    if run["breakdown"]:
        yield run["breakdown"]
    if run["samples"]:
        yield f"It prints {run['samples']:,.4g} samples a second (median)"
    outside = (run["between"] or 0) - (run["total"] or 0)
    if run["between"] and run["total"] and outside > WORTH * run["between"]:
        yield (
            f"From one step's line to the next it is {format_duration(run['between'])}, of which {format_duration(outside)} "
            f"({format_share(outside / run['between'])}) lie outside of these phases: loading data, logging, evaluation"
        )


def _levels(steps: pa.Table, whose: str) -> Levels:
    """Phases step by step, one second of the axis for each that they took. The first few, which set up, would hide all others."""
    warm = steps.filter(pc.greater_equal(steps["sample"], WARM_UP))
    left_out = warm.num_rows >= LEAST
    steps = warm if left_out else steps
    values = {name: steps[name].to_pylist() for name in MAIN}
    times, now = [], 0
    for parts in zip(*values.values(), strict=True):
        times.append(now)
        now += sum(parts)
    series = [(label_of(name), values[name]) for name in MAIN]
    after = f" after the first {WARM_UP}" if left_out else ""
    return Levels(
        f"Each step{after} by DeepSpeed's timers, over the time that they take together{whose}", "ns", times, series
    )


def _phases(phases: Sequence[Row], whose: str) -> Grid:
    micro = {row["phase"] for row in phases if row["group"] != MICRO}
    shown = [row for row in phases if row["group"] != MICRO or row["phase"].removesuffix("_microstep") not in micro]
    columns: list[tuple[str, Unit]] = [
        ("Timer", "text"),
        ("What it times", "text"),
        ("Lines", "count"),
        ("Median", "ns"),
        ("Tenth below", "ns"),
    ]
    columns += [("Tenth above", "ns"), ("Of a step", "share"), ("Is part of another", "text")]
    names = ("phase", "label", "samples", "median", "tenth", "nine_tenths", "share")
    rows = [[*(row[name] for name in names), "yes" if row["part"] else ""] for row in shown]
    return Grid(f"Phases{whose}", columns, rows)


def _rates(run: Row, runs: Sequence[Row], tables: Tables) -> Grid | None:
    """How fast the GPU computes by each figure. A profile alone is set beside the only timers that were given."""
    rows = _of(tables, "rates", run["rank"])
    timed = [one for one in runs if one["total"]]
    counted_ones = [row for row in rows if row["label"] in (BY_PROFILER, ONCE) and row["flops"]]
    if counted_ones and not run["total"] and len(timed) == 1:
        flops = counted_ones[-1]["flops"] * (run["accumulation"] or 1)
        rows.append(
            {
                "label": BY_TIMERS,
                "flops": flops,
                "time": timed[0]["total"],
                "tflops": flops / timed[0]["total"] * 1e-3,
                "meaning": "with the timers on, if both files are of one run",
            }
        )
    if not rows:
        return None
    columns: list[tuple[str, Unit]] = [
        ("Operations of a GPU", "text"),
        ("FLOP", "text"),
        ("In", "ns"),
        ("TFLOPS", "text"),
        ("What to take it for", "text"),
    ]
    told = [
        [
            row["label"],
            scaled(row["flops"]) if row["flops"] is not None else None,
            row["time"],
            f"{row['tflops']:.4g}" if row["tflops"] is not None else None,
            row["meaning"],
        ]
        for row in rows
    ]
    return Grid("How fast the GPU computes, by each figure", columns, told)


def _modules(modules: Sequence[Row], whose: str) -> Iterator[Block]:
    """The tree by operations, and those modules that took longest."""
    if len(modules) < 2:
        return
    by_order = {row["order"]: row for row in modules}
    paths = []
    inside: Counter[int | None] = Counter()
    for row in modules:
        inside[row["parent"]] += (row["once"] or 0) * row["repeat"]
    for row in sorted(modules, key=lambda row: -(row["once"] or 0))[:MOST_PATHS]:
        own = (row["once"] or 0) - inside[row["order"]]
        if own > 0:
            paths.append((_path(row, by_order), own * row["repeat"]))
    if paths:
        once = " (each product counted once)" if any(row["twice"] for row in modules) else ""
        yield Flame(f"Multiply-accumulate operations of a forward pass by module{once}{whose}", "count", sorted(paths))
    slow = sorted((row for row in modules if row["latency"]), key=lambda row: (-row["latency"], row["order"]))[
        :SHOWN_MODULES
    ]
    columns: list[tuple[str, Unit]] = [
        ("Module", "text"),
        ("Class", "text"),
        ("Latency", "ns"),
        ("MACs", "text"),
        ("TFLOPS", "text"),
        ("Parameters", "text"),
    ]
    rows = [
        [
            row["path"] or "(root)",
            row["class"],
            row["latency"],
            scaled(row["once"]) if row["once"] is not None else None,
            f"{row['flops'] / row['latency'] * 1e-3:.4g}"
            if row["flops"] and not row["twice"] and row["depth"] != 0
            else None,
            scaled(row["shaped"], "params")
            if row["shaped"] is not None
            else None
            if row["sharded"]
            else scaled(row["params"] or 0, "params"),
        ]
        for row in slow
    ]
    if rows:
        yield Grid(f"Modules by latency of the forward pass, with the GPU waited for around each{whose}", columns, rows)


def _path(row: Row, by_order: dict[int, Row]) -> list[str]:
    path = []
    at: Row | None = row
    while at is not None:
        name = at["path"].rpartition(".")[2]
        path.append(f"{name}: {at['class']}" if name else at["class"])
        at = by_order.get(at["parent"]) if at["parent"] is not None else None
    return path[::-1]


def _collectives(collectives: Sequence[Row], whose: str) -> Grid:
    columns: list[tuple[str, Unit]] = [
        ("Operation", "text"),
        ("Message", "bytes"),
        ("Calls", "count"),
        ("Mean latency it says", "ns"),
    ]
    names = ["op", "bytes", "calls", "average"]
    if any(row["straggler"] is not None for row in collectives):
        columns.append(("Waiting for late ranks, all calls", "ns"))
        names.append("straggler")
    if any(row["traced"] for row in collectives):
        columns += [("Kernels in the trace", "count"), ("Their median", "ns"), ("Longest", "ns")]
        names += ["traced", "traced_median", "traced_most"]
    columns.append(("What to take the latency for", "text"))
    rows = [[row[name] for name in [*names, "meaning"]] for row in collectives[:SHOWN_COLLECTIVES]]
    return Grid(f"What the comms logger says of collectives{whose}", columns, rows)
