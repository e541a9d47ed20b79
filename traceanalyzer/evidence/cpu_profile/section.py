"""The section of a CPU profile in the report: what its main thread ran, start-up apart, by function and as a flame graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from traceanalyzer.evidence.cpu_profile.words import caveats, clock_words, functions_of, shown
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Flame, Grid, Section, Unit, Words
from traceanalyzer.units import format_share

SHOWN_FUNCTIONS, SHOWN_THREADS, FLAMES = 25, 30, 4
Row = dict[str, object]


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all profiles; none without one."""
    about = tables.table("cpu_profiles").to_pylist()
    if not about:
        return
    threads = tables.table("cpu_threads").to_pylist()
    clocks = {row["rank"]: row for row in tables.table("cpu_clock").to_pylist()}
    paths = tables.table("cpu_paths").to_pylist()
    placed = {row["rank"]: row for row in tables.table("placed_evidence").to_pylist() if row["kind"] == "cpu_profile"}
    ranks = {one.path: one.rank for one in result.evidence}
    blocks: list[Block] = []
    for one in about:
        mine = [row for row in threads if row["rank"] == one["rank"]]
        drawn = [row for row in paths if row["rank"] == one["rank"]]
        whose = _whose(placed.get(one["rank"]), ranks) if len(about) > 1 else ""
        blocks += _blocks(one, mine, drawn, clocks.get(one["rank"]), tables, whose)
    yield Section("cpu-profile", "CPU profile", blocks, order=90)


def _whose(placed: Row | None, ranks: dict[str, int | None]) -> str:
    """Which of several profiles: by its rank, else by its file."""
    if placed is None:
        return ""
    path = str(placed["path"])
    rank = ranks.get(path)
    return f" on rank {rank}" if rank is not None else f" ({PurePath(path).name})"


def _blocks(
    about: Row, threads: Sequence[Row], paths: Sequence[Row], clock: Row | None, tables: Tables, whose: str
) -> Iterator[Block]:
    main = next(row for row in threads if row["main"])
    functions = functions_of(tables, main)
    yield Words(f"{shown(main, functions, about)}.")
    for words in (clock_words(about, clock, any(row["python"] for row in threads)), caveats(about)):
        if words:
            yield Words(words)
    unit: Unit = "ns" if about["unit"] == "ns" else "count"
    outside = ", outside the import chain" if main["startup"] else ""
    if functions:
        yield _functions(f"The user's own functions on {main['label']}{outside}{whose}", functions, unit)
    if len(threads) > 1:
        yield _threads(f"Threads of the CPU profile{whose}", threads, unit)
    order = sorted(threads, key=lambda row: (not row["main"], -_int(row["weight"]), _int(row["thread"])))
    for row in order[:FLAMES]:
        for startup in (False, True) if row["main"] else (False,):
            mine = [one for one in paths if one["thread"] == row["thread"] and one["startup"] == startup]
            if mine:
                share = format_share(_int(row["startup"]) / max(_int(row["weight"]), 1))
                without = ", outside the import chain" if row["startup"] else ""
                title = (
                    f"Start-up: the import chain on {row['label']}, {share} of all, which runs once{whose}"
                    if startup
                    else f"Stacks of {row['label']}{without}{whose}"
                )
                yield Flame(title, unit, [(one["path"], one["weight"]) for one in mine])  # type: ignore[misc]


def _functions(title: str, functions: Sequence[Row], unit: Unit) -> Grid:
    columns: list[tuple[str, Unit]] = [
        ("Function", "text"),
        ("Called by", "text"),
        ("In it", unit),
        ("Share", "share"),
        ("Mostly in", "text"),
    ]
    rows = [
        [row["place"], str(row["path"]).rpartition(" → ")[0] or None, row["weight"], row["share"], row["inside"]]
        for row in functions[:SHOWN_FUNCTIONS]
    ]
    return Grid(title, columns, rows)  # type: ignore[arg-type]


def _threads(title: str, threads: Sequence[Row], unit: Unit) -> Grid:
    columns: list[tuple[str, Unit]] = [
        ("Thread", "text"), ("Samples", "count"), ("Ran", unit), ("Import chain", unit), ("The user's own code", unit),
        ("Waiting in libraries", unit),
    ]  # fmt: skip
    order = sorted(threads, key=lambda row: (-_int(row["weight"]), _int(row["thread"])))[:SHOWN_THREADS]
    rows = [[row[name] for name in ("label", "samples", "weight", "startup", "own", "waiting")] for row in order]
    return Grid(title, columns, rows)  # type: ignore[arg-type]


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
