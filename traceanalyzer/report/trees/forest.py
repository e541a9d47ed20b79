"""Trees of calls over all ranks: one tree of paths for each kind of time, in which every GPU or host has its own times.

Nodes are in level order: the root first, then all nodes one below it, and so on; siblings stand together, the heaviest first. So a
node's parent comes before it, and parents never decrease.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import Ints, encoded, integers
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.timeline.lanes import table_or_none
from traceanalyzer.report.timeline.name_table import cut_name
from traceanalyzer.report.trees.words import KINDS, OTHER, TREES, colour_of, shown_name, tree_words

TABLE = "call_trees"
NAME_BYTES = 24
"""What names may take, for each node that is allowed."""


@dataclass(frozen=True)
class Part:
    """The times of one GPU (`device` set) or of one rank's host: `self_ns` of the nodes numbered `node`, which ascend."""

    rank: int
    device: int | None
    node: Ints
    self_ns: Ints

    @property
    def total_ns(self) -> int:
        return int(self.self_ns.sum())


@dataclass(frozen=True)
class CallTree:
    """One tree. `parent` of the root is -1; `frame` numbers are of the forest's frames. `left` is how many nodes "(other)" hides."""

    key: str
    parent: Ints
    frame: Ints
    parts: list[Part]
    left: int = 0

    def __len__(self) -> int:
        return len(self.parent)

    def selves(self) -> Ints:
        """The time of each node itself, over all parts, in ns."""
        amounts = np.zeros(len(self), np.int64)
        for part in self.parts:
            amounts[part.node] += part.self_ns
        return amounts

    def totals(self) -> Ints:
        """The time of each node and all below it, over all parts, in ns."""
        return totals(self.parent, self.selves())

    @property
    def numbers(self) -> int:
        """How many numbers the page holds of it, about."""
        return len(self) + sum(len(part.node) for part in self.parts)


@dataclass(frozen=True)
class Frame:
    """What a node is: two nodes of the same frame are the same function, range, cause or kernel. `colour` is a swatch's code."""

    name: str
    kind: str
    colour: int


@dataclass(frozen=True)
class Forest:
    frames: list[Frame]
    trees: list[CallTree]


def read_forest(tables: Tables) -> Forest | None:
    """All trees of the table `call_trees`; None where there is none. Raises ValueError for one whose times do not add up."""
    table = table_or_none(tables, TABLE)
    if table is None:
        return None
    frames = _Frames()
    index, keys = encoded(table, "tree")
    wanted = [key for key in (*TREES, *sorted(set(keys) - set(TREES))) if key in keys]
    trees = []
    for key in wanted:
        rows = np.flatnonzero(index == keys.index(key))
        if len(rows):
            trees.append(_union(key, table.take(pa.array(rows)), frames))
    trees = [tree for tree in trees if any(part.total_ns for part in tree.parts)]
    return Forest(frames.all, trees) if trees else None


def totals(parent: Ints, self_ns: Ints) -> Ints:
    """The time of each node and all below it; a node's parent comes before it."""
    found = self_ns.copy()
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[order], np.arange(int(depth.max(initial=0)) + 2))
    for level in range(len(edges) - 2, 0, -1):
        rows = order[edges[level] : edges[level + 1]]
        np.add.at(found, parent[rows], found[rows])
    return found


def depths(parent: Ints) -> Ints:
    """How many nodes are around each; -1 is no parent. Chains of parents are halved again and again: deep trees cost no more."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    while (more := np.flatnonzero(above >= 0)).size:
        depth[more] += depth[above[more]]
        above[more] = above[above[more]]
    return depth


class _Frames:
    """Frames by number, each once."""

    def __init__(self) -> None:
        self._ids: dict[Frame, int] = {}

    @property
    def all(self) -> list[Frame]:
        return list(self._ids)

    def id(self, frame: Frame) -> int:
        return self._ids.setdefault(frame, len(self._ids))

    def column(self, table: pa.Table, tree: str) -> Ints:
        """The number of the frame of every row."""
        name, names = encoded(table, "name")
        kind, kinds = encoded(table, "kind")
        pairs, place = np.unique(name * (len(kinds) + 1) + kind, return_inverse=True)
        ids = [self.id(_frame(*_texts(pair, names, kinds), tree)) for pair in pairs.tolist()]
        return np.array(ids, np.int64)[place]


def _texts(pair: int, names: list[str], kinds: list[str]) -> tuple[str, str]:
    name, kind = divmod(pair + 1, len(kinds) + 1)
    return names[name] if name >= 0 else "(unnamed)", kinds[kind - 1] if kind else "other"


def _frame(name: str, kind: str, tree: str) -> Frame:
    if kind == "root":
        name = tree_words(tree).label  # of all ranks alike
    kind = kind if kind in KINDS else "other"
    return Frame(cut_name(shown_name(name, kind)), kind, colour_of(name, kind, tree))


def _union(key: str, table: pa.Table, frames: _Frames) -> CallTree:
    """The trees of all ranks and GPUs as one of their paths."""
    frame, self_ns = frames.column(table, key), integers(table, "self_ns")
    parent = np.empty(table.num_rows, np.int64)
    owner = np.empty(table.num_rows, np.int64)
    owners: list[tuple[int, int | None]] = []
    for number, ((rank, device), rows) in enumerate(row_groups(table, ("rank", "device"))):
        inner = integers(table, "parent")[rows]
        _check(key, integers(table, "node")[rows], inner)
        parent[rows] = np.where(inner < 0, -1, rows[inner])
        owner[rows] = number
        owners.append((rank, device if device >= 0 else None))
    total = totals(parent, self_ns)
    if not np.array_equal(total, integers(table, "total_ns")):
        raise ValueError(f"the times of the call tree '{key}' do not add up")
    place, union_parent, union_frame = _merged(parent, frame, total)
    parts = []
    for number, (of_rank, of_device) in enumerate(owners):
        mine = (owner == number) & (self_ns != 0)
        node, amounts = _summed(place[mine], self_ns[mine])
        parts.append(Part(of_rank, of_device, node, amounts))
    return CallTree(key, union_parent, union_frame, parts)


def _check(key: str, node: Ints, parent: Ints) -> None:
    """Raises ValueError unless the nodes of one tree stand in their order, each after its parent, and there is one root."""
    in_order = np.array_equal(node, np.arange(len(node)))
    if not (in_order and parent[0] == -1 and (parent[1:] >= 0).all() and (parent < node).all()):
        raise ValueError(f"the nodes of the call tree '{key}' are not in order")


def _merged(parent: Ints, frame: Ints, total: Ints) -> tuple[Ints, Ints, Ints]:
    """Nodes of the same path as one: the number of each node's, and of those their parents and frames, in level order."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    place = np.empty(len(parent), np.int64)
    parents, frames, made = [], [], 0
    width = int(frame.max()) + 1
    for level in range(len(edges) - 1):
        rows = order[edges[level] : edges[level + 1]]
        above = place[parent[rows]] if level else np.full(len(rows), -1, np.int64)
        pairs, which = np.unique((above + 1) * width + frame[rows], return_inverse=True)
        weight = np.zeros(len(pairs), np.int64)
        np.add.at(weight, which, total[rows])
        around, own = pairs // width - 1, pairs % width
        ranked = np.lexsort((own, -weight, around))
        rank_of = np.empty(len(ranked), np.int64)
        rank_of[ranked] = np.arange(len(ranked))
        place[rows] = made + rank_of[which]
        parents.append(around[ranked])
        frames.append(own[ranked])
        made += len(pairs)
    return place, np.concatenate(parents), np.concatenate(frames)


