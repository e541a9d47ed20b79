"""The section of counters in the report: what limits each kernel, how much of the trace it is, and the roofline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

from traceanalyzer.evidence.kernel_counters.answers import words
from traceanalyzer.evidence.kernel_counters.roofline import roofline
from traceanalyzer.model.tables import Tables
from traceanalyzer.names import readable_name
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Grid, Section, Unit, Words
from traceanalyzer.units import format_duration

SHOWN = 25
Row = dict[str, Any]
_RATIOS = (
    "Nsight Compute runs each kernel alone, with caches emptied and, unless told otherwise, at a fixed clock, so its shares of peaks "
    "are used here and its times are not."
)
_COLUMNS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("Kernel", "text"), "kernel"),
    (("Grid", "text"), "grid"),
    (("Block", "text"), "block"),
    (("Launches profiled", "count"), "profiled"),
    (("Launches matched", "count"), "matched"),
    (("Exposed time", "ns"), "exposed"),
    (("Limiter", "text"), "limited_by"),
    (("Of peak", "share"), "used"),
    (("Multiprocessors", "share"), "sm"),
    (("Memory", "share"), "memory"),
    (("Occupancy", "share"), "occupancy"),
    (("Largest of ncu's own rules", "text"), "rule"),
    (("Its estimate", "share"), "estimate"),
)


def headline(tables: Tables) -> str | None:
    """What limits the kernel with most time, where no rule found anything."""
    rows = tables.table("kernel_limits").to_pylist()
    told = [row for row in rows if row["limiter"] != "unknown" and (row["matched"] is None or row["matched"])]
    most = max(told, key=lambda row: row["weight"], default=None)
    if most is None:
        return None
    return str(most["what"])


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all GPUs."""
    rows = tables.table("kernel_limits").to_pylist()
    if not rows:
        return
    names = _names(rows, result, tables)
    blocks: list[Block] = []
    for key, group in groupby(rows, key=lambda row: (row["rank"], row["device"])):
        blocks += _blocks(list(group), names[key], result)
    blocks.append(Words(_RATIOS))
    yield Section("kernel-counters", "What limits the kernels", blocks, order=60)


def _names(rows: Sequence[Row], result: Result, tables: Tables) -> dict[tuple[int, int], str]:
    """Which GPU of which rank, as far as there are several; of a rank that is not known, of which file."""
    keys = list(dict.fromkeys((row["rank"], row["device"]) for row in rows))
    placed = {
        row["rank"]: row
        for row in reversed(tables.table("placed_evidence").to_pylist())
        if row["kind"] == "kernel_counters"
    }
    ranks = {one.path: one.rank for one in result.evidence}
    several_ranks, several_gpus = len({rank for rank, _ in keys}) > 1, len(keys) > len({rank for rank, _ in keys})
    found = {}
    for ordinal, device in keys:
        path = placed[ordinal]["path"] if ordinal in placed else ""
        rank = ranks.get(path)
        on = [f"rank {rank}"] if several_ranks and rank is not None else []
        on += [f"GPU {device}"] if several_gpus else []
        file = f" ({PurePath(path).name})" if several_ranks and rank is None and path else ""
        found[ordinal, device] = (f" on {', '.join(on)}" if on else "") + file
    return found


def _blocks(rows: list[Row], whose: str, result: Result) -> Iterator[Block]:
    if said := " ".join(_words(rows)):
        yield Words(said)
    shown = [
        {**row, "kernel": readable_name(row["name"]), "limited_by": words.LIMITERS[row["limiter"]]}
        for row in rows[:SHOWN]
    ]
    columns = [(column, name) for column, name in _COLUMNS if any(row[name] is not None for row in shown)]
    table = [[row[name] for _, name in columns] for row in shown]
    yield Grid(f"What limits the kernels that were profiled{whose}", [column for column, _ in columns], table)
    if (plot := roofline(rows, whose)) is not None:
        yield plot


def _words(rows: list[Row]) -> Iterator[str]:
    traced = [row for row in rows if row["matched"] is not None]
    if traced:
        profiled = sum(row["profiled"] for row in traced)
        found = sum(row["profiled"] for row in traced if row["matched"])
        share = sum(row["share"] for row in traced)
        exposed = sum(row["exposed"] for row in traced)
        yield (
            f"{found:,} of {profiled:,} profiled launches are of kernels of the trace, with the same function, grid and block. "
            f"They stand for {sum(row['matched'] for row in traced):,} launches, {format_duration(exposed)} of exposed time: "
            f"{words.percent(min(share, 1.0))} of that of all compute kernels."
        )
        if shared := sum(row["shared"] for row in traced if not row["matched"]):
            yield f"For {shared:,} launches of the trace several kernels have that function, grid and block; none was taken for it."
