"""Made-up trees of calls, as the table `call_trees` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from report_sample import HOSTILE, HOSTILE_TOO

from traceanalyzer.derive.trees.tables import CALL_TREES

Node = tuple[str, str, int, list[Any]]
"""Name, kind, ns of its own, children."""
LONG = "step_" + "very_" * 60 + "long"


def tree_table(*trees: tuple[int, int | None, str, Node]) -> pa.Table:
    """The table of trees, each of a rank, a GPU (null: the host) and a kind."""
    rows: list[tuple[Any, ...]] = []
    for rank, device, tree, root in trees:
        _add(rows, (rank, device, tree), root, -1, [0])
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(CALL_TREES.columns)
    arrays = [_array(values, column.type) for values, column in zip(columns, CALL_TREES.columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=CALL_TREES.schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    made = pa.array(values, plain)
    return made.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else made


def _add(rows: list[tuple[Any, ...]], key: tuple[Any, ...], node: Node, parent: int, count: list[int]) -> int:
    name, kind, own, children = node
    number, at = count[0], len(rows)
    count[0] += 1
    rows.append(())
    total = own + sum(_add(rows, key, child, number, count) for child in children)
    rows[at] = (*key, number, parent, name, kind, total, own)
    return total


def one_rank(scale: int = 1) -> list[tuple[int | None, str, Node]]:
    """The trees of one rank: idle time of 1 ms and GPU time of 2 ms, times `scale`, and as much of the host."""

    def ns(amount: int) -> int:
        return amount * scale

    loader: Node = (
        "train.py(12): next_batch",
        "python",
        ns(50_000),
        [
            ("decode", "annotation", ns(300_000), [("read", "os", ns(150_000), [])]),
            ("decode", "operator", ns(60_000), []),
            (HOSTILE, "python", ns(40_000), []),
        ],
    )
    metrics: Node = (
        LONG,
        "python",
        ns(20_000),
        [("decode", "annotation", ns(80_000), [("read", "os", ns(30_000), [])])],
    )
    idle: Node = (
        "idle",
        "root",
        0,
        [
            ("input", "cause", 0, [("python3", "thread", ns(10_000), [loader])]),
            ("host_work", "cause", 0, [("python3", "thread", 0, [metrics])]),
            ("unattributed", "cause", ns(260_000), []),
        ],
    )
    step: Node = ("forward", "annotation", 0, [("aten::mm", "operator", 0, [("gemm", "kernel", ns(1_500_000), [])])])
    gpu: Node = ("gpu", "root", 0, [step, (HOSTILE_TOO, "operator", 0, [("relu", "kernel", ns(500_000), [])])])
    host: Node = ("host", "root", 0, [("python3", "thread", ns(1_000_000), [loader, metrics])])
    return [(0, "idle", idle), (0, "gpu", gpu), (None, "host", host)]


def call_trees(ranks: int = 2) -> pa.Table:
    """Trees of so many ranks, of which each has as much time as the first and all ranks before it together."""
    made = [(rank, *one) for rank in range(ranks) for one in one_rank(2 ** max(rank - 1, 0))]
    return tree_table(*made)


def wide_tree(nodes: int, depth: int = 12, seed: int = 3) -> pa.Table:
    """About `nodes` nodes `depth` deep, of some hundred frames, with times that spread over five orders."""
    rng = np.random.default_rng(seed)
    parent, level = np.full(nodes, -1), np.zeros(nodes, np.int64)
    for i in range(1, nodes):  # each below the one before it, or below one around that
        up = max(int(rng.integers(-1, 3)), 0) if level[i - 1] < depth else 1 + int(rng.integers(0, depth))
        around = i - 1
        for _ in range(min(up, int(level[i - 1]))):
            around = int(parent[around])
        parent[i], level[i] = around, level[around] + 1
    own = (10 ** rng.uniform(2, 7, nodes)).astype(np.int64)
    total = own.copy()
    for i in range(nodes - 1, 0, -1):
        total[parent[i]] += total[i]
    kinds = np.array(["python", "operator", "annotation", "call"])
    picked = rng.integers(0, 400, nodes)
    names = [f"frame_{number}" for number in picked]
    values = {
        "rank": np.zeros(nodes, np.int32),
        "device": np.zeros(nodes, np.int32),
        "tree": ["idle"] * nodes,
        "node": np.arange(nodes),
        "parent": parent,
        "name": ["idle", *names[1:]],
        "kind": ["root", *kinds[picked[1:] % 4]],
        "total_ns": total,
        "self_ns": own,
    }
    arrays = [_array(list(values[column.name]), column.type) for column in CALL_TREES.columns]
    return pa.Table.from_arrays(arrays, schema=CALL_TREES.schema)
