"""The section of a memory snapshot in the report: memory over time by owner, who holds the peak, its stacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Key
from traceanalyzer.evidence.memory_snapshot.answers.drawing import LAST_STEPS
from traceanalyzer.evidence.memory_snapshot.answers.owners import NO_FRAME
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Flame, Grid, Lane, Levels, Mark, Section, Unit, Words
from traceanalyzer.units import format_bytes

SHOWN_OWNERS = 25
PEAK_OWNER = "MEM006"
"""The rule that says who holds most."""
Row = dict[str, object]
_COLUMNS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("Allocated at", "text"), "place"),
    (("For", "text"), "what"),
    (("At the peak", "bytes"), "peak_bytes"),
    (("Blocks", "count"), "peak_blocks"),
    (("Share", "share"), "share"),
    (("Between steps", "bytes"), "steady_bytes"),
    (("At the snapshot", "bytes"), "end_bytes"),
    (("As large as blocks of", "text"), "alike"),
)


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all GPUs of the snapshots; none without a snapshot."""
    memory = tables.table("snapshot_memory").to_pylist()
    if not memory:
        return
    told = any(finding.rule == PEAK_OWNER for finding in result.findings)
    names = _names([(row["rank"], row["device"]) for row in memory], result, tables)
    blocks: list[Block] = []
    for row in memory:
        key = (row["rank"], row["device"])
        blocks += _blocks(key, row, tables, names[key], told)
    yield Section("memory-snapshot", "Memory", blocks, lanes=tuple(_lanes(tables.table("snapshot_lanes"))), order=100)


def _names(gpus: Sequence[Key], result: Result, tables: Tables) -> dict[Key, str]:
    """Which GPU of which rank, as far as there are several; of a rank that is not known, of which file."""
    placed = {row["rank"]: row for row in tables.table("placed_evidence").to_pylist()}
    ranks = {one.path: one.rank for one in result.evidence}
    apart = len({rank for rank, _ in gpus}) > 1 or (bool(result.inputs) and not placed[gpus[0][0]]["placed_by"])
    several = len(gpus) > len({rank for rank, _ in gpus})
    found = {}
    for ordinal, device in gpus:
        path = placed[ordinal]["path"]
        rank = ranks.get(path)
        on = [f"rank {rank}"] if apart and rank is not None else []
        on += [f"GPU {device}"] if several else []
        file = f" ({PurePath(path).name})" if apart and rank is None else ""
        found[ordinal, device] = (f" on {', '.join(on)}" if on else "") + file
    return found


def _blocks(key: Key, memory: Row, tables: Tables, whose: str, told: bool) -> Iterator[Block]:
    owners = frames.by_device(tables.table("snapshot_owners"))[key].slice(0, SHOWN_OWNERS).to_pylist()
    if words := _words(memory, owners, whose, told):
        yield Words(words)
    levels = frames.by_device(tables.table("snapshot_levels"))[key]
    if levels.num_rows:
        steps = frames.by_device(tables.table("snapshot_steps"))[key]
        yield from _charts(levels, steps, memory, whose)
    when = "at the peak" if memory["recorded"] else "at the snapshot"
    if owners:
        yield _owners(f"Who holds the memory in use {when}{whose}", owners, bool(memory["recorded"]))
    paths = frames.by_device(tables.table("snapshot_paths"))[key].to_pylist()
    if paths:
        yield Flame(f"Stacks of what is in use {when}{whose}", "bytes", [(row["path"], row["bytes"]) for row in paths])


def _words(memory: Row, owners: Sequence[Row], whose: str, told: bool) -> str:
    """What neither a finding nor a line of health says; `told` is whether a finding says who holds the peak."""
    said = [] if told else [f"{memory['lead']}{whose}{memory['rest']}."]
    if not memory["placed"]:
        said.append("No stacks were recorded, so that no line can be named.")
    elif any(row["place"] == NO_FRAME for row in owners):
        said.append("Blocks that autograd's threads allocate in the backward pass carry no line of Python.")
    return " ".join(said)


def _charts(levels: pa.Table, steps: pa.Table, memory: Row, whose: str) -> Iterator[Levels]:
    series: dict[int, list[dict[str, int | str]]] = {}
    for row in levels.to_pylist():
        series.setdefault(row["series"], []).append(row)
    first = series[0]
    times = [int(row["time_ns"]) for row in first]
    start, end, peak = memory["start_ns"], memory["end_ns"], memory["peak_allocated"]
    assert isinstance(start, int) and isinstance(end, int) and isinstance(peak, int)
    mark = Mark(start, end, f"peak: {format_bytes(peak)}")
    spans = [Mark(row["start_ns"], row["end_ns"], f"step {row['index']}") for row in steps.to_pylist()]
    owned = [(str(rows[0]["label"]), [int(row["bytes"]) for row in rows]) for rows in series.values()]
    yield Levels(f"Memory in use over time{whose}", "bytes", times, owned, [mark], spans)
    last = spans[-LAST_STEPS:]
    if len(spans) > LAST_STEPS:
        inside = [i for i, time in enumerate(times) if last[0].start_ns <= time < last[-1].end_ns]
        near = [(label, [values[i] for i in inside]) for label, values in owned]
        marks = [mark] if last[0].start_ns <= start < last[-1].end_ns else []
        title = f"Memory in use in the last {len(last)} steps{whose}"
        yield Levels(title, "bytes", [times[i] for i in inside], near, marks, last)
    used = [sum(values) for values in zip(*(values for _, values in owned), strict=True)]
    unused = [max(int(row["reserved"]) - level, 0) for row, level in zip(first, used, strict=True)]
    both = [("in use", used), ("reserved, not in use", unused)]
    yield Levels(f"Memory reserved over time{whose}", "bytes", times, both, (), spans)


def _owners(title: str, owners: Sequence[Row], recorded: bool) -> Grid:
    """Without the columns of which nothing is known, and without a history those of the peak, which is the snapshot then."""
    shown = [
        (column, name)
        for column, name in _COLUMNS
        if (recorded or name != "peak_bytes") and any(row[name] is not None for row in owners)
    ]
    rows = [[row[name] for _, name in shown] for row in owners]
    return Grid(title, [column for column, _ in shown], rows)  # type: ignore[arg-type]


def _lanes(lanes: pa.Table) -> Iterator[Lane]:
    for (rank, device), part in frames.split(lanes):
        times = part["time_ns"].to_pylist()
        for label, column in (("memory in use", "allocated"), ("memory reserved", "reserved")):
            yield Lane(rank, device, label, "bytes", times, part[column].to_pylist())
