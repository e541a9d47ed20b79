"""The stacks of a profile as paths for flame graphs: those of start-up apart, and no more than a page can hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.evidence.cpu_profile.answers.stacks import NONE, frame_label
from traceanalyzer.evidence.cpu_profile.answers.threads import Profile, plain
from traceanalyzer.evidence.cpu_profile.derived_tables import CPU_PATHS
from traceanalyzer.evidence.cpu_profile.reading.frames import IMPORT
from traceanalyzer.intervals import Array

MOST_PATHS, MOST_LEVELS, MOST_THREADS = 1500, 60, 6
"""Paths and levels of one flame graph, and threads that have one; the lightest paths are cut where they are heavy enough."""
_LEAST = 1 / 2000


def cpu_paths(walked_profiles: list[Profile]) -> pa.Table:
    """As CPU_PATHS."""
    rows = []
    for profile in walked_profiles:
        weight = np.zeros(len(profile.who), np.int64)
        np.add.at(weight, profile.thread, profile.weight)
        shown = np.lexsort((np.arange(len(weight)), -weight))[:MOST_THREADS].tolist()
        for thread in sorted({*shown, profile.main}):
            mine = profile.of(thread)
            starts = np.append(profile.stacks.starts, False)[profile.stack[mine]]
            for startup, some in ((False, mine[~starts]), (True, mine[starts])):
                found = _paths(profile, some)
                rows += [
                    {"rank": profile.rank, "thread": thread, "startup": startup, "path": path, "weight": ns}
                    for path, ns in found
                ]
    return pa.Table.from_pylist(rows, CPU_PATHS.schema)


def _paths(profile: Profile, rows: Array) -> list[tuple[list[str], int]]:
    """Paths by name, heaviest first; frames of the import system itself are left out, since each module brings six of them."""
    stacks, frames = profile.stacks, profile.stacks.frames
    stack, weight = profile.stack[rows], profile.weight[rows]
    total = int(weight.sum())
    # What is too light to be seen counts for the path around it.
    sums = np.zeros(len(stacks) + 1, np.int64)
    np.add.at(sums, stack, weight)
    inclusive = sums.copy()
    for here in reversed(stacks.levels):
        up = stacks.parent[here]
        np.add.at(inclusive, up, inclusive[here])
    light = inclusive[:-1] < max(1, total * _LEAST)
    for here in reversed(stacks.levels):
        cut = here[light[here] & (sums[here] > 0) & (stacks.parent[here] >= 0)]
        np.add.at(sums, stacks.parent[cut], sums[cut])
        sums[cut] = 0
    labels = frame_labels(profile)
    found: dict[tuple[str, ...], int] = {}
    for one in np.flatnonzero(sums[:-1]).tolist():
        names = [labels[frame] for frame in stacks.path(one) if not frames.is_[IMPORT][frame]][:MOST_LEVELS]
        key = tuple(names) or ("(import system)",)
        found[key] = found.get(key, 0) + int(sums[one])
    if sums[-1]:
        found["(no stack)",] = int(sums[-1])
    kept = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    if len(kept) > MOST_PATHS:
        kept, rest = kept[: MOST_PATHS - 1], kept[MOST_PATHS - 1 :]
        kept.append((("(other stacks)",), sum(ns for _, ns in rest)))
    return [(list(path), ns) for path, ns in kept]


def frame_labels(profile: Profile) -> list[str]:
    """What each frame is called: all lines of one function alike, by the line that most of it is at."""
    frames, stacks = profile.stacks.frames, profile.stacks
    weight = np.zeros(len(frames.name) + 1, np.int64)
    leaf = np.append(stacks.frame, NONE)[profile.stack]
    np.add.at(weight, leaf, profile.weight)
    inclusive = np.zeros(len(stacks) + 1, np.int64)
    np.add.at(inclusive, profile.stack, profile.weight)
    for here in reversed(stacks.levels):
        np.add.at(inclusive, stacks.parent[here], inclusive[here])
    whole = np.zeros(len(frames.name), np.int64)
    np.add.at(whole, stacks.frame, inclusive[:-1])
    best: dict[tuple[str, str | None], tuple[int, int, int]] = {}
    for at, key in enumerate(zip(frames.name, frames.file, strict=True)):
        line = int(frames.line[at])
        mine = (int(weight[at]), int(whole[at]), -line)
        best[key] = max(best.get(key, mine), mine)
    return [
        frame_label(plain(name), file, -best[name, file][2])
        for name, file in zip(frames.name, frames.file, strict=True)
    ]
