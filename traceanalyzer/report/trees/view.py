"""The page's section of call stacks: its payload, a still picture, and the heaviest stacks as texts."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from traceanalyzer.columns import integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.report.packing import pack
from traceanalyzer.report.stills.trees import tree_still
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.report.trees.encoding import Whole, encode_forest, heaviest, legend
from traceanalyzer.report.trees.forest import CallTree, Forest, Part, limit_nodes
from traceanalyzer.report.trees.words import tree_words
from traceanalyzer.result.words.gpu_names import gpu_of
from traceanalyzer.vocabulary.losses import BY_COMMUNICATION, BY_COMPUTE, BY_MEMCPY

HEAVIEST = 10
"""Stacks of each tree that stand in the page as text."""
LONGEST_NAME = 60
ENDS = 3
"""Of a long stack so many names are shown from its outer end, and twice as many from its inner one."""
SHOWN_FIRST = {BY_COMPUTE.name: "gpu", BY_COMMUNICATION.name: "communication", BY_MEMCPY.name: "copies"}
"""The tree that the first sentence of the page is about, by its `bound_by`; otherwise idle time."""
COVERED = 0.9
"""A window of which steps make up so much consists of them."""


@dataclass(frozen=True)
class StackView:
    """A stack with the most time of its own: the names from the outside in, with "…" for those left out, and the time of its last."""

    names: list[str]
    self_ns: int
    share: float


@dataclass(frozen=True)
class TreeView:
    """A tree as the template shows it."""

    key: str
    label: str
    about: str
    total_ns: int
    left: int
    stacks: list[StackView]
    legend: list[tuple[str, str, str]]


@dataclass(frozen=True)
class CallTreesView:
    """`blob` is the packed payload; `still` a picture of the tree that is shown first, the one numbered `first`."""

    trees: list[TreeView]
    first: int
    blob: str
    still: Markup


def call_trees_view(
    whole: Forest | None, tables: Tables, rank_name: RankName, most: int, bound_by: str = ""
) -> CallTreesView | None:
    """The section of these trees, with about `most` nodes at most; None without trees. `rank_name` says whose a GPU is,
    `tables` how long the windows of GPUs are, and `bound_by` is the verdict's."""
    if whole is None:
        return None
    forest = limit_nodes(whole, most)
    windows = _windows(tables)

    def whole_of(part: Part) -> Whole:
        window, steps = windows.get((part.rank, part.device), (0, 0))
        return Whole(_label(part, rank_name), window, steps)

    keys = [tree.key for tree in forest.trees]
    wanted = SHOWN_FIRST.get(bound_by, "idle")
    first = keys.index(wanted) if wanted in keys else 0
    return CallTreesView(
        [_tree_view(tree, forest) for tree in forest.trees],
        first,
        pack(encode_forest(forest, whole_of)),
        tree_still(forest.trees[first], forest.frames),
    )


def _label(part: Part, rank_name: RankName) -> str:
    rank = rank_name(part.rank)
    return gpu_of(rank, part.device) or "the host"


def _windows(tables: Tables) -> Mapping[tuple[int, int | None], tuple[int, float]]:
    """For each rank and GPU its window in ns, and how many steps of the mean length that is: 0 where much of it is in none."""
    table = table_or_none(tables, "ledger")
    if table is None:
        return {}
    columns = [integers(table, column).tolist() for column in ("rank", "device", "duration", "step_count", "step_time")]
    return {
        (rank, device): (window, round(window / step, 6) if step > 0 and steps * step >= COVERED * window else 0)
        for rank, device, window, steps, step in zip(*columns, strict=True)
    }


def _tree_view(tree: CallTree, forest: Forest) -> TreeView:
    words = tree_words(tree.key)
    selves = tree.selves()
    total = int(selves.sum())
    stacks = [
        StackView(path_of(tree, forest, node), int(selves[node]), int(selves[node]) / max(total, 1))
        for node in heaviest(tree, HEAVIEST)
    ]
    return TreeView(tree.key, words.label, words.about, total, tree.left, stacks, legend(tree, forest))


def path_of(tree: CallTree, forest: Forest, node: int) -> list[str]:
    """The names around a node, without the root's, and its own last."""
    nodes = []
    while node >= 0:
        nodes.append(node)
        node = int(tree.parent[node])
    inner = nodes[:-1][::-1] or nodes
    names = [readable_name(forest.frames[int(tree.frame[one])].name, LONGEST_NAME) for one in inner]
    return names if len(names) <= 3 * ENDS else [*names[:ENDS], "…", *names[-2 * ENDS :]]
