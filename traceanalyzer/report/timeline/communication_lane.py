"""The lane "communication" of a GPU: each collective, parted into the wait for other ranks and the rest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traceanalyzer.columns import MISSING, Ints, encoded, integers
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.report.palette import CODES
from traceanalyzer.report.timeline.lanes import Key, Lane, Source, slices_of
from traceanalyzer.report.timeline.slices import Slices, pack
from traceanalyzer.units import format_bytes

TABLES = ("communication", "collectives")
"""What this lane reads."""
ROWS = 4
"""Collectives of several process groups run at the same time."""


def communication_lanes(source: Source, ranks: Collection[int]) -> dict[Key, Lane]:
    """By (rank, device) the communication kernels of these ranks; the table is of all.

    One that waited begins with its wait, which is told of matched kernels and likely for some others. Where no wait is told it is
    all of one colour.
    """
    table = source.table("communication")
    if table is not None:
        table = table.filter(pc.is_in(table["rank"], pa.array(sorted(ranks), pa.int32())))
    if table is None or not table.num_rows:
        return {}
    known, likely = integers(table, "wait"), integers(table, "likely_wait")
    wait = np.clip(np.maximum(known, likely), 0, integers(table, "end_ns") - integers(table, "start_ns"))
    name, wait_name = _names(table, np.where(known > 0, 1, np.where(wait > 0, 2, 0)), source)
    number = np.arange(table.num_rows, dtype=np.uint32)
    colour = np.full(table.num_rows, CODES["communication"], dtype=np.uint8)
    lanes: dict[Key, Lane] = {}
    crowded = 0
    for key, rows in row_groups(table, ("rank", "device")):
        packed, left = pack(slices_of(table, rows, number, colour), ROWS)
        crowded += left
        parted = [_parted(row, wait[row.name], name[row.name], wait_name[row.name]) for row in packed]
        lanes[key] = Lane("communication", parted)
    source.leave_out(crowded, f"communication kernels that overlap more than {ROWS} deep")
    return lanes


def _parted(row: Slices, wait: Ints, name: NDArray[np.uint32], wait_name: NDArray[np.uint32]) -> Slices:
    """The kernels of a row, each cut after its wait; what takes no time is left out, unless all of the kernel does."""
    both = row.take(np.repeat(np.arange(len(row)), 2))
    waits = np.arange(len(both)) % 2 == 0
    part = np.where(waits, np.repeat(wait, 2), both.duration - np.repeat(wait, 2))
    cut = replace(
        both,
        start=np.where(waits, both.start, both.start + np.repeat(wait, 2)),
        duration=part,
        name=np.where(waits, np.repeat(wait_name, 2), np.repeat(name, 2)),
        colour=np.where(waits, CODES["communication_wait"], both.colour).astype(np.uint8),
    )
    return cut.take((part > 0) | (~waits & (both.duration == 0)))


def _names(table: pa.Table, waited: Ints, source: Source) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """For each kernel the number of its name, such as "all-reduce 32 MiB, group default_pg", and of that of its wait. `waited`: 0 not
    known or none, 1 known, 2 likely."""
    kind, kinds = encoded(table, "kind")
    kernel, kernels = encoded(table, "name")
    group, groups = encoded(table, "group")
    described = _descriptions(source.table("collectives"))
    columns = [kind, np.where(kind == MISSING, kernel, MISSING), group]
    columns += [integers(table, column) for column in ("bytes", "rank", "late_rank", "late_device")]
    distinct, inverse = np.unique(np.stack([*columns, waited]), axis=1, return_inverse=True)
    ids = []
    for of_kind, of_kernel, of_group, size, rank, late, late_device, how in distinct.T.tolist():
        words = (
            kinds[of_kind] if of_kind != MISSING else kernels[of_kernel] if of_kernel != MISSING else "communication"
        )
        if size > 0:
            words += f" {format_bytes(size)}"
        if of_group != MISSING:
            words += f", group {described.get((rank, groups[of_group]), groups[of_group])}"
        ids.append(
            (source.names.id(words), source.names.id(f"{words} · {_wait_words(how, late, late_device, source)}"))
        )
    pairs = np.array(ids, dtype=np.uint32)[inverse.ravel()]
    return pairs[:, 0], pairs[:, 1]


def _wait_words(how: int, late: int, late_device: int, source: Source) -> str:
    if how == 2:
        return "likely waiting for another rank"
    if late == MISSING:
        return "waiting for other ranks"
    return f"waiting for {source.rank_name(late) or f'GPU {late_device}'}"


def _descriptions(collectives: pa.Table | None) -> dict[tuple[int, str], str]:
    """What the program calls a process group, by (rank, recorded name)."""
    if collectives is None:
        return {}
    group, groups = encoded(collectives, "group")
    words, described = encoded(collectives, "description")
    named = (group != MISSING) & (words != MISSING)
    rows = np.stack([integers(collectives, "rank"), group, words])[:, named]
    return {(rank, groups[g]): described[d] for rank, g, d in np.unique(rows, axis=1).T.tolist()}