def _summed(node: Ints, amounts: Ints) -> tuple[Ints, Ints]:
    """Amounts by node, each node once, ascending."""
    found, which = np.unique(node, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, which, amounts)
    return found, sums


def limit_nodes(forest: Forest, most: int) -> Forest:
    """The forest with the lightest nodes merged into an "(other)" beside their siblings, until about `most` nodes are left.

    The time of every node that stays, and so of every tree, is exact for each of its parts. A node of several parts counts for more.
    """
    numbers = sum(tree.numbers for tree in forest.trees)
    lengths = [len(frame.name.encode()) for frame in forest.frames]
    bytes_of = np.array(lengths, np.int64)
    if numbers <= 2 * most and sum(lengths) <= NAME_BYTES * most:
        return forest
    other = Frame(OTHER, "other", colour_of(OTHER, "other", ""))
    frames = [*forest.frames, other]
    trees = [
        _lighter(
            tree, bytes_of, 2 * most * tree.numbers // numbers, NAME_BYTES * most // len(forest.trees), len(frames) - 1
        )
        for tree in forest.trees
    ]
    return Forest(frames, trees)


def _lighter(tree: CallTree, name_bytes: Ints, numbers: int, text: int, other: int) -> CallTree:
    """The heaviest nodes that take at most half of `numbers`, for which each may have an "(other)", and names of `text` bytes."""
    total = tree.totals()
    heaviest = np.argsort(-total, kind="stable")  # what is around a node is no lighter, and comes before it
    cost = np.ones(len(tree), np.int64)
    for part in tree.parts:
        cost[part.node] += 1
    _, first = np.unique(tree.frame[heaviest], return_index=True)
    letters = np.zeros(len(tree), np.int64)
    letters[first] = name_bytes[tree.frame[heaviest[first]]]
    fits = (np.cumsum(cost[heaviest]) <= numbers // 2) & (np.cumsum(letters) <= text)
    keep = np.zeros(len(tree), bool)
    keep[heaviest[fits]] = True
    keep[0] = True
    if keep.all():
        return tree
    dropped = np.flatnonzero(~keep)
    holder = np.arange(len(tree))  # of a node that goes, the one around it that stays
    for node in _by_level(tree.parent, dropped):
        holder[node] = holder[tree.parent[node]]
    adopters = np.unique(holder[dropped])
    parent = np.concatenate((tree.parent[keep], adopters))
    frame = np.concatenate((tree.frame[keep], np.full(len(adopters), other)))
    kept = np.flatnonzero(keep)
    # An "(other)" follows its siblings: in level order by depth, then by parent, then by what was before.
    depth = depths(tree.parent)
    level = np.concatenate((depth[kept], depth[adopters] + 1))
    at = np.concatenate((kept, np.full(len(adopters), len(tree))))
    order = np.lexsort((at, parent, level))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    place = np.empty(len(tree), np.int64)
    place[kept] = number[: len(kept)]
    other_of = np.empty(len(tree), np.int64)
    other_of[adopters] = number[len(kept) :]
    place[dropped] = other_of[holder[dropped]]
    above = parent[order]
    parts = [Part(one.rank, one.device, *_summed(place[one.node], one.self_ns)) for one in tree.parts]
    return CallTree(tree.key, np.where(above < 0, -1, place[above]), frame[order], parts, len(dropped))


def _by_level(parent: Ints, nodes: Ints) -> Iterator[NDArray[np.int64]]:
    """Some nodes, level by level from the top."""
    depth = depths(parent)[nodes]
    order = np.argsort(depth, kind="stable")
    yield from (nodes[rows] for rows in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1))
