"""The lane "critical path": what set the length of each step, on a GPU and its host; of a job one lane for all its ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import encoded
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.columns.uniques import unique
from traceanalyzer.report.palette import CODES
from traceanalyzer.report.timeline.lanes import Group, Key, Lane, Source, extent, slices_of
from traceanalyzer.report.timeline.slices import Slices, joined, pack
from traceanalyzer.result.critical_path import TRANSFER
from traceanalyzer.result.words.critical_path import link_words
from traceanalyzer.vocabulary.lines import UNATTRIBUTED, idle_line

TABLES = ("critical_path", "job_path", "ledger")
"""What this lane reads."""
LABEL = "critical path"
JOB = "job"
ROWS = 1


def path_lanes(source: Source, ranks: Collection[int]) -> dict[Key, Lane]:
    """By (rank, device) the stretches of the path of these ranks; they say whose they are where the path goes over several GPUs."""
    table, gpus = source.table("job_path"), source.table("ledger")
    several = gpus is not None and gpus.num_rows > 1
    if table is None and not several:
        # Of several GPUs nobody knows who waited for whom.
        table = source.table("critical_path")
    if table is not None:
        table = table.filter(pc.is_in(table["rank"], pa.array(sorted(ranks), pa.int32())))
    if table is None or not table.num_rows:
        return {}
    by_gpu = list(row_groups(table, ("rank", "device")))
    kind, kinds = encoded(table, "kind")
    name, names = encoded(table, "name")
    colour = np.array([_colour(one) for one in kinds], np.uint8)[kind]
    lanes: dict[Key, Lane] = {}
    for key, rows in by_gpu:
        who = (source.rank_name(key[0]) or f"GPU {key[1]}") if several else None
        pairs, at = unique(kind[rows] * (len(names) + 1) + name[rows] + 1)
        ids = []
        for pair in pairs.tolist():
            of, one = pair // (len(names) + 1), pair % (len(names) + 1) - 1
            words = link_words(kinds[of], names[one] if one >= 0 else None)
            ids.append(source.names.id(f"{who}: {words}" if who and kinds[of] != TRANSFER else words))
        named = np.zeros(table.num_rows, np.uint32)
        named[rows] = np.array(ids, np.uint32)[at]
        lanes[key] = Lane(LABEL, pack(slices_of(table, rows, named, colour), ROWS)[0])
    return lanes


def _colour(kind: str) -> int:
    if kind == TRANSFER:
        return CODES["communication"]
    return CODES.get(kind, CODES.get(idle_line(kind), CODES[UNATTRIBUTED.name]))


def path_on_top(groups: Sequence[Group]) -> list[Group]:
    """What to put above all groups, which are on one clock, where there are several GPUs: the one lane of the path over all of them.
    Theirs are taken from them."""
    owners = [group for group in groups if any(lane.label == LABEL for lane in group.lanes)]
    if not owners or sum(group.device is not None for group in groups) < 2:
        return []
    rows = [row for group in owners for lane in group.lanes if lane.label == LABEL for row in lane.rows]
    slices = joined([row for row in rows if isinstance(row, Slices)])
    lane = Lane(LABEL, pack(slices.take(np.argsort(slices.start, kind="stable")), ROWS)[0])
    for group in owners:
        group.lanes = [one for one in group.lanes if one.label != LABEL]
    return [Group(JOB, owners[0].rank, None, extent([lane]), [lane])]
