"""The first view of a tree of calls as a still picture: what is wide enough to be seen, over all GPUs or hosts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from traceanalyzer.columns import Ints
from traceanalyzer.names import readable_name
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.stills.axes import Floats
from traceanalyzer.report.stills.drawing import WIDTH, Drawing, cut_text, label, rectangle
from traceanalyzer.report.trees.forest import CallTree, Frame, depths

ROW, MOST_ROWS = 18, 40
NARROWEST = 2.0
"""Px: what is narrower is not drawn."""
ROOM_FOR_WORDS = 40


def tree_still(tree: CallTree, frames: Sequence[Frame]) -> Markup:
    """A picture of the tree, its root on top."""
    total, depth = tree.totals(), depths(tree.parent)
    left, wide = _places(tree.parent, total)
    drawn = np.flatnonzero((wide >= NARROWEST) & (depth < MOST_ROWS))
    levels = int(depth[drawn].max(initial=0)) + 1
    deeper = bool((depth[wide >= NARROWEST] >= MOST_ROWS).any())
    drawing = Drawing("trees", levels * ROW + (16 if deeper else 0))
    colours = np.array([frames[int(frame)].colour for frame in tree.frame[drawn]])
    for colour in np.unique(colours).tolist():
        mine = drawn[colours == colour]
        boxes = (rectangle(float(left[i]), int(depth[i]) * ROW, float(wide[i]) - 0.5, ROW - 1) for i in mine.tolist())
        drawing.fill("".join(boxes), SWATCHES[colour].key)
    for i in drawn[wide[drawn] >= ROOM_FOR_WORDS].tolist():
        frame = frames[int(tree.frame[i])]
        words = cut_text(readable_name(frame.name), float(wide[i]) - 8)
        css = f"on c-{SWATCHES[frame.colour].css}"
        drawing.add(label(words, float(left[i]) + 4, int(depth[i]) * ROW + 12.5, css=css))
    if deeper:
        drawing.add(label("It goes on below.", 2, levels * ROW + 11))
    return drawing.svg()


def _places(parent: Ints, total: Ints) -> tuple[Floats, Floats]:
    """Where each node begins and how wide it is, in px: siblings follow one another from where their parent begins."""
    scale = WIDTH / max(int(total[0]), 1)
    before = np.cumsum(total) - total  # siblings stand together
    first = np.flatnonzero(np.diff(parent, prepend=-2) != 0)
    sibling = np.repeat(first, np.diff(np.append(first, len(parent))))
    offset = before - before[sibling]
    start = offset.copy()
    depth = depths(parent)
    edges = np.searchsorted(depth, np.arange(int(depth.max(initial=0)) + 2))
    for low, high in zip(edges[1:-1].tolist(), edges[2:].tolist(), strict=True):
        start[low:high] += start[parent[low:high]]
    return np.multiply(start, scale, dtype=np.float64), np.multiply(total, scale, dtype=np.float64)
