"""Paths with amounts as a flame graph: one tree, as those of calls are."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.stills.trees import tree_still
from traceanalyzer.report.timeline.name_table import cut_name
from traceanalyzer.report.trees.encoding import heaviest
from traceanalyzer.report.trees.forest import CallTree, Forest, Frame, Part, limit_nodes
from traceanalyzer.report.trees.view import path_of
from traceanalyzer.report.trees.words import colour_of
from traceanalyzer.result.sections import Flame

WHOLE = "all of it"
HEAVIEST = 10


@dataclass(frozen=True)
class FlameView:
    """A flame graph as the template shows it: `data` is what the script reads, and `stacks` are the heaviest paths with what is their
    own and its share of the whole. `left` is how many nodes "(other)" hides."""

    id: str
    title: str
    unit: str
    total: int
    left: int
    still: Markup
    stacks: list[tuple[list[str], int, float]]
    data: dict[str, Any]


def flame_view(flame: Flame, id_: str, most: int) -> FlameView | None:
    """With about `most` nodes at most; None where it holds nothing. Raises ValueError for an amount below nothing."""
    if any(amount < 0 for _, amount in flame.paths):
        raise ValueError(f"{flame.title}: an amount is below nothing")
    whole = _tree(flame)
    if not whole.trees[0].selves().sum():
        return None
    forest = limit_nodes(whole, most)
    (tree,) = forest.trees
    selves = tree.selves()
    total = int(selves.sum())
    stacks = [
        (path_of(tree, forest, node), int(selves[node]), int(selves[node]) / total) for node in heaviest(tree, HEAVIEST)
    ]
    return FlameView(
        id_,
        flame.title,
        flame.unit,
        total,
        tree.left,
        tree_still(tree, forest.frames),
        stacks,
        _data(flame, tree, forest),
    )


def _tree(flame: Flame) -> Forest:
    """The paths as a tree in level order, siblings by their totals."""
    frames: dict[Frame, int] = {_frame(WHOLE, "root"): 0}
    children: list[dict[int, int]] = [{}]
    frame_of, selves = [0], [0]
    parents = [-1]
    for path, amount in flame.paths:
        at = 0
        for name in path:
            frame = frames.setdefault(_frame(cut_name(name), "python"), len(frames))
            below = children[at].get(frame)
            if below is None:
                below = children[at][frame] = len(children)
                children.append({})
                frame_of.append(frame)
                selves.append(0)
                parents.append(at)
            at = below
        selves[at] += amount
    totals = list(selves)
    for node in range(len(selves) - 1, 0, -1):
        totals[parents[node]] += totals[node]
    order, level = [0], [0]
    while level:
        level = [
            child
            for node in level
            for child in sorted(children[node].values(), key=lambda one: (-totals[one], frame_of[one]))
            if totals[child]
        ]
        order += level
    number = np.zeros(len(selves), np.int64)
    number[order] = np.arange(len(order))
    above = np.array([parents[node] for node in order], np.int64)
    parent = np.where(above < 0, -1, number[above])
    own = np.array([selves[node] for node in order], np.int64)
    heavy = np.flatnonzero(own)
    tree = CallTree(
        "flame", parent, np.array([frame_of[one] for one in order], np.int64), [Part(0, None, heavy, own[heavy])]
    )
    return Forest(list(frames), [tree])


def _frame(name: str, kind: str) -> Frame:
    return Frame(name, kind, colour_of(name, kind, ""))


def _data(flame: Flame, tree: CallTree, forest: Forest) -> dict[str, Any]:
    """Names, frames and nodes, as flames.js reads them."""
    used = sorted({int(frame) for frame in np.unique(tree.frame)})
    number = {frame: at for at, frame in enumerate(used)}
    return {
        "unit": flame.unit,
        "names": [forest.frames[frame].name for frame in used],
        "colour": [forest.frames[frame].colour for frame in used],
        "colours": [swatch.css for swatch in SWATCHES],
        "parent": tree.parent.tolist(),
        "frame": [number[frame] for frame in tree.frame.tolist()],
        "self": tree.selves().tolist(),
    }
