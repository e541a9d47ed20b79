"""The payload of the trees of calls: typed arrays in one block, times exact to the nanosecond.

Layout, little-endian: uint32 length of the header, the header (JSON, UTF-8), then the arrays one after another, each starting on a
multiple of 8 bytes.

The header: `names`; `kinds` (what a kind of node is called); `colours` (CSS names of swatches); `frames`, how many there are; `trees`
of {key, label, about, n (nodes), legend ([CSS name of a swatch, label, meaning] an entry), left (nodes inside "(other)"), parts}. A
part is the time of one GPU or of one rank's host: {label, rank, device (null: the host), window (ns, 0 where there is none), steps
(that the window consists of, 0 where it does not), n (nodes with time of their own), wide}.

The first arrays are the frames: number of the name (uint32), of the kind and of the colour (uint8 each). Then come, for each tree, the
parents of its nodes as deltas, that of the root as 0 (uint32), and the numbers of their frames (uint32), and for each of its parts the
numbers of nodes as deltas (uint32) and the ns that belong to these alone (float64 when `wide`, else uint32).

Nodes are in level order, siblings together and the heaviest of all parts first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES
from traceanalyzer.report.timeline.encoding import UINT32_END
from traceanalyzer.report.trees.forest import CallTree, Forest, Part
from traceanalyzer.report.trees.words import KIND_CODES, KIND_LABELS, legend_entry, tree_words


@dataclass(frozen=True)
class Whole:
    """What the times of a part are held against: its window in ns, and how many steps that is; 0 where there is none."""

    label: str
    window_ns: int = 0
    steps: float = 0


WholeOf = Callable[[Part], Whole]


def encode_forest(forest: Forest, whole_of: WholeOf) -> bytes:
    """The payload of all trees."""
    used = sorted({int(frame) for tree in forest.trees for frame in np.unique(tree.frame)})
    frames = [forest.frames[number] for number in used]
    names = list(dict.fromkeys(frame.name for frame in frames))
    name_of = {name: number for number, name in enumerate(names)}
    number_of = np.zeros(len(forest.frames), np.int64)
    number_of[used] = np.arange(len(used))
    header = {
        "names": names,
        "kinds": KIND_LABELS,
        "colours": [swatch.css for swatch in SWATCHES],
        "frames": len(frames),
        "trees": [_tree_header(tree, forest, whole_of) for tree in forest.trees],
    }
    arrays: list[NDArray[Any]] = [
        np.array([name_of[frame.name] for frame in frames], "<u4"),
        np.array([KIND_CODES[frame.kind] for frame in frames], "u1"),
        np.array([frame.colour for frame in frames], "u1"),
    ]
    for tree in forest.trees:
        arrays += [np.diff(tree.parent.clip(0), prepend=0).astype("<u4"), number_of[tree.frame].astype("<u4")]
        for part in tree.parts:
            arrays += [
                np.diff(part.node, prepend=0).astype("<u4"),
                part.self_ns.astype("<f8" if _is_wide(part) else "<u4"),
            ]
    return _block(header, arrays)


def legend(tree: CallTree, forest: Forest) -> list[tuple[str, str, str]]:
    """The entries of a tree's legend: the CSS name of a swatch, what it stands for, and what that means."""
    frames = [forest.frames[int(number)] for number in np.unique(tree.frame)]
    pairs = sorted({(KIND_CODES[one.kind], one.colour, one.kind) for one in frames if one.kind != "root"})
    return [legend_entry(colour, kind) for _, colour, kind in pairs]


def _tree_header(tree: CallTree, forest: Forest, whole_of: WholeOf) -> dict[str, Any]:
    words = tree_words(tree.key)
    return {
        "key": tree.key,
        "label": words.label,
        "about": words.about,
        "n": len(tree),
        "left": tree.left,
        "legend": legend(tree, forest),
        "parts": [_part_header(part, whole_of(part)) for part in tree.parts],
    }


def _part_header(part: Part, whole: Whole) -> dict[str, Any]:
    return {
        "label": whole.label,
        "rank": part.rank,
        "device": part.device,
        "window": whole.window_ns,
        "steps": whole.steps,
        "n": len(part.node),
        "wide": _is_wide(part),
    }


def _is_wide(part: Part) -> bool:
    return bool((part.self_ns >= UINT32_END).any())


def _block(header: dict[str, Any], arrays: Iterable[NDArray[Any]]) -> bytes:
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    parts: list[bytes] = [len(head).to_bytes(4, "little"), head]
    size = 4 + len(head)
    for array in arrays:
        padding = -size % 8
        data = array.tobytes()
        parts += [bytes(padding), data]
        size += padding + len(data)
    return b"".join(parts)


def heaviest(tree: CallTree, most: int) -> Sequence[int]:
    """The nodes with the most time of their own, over all parts, the heaviest first; of equal ones the first."""
    selves = tree.selves()
    ranked = np.argsort(-selves, kind="stable")[:most]
    found: list[int] = ranked[selves[ranked] > 0].tolist()
    return found
