"""One tree of calls, made of times by path: its nodes with their totals, in preorder, at most so many."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np

from traceanalyzer.columns.uniques import unique
from traceanalyzer.derive.trees.paths import KIND, TOP, Paths
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

MOST_NODES = 100_000
"""Nodes of one tree. No one sees more, and a page must draw them."""


@dataclass(frozen=True)
class Nodes:
    """Nodes of a tree, each behind what is around it: the position of that (-1 for the root), name, kind, and ns of its own and of all
    in it. `name` and `kind` are numbers of `Names` and `KINDS`."""

    parent: Array
    name: Array
    kind: Array
    own: Array
    total: Array

    def take(self, rows: Array) -> Nodes:
        """Some nodes, among them all that are around others, in an order in which they still come first."""
        place = np.full(len(self.parent) + 1, -1)
        place[rows] = np.arange(len(rows))
        kept = Nodes(*(getattr(self, field.name)[rows] for field in fields(self)))
        return Nodes(place[kept.parent], kept.name, kept.kind, kept.own, kept.total)


def tree(
    root: str,
    paths: Paths,
    path: Array,
    ns: Array,
    branch: Array | None = None,
    branches: tuple[Array, Array] | None = None,
    most: int = MOST_NODES,
) -> Nodes:
    """The tree of times by path, below its root or, where branches are given as (names, kinds), below the `branch` of each time.

    Beyond `most` nodes the smallest are put together as `(other)`, one in each node, with their exact total.
    """
    some = ns > 0
    path, ns = path[some], ns[some]
    branch = np.zeros(len(path), np.int64) if branch is None else branch[some]
    grown = _grown(paths.names.code(root), paths, path, ns, branch, branches)
    return _in_order(_pruned(grown, most, paths.names.code("(other)")), paths.names.values)


def _grown(
    root: int, paths: Paths, path: Array, ns: Array, branch: Array, branches: tuple[Array, Array] | None
) -> Nodes:
    """All nodes, level by level."""
    around, name, kind, depth = paths.parent, paths.name, paths.kind, paths.depth
    width = len(around) + 1
    # A branch and a path in it as one number; the path `TOP` is the branch itself.
    key, at = unique(branch * width + path + 1)
    own = np.zeros(len(key), np.int64)
    np.add.at(own, at, ns)
    level = np.append(depth, TOP)[key % width - 1]
    order = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[order], np.arange(TOP, int(level.max(initial=TOP)) + 2))
    # From the innermost out: what has time of its own, and what is around those further in.
    keys: list[Array] = []
    for number in range(len(bounds) - 2, -1, -1):
        here = key[order[bounds[number] : bounds[number + 1]]]
        if keys:
            inner = keys[-1]
            here = np.union1d(here, inner - inner % width + around[inner % width - 1] + 1)
        keys.append(here)
    keys.reverse()
    count = np.cumsum([0, *map(len, keys)])
    parent = np.concatenate(
        [
            np.full(len(keys[0]), TOP) if keys else np.empty(0, np.int64),
            *(
                np.searchsorted(outer, inner - inner % width + around[inner % width - 1] + 1) + first
                for outer, inner, first in zip(keys[:-1], keys[1:], count[:-2], strict=True)
            ),
        ]
    )
    every = np.concatenate(keys) if keys else np.empty(0, np.int64)
    which, place = every // width, every % width - 1
    names, kinds = np.append(name, 0)[place], np.append(kind, 0)[place]
    selves = np.zeros(len(every), np.int64)
    found = np.searchsorted(key, every)
    hit = found < len(key)
    hit[hit] = key[found[hit]] == every[hit]
    selves[hit] = own[found[hit]]
    if branches is None:
        # The only branch is the root.
        parent, names, kinds, selves = (
            (parent, names, kinds, selves)
            if len(every)
            else (np.array([TOP]), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
        )
        names[0], kinds[0] = root, KIND["root"]
    else:
        top = place == TOP
        names[top], kinds[top] = branches[0][which[top]], branches[1][which[top]]
        parent = np.concatenate(([TOP], parent + 1))
        names, kinds = np.concatenate(([root], names)), np.concatenate(([KIND["root"]], kinds))
        selves = np.concatenate(([0], selves))
    return Nodes(parent, names, kinds, selves, _sums(parent, selves))


def _levels(parent: Array) -> list[slice]:
    """The levels of nodes that are in the order of their levels."""
    reach = np.maximum.accumulate(parent)
    bounds = [0, 1]
    while bounds[-1] < len(parent):
        # A level ends with the last node that is in one of the level before.
        bounds.append(int(np.searchsorted(reach, bounds[-1])))
    return [slice(low, high) for low, high in pairwise(bounds)]


def _sums(parent: Array, own: Array) -> Array:
    """For each node its own value and those of all in it. Nodes are in the order of their levels."""
    result = own.copy()
    for level in reversed(_levels(parent)[1:]):
        np.add.at(result, parent[level], result[level])
    return result


def _pruned(nodes: Nodes, most: int, other: int) -> Nodes:
    """At most so many nodes: the largest, and in each of them what is left of others."""
    count = len(nodes.parent)
    if count <= most:
        return nodes
    # No node is larger than what is around it, and of equals the outer comes first. Each that is kept may need one more.
    kept = np.sort(np.argsort(-nodes.total, kind="stable")[: max(most // 2, 1)])
    keep = np.zeros(count, bool)
    keep[kept] = True
    lost = np.flatnonzero(~keep & np.append(keep, False)[nodes.parent])
    rest = np.zeros(count, np.int64)
    np.add.at(rest, nodes.parent[lost], nodes.total[lost])
    holders = np.unique(nodes.parent[lost])
    more = len(holders)
    whole = Nodes(
        np.concatenate((nodes.parent, holders)),
        np.concatenate((nodes.name, np.full(more, other))),
        np.concatenate((nodes.kind, np.full(more, KIND["other"]))),
        np.concatenate((nodes.own, rest[holders])),
        np.concatenate((nodes.total, rest[holders])),
    )
    # In the order of the levels again: that of what is around them.
    rows = np.concatenate((kept, np.arange(count, count + more)))
    return whole.take(rows[np.argsort(whole.parent[rows], kind="stable")])


def _in_order(nodes: Nodes, names: list[str]) -> Nodes:
    """In preorder, of those in one node the largest first, of equals by name."""
    levels = _levels(nodes.parent)
    size = _sums(nodes.parent, np.ones(len(nodes.parent), np.int64))
    used, code = np.unique(nodes.name, return_inverse=True)
    texts = [names[one] for one in used.tolist()]
    rank = np.empty(len(used), np.int64)
    rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    order = np.lexsort((nodes.kind, rank[np.reshape(code, -1)], -nodes.total, nodes.parent))
    parent = nodes.parent[order]
    # What comes before each node in the one around it.
    ahead = np.cumsum(size[order]) - size[order]
    first = np.searchsorted(parent, parent, side="left")
    offset = np.empty(len(order), np.int64)
    offset[order] = ahead - ahead[first]
    place = np.zeros(len(order), np.int64)
    for level in levels[1:]:
        place[level] = place[nodes.parent[level]] + 1 + offset[level]
    rows = np.empty(len(order), np.int64)
    rows[place] = np.arange(len(order))
    return nodes.take(rows)
