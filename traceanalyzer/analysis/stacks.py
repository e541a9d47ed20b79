"""The heaviest paths of calls of some parts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis.parts import Part
from traceanalyzer.config import Config
from traceanalyzer.derive.trees.heavy_paths import heavy_paths
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.stacks import HeavyPath, HeavyPaths

LEAST = (0.03, 0.05, 0.08, 0.12, 0.2)
"""Of the time of a tree: what has less is put together further up. The first of these that leaves few enough paths counts."""
MOST = 6
"""Paths of one tree that a person reads."""


def stacks(part: Part, config: Config, most: int = MOST) -> list[HeavyPaths]:
    """The heaviest paths of each tree of one part, idle time first."""
    tables = part.catalog(config)
    trees = tables.table("call_trees")
    return [_heaviest(part.input.rank, tree, _window(tables, tree), most) for tree in _each(trees)]


def _each(trees: pa.Table) -> Iterator[pa.Table]:
    """The rows of each tree."""
    first = pc.indices_nonzero(pc.equal(trees["parent"], -1)).to_pylist()
    for start, stop in zip(first, [*first[1:], trees.num_rows], strict=True):
        yield trees.slice(start, stop - start)


def _heaviest(rank: int | None, tree: pa.Table, window: tuple[int, int | None], most: int) -> HeavyPaths:
    names = tree["name"]
    choices = (heavy_paths(tree, least) for least in LEAST)
    found = next((one for one in choices if len(one) <= most), None) or heavy_paths(tree, LEAST[-1])[:most]
    paths = tuple(HeavyPath(tuple(names[row].as_py() for row in rows), ns) for rows, ns in found)
    return HeavyPaths(
        rank, tree["device"][0].as_py(), tree["tree"][0].as_py(), tree["total_ns"][0].as_py(), *window, paths
    )


def _window(tables: Tables, tree: pa.Table) -> tuple[int, int | None]:
    """What shares of a tree are of, and how long a step takes."""
    rows = tables.table("ledger").filter(pc.equal(tables.table("ledger")["rank"], tree["rank"][0]))
    device = tree["device"][0]
    if device.is_valid:
        row = rows.filter(pc.equal(rows["device"], device)).to_pylist()[0]
        return row["duration"], row["step_time"]
    # All of it is the time of threads.
    steps = [step for step in rows["step_time"].to_pylist() if step]
    threads = pc.sum(pc.equal(tree["kind"].cast(pa.string()), "thread")).as_py()
    return tree["total_ns"][0].as_py() // max(threads, 1), max(steps, default=None)
