"""Which call launched which operation: the launching calls are numbered, and their operations carry the number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import MISSING, Ints, frames, integers, short_encoded
from traceanalyzer.records import dataclass

Numbers = NDArray[np.uint32]
BLOCK = 1 << 16
"""So many rows are looked at at once: what is made of them stays close to the processor."""


@dataclass(frozen=True)
class Links:
    """Numbers of launching calls, from 1 in the order of `api_calls`: for each row of `api_calls` and of `gpu_ops`; 0 is none."""

    calls: Numbers
    ops: Numbers


def launch_links(launches: pa.Table | None, api_calls: pa.Table | None, gpu_ops: pa.Table | None) -> Links:
    """The pairs of `launches`, as far as both of them are in the tables."""
    calls = np.zeros(0 if api_calls is None else api_calls.num_rows, dtype=np.uint32)
    ops = np.zeros(0 if gpu_ops is None else gpu_ops.num_rows, dtype=np.uint32)
    if not (launches and api_calls and gpu_ops):  # absent or empty
        return Links(calls, ops)
    call, op = _call_rows(launches, api_calls), _op_rows(launches, gpu_ops)
    both = (call != MISSING) & (op != MISSING)
    calls[call[both]] = 1
    calls = np.where(calls == 1, np.cumsum(calls, dtype=np.uint32), 0).astype(np.uint32)
    ops[op[both]] = calls[call[both]]
    return Links(calls, ops)


def _op_rows(launches: pa.Table, gpu_ops: pa.Table) -> Ints:
    """For each launch the row of its operation, which it counts from its rank's first; MISSING where another one lies there."""
    found = np.full(launches.num_rows, MISSING)
    op = integers(launches, "op")
    rows_of = dict(frames.together(integers(gpu_ops, "rank")))
    pairs = [
        (integers(launches, mine), integers(gpu_ops, its))
        for mine, its in (("op_start_ns", "start_ns"), ("op_end_ns", "end_ns"))
    ]
    for rank, wanted in frames.together(integers(launches, "rank")):
        rows = rows_of.get(rank, wanted[:0])
        for first in range(0, len(wanted), BLOCK):
            here = wanted[first : first + BLOCK]
            at = op[here]
            here = here[(at >= 0) & (at < len(rows))]
            row = rows[op[here]]
            same = np.logical_and.reduce([mine[here] == its[row] for mine, its in pairs])
            found[here[same]] = row[same]
    return found


def _call_rows(launches: pa.Table, api_calls: pa.Table) -> Ints:
    """For each launch the row of its call: the one of that name and span on that thread; MISSING where there is none."""
    numbers = ("rank", "process", "thread", "start_ns", "end_ns")
    name, names = short_encoded(launches, "api_name")
    its, its_names = short_encoded(api_calls, "name")
    known = {text: code for code, text in enumerate(its_names)}
    same = np.array([*(known.get(text, len(its_names)) for text in names), MISSING], dtype=np.int32)[name]
    wanted: list[Any] = [*(frames.as_it_lies(launches[column], MISSING) for column in numbers), same]
    among: list[Any] = [*(frames.as_it_lies(api_calls[column], MISSING) for column in numbers), its]
    found = _in_order(wanted[3:], among[3:], frames.together(*wanted[:3]), dict(_threads(among[:3])))
    rest = np.flatnonzero(found == MISSING)
    if len(rest):
        near = np.flatnonzero(frames.among(among[3], wanted[3][rest]))
        row = _first_equal([column[rest] for column in wanted], [column[near] for column in among])
        found[rest] = np.append(near, MISSING)[row]
    return found


def _threads(columns: list[Ints]) -> Iterator[tuple[tuple[int, ...], slice]]:
    """The rows of each thread whose rows stand together."""
    for key, rows in frames.together(*columns):
        if rows[-1] - rows[0] + 1 == len(rows):
            yield key, slice(rows[0], rows[-1] + 1)


def _in_order(
    wanted: list[Ints],
    among: list[Ints],
    asked: Iterable[tuple[tuple[int, ...], Ints]],
    threads: Mapping[tuple[int, ...], slice],
) -> Ints:
    """What `_first_equal` finds where calls stand in order of time and the first of those that start together is it; else MISSING.

    `asked` are the rows of `wanted` on each thread, and `threads` those of `among`.
    """
    found = np.full(len(wanted[0]), MISSING)
    for key, rows in asked:
        here = threads.get(key)
        start = among[0][here] if here is not None else among[0][:0]
        if here is None or (start[1:] < start[:-1]).any():
            continue
        for first in range(0, len(rows), BLOCK):
            mine = rows[first : first + BLOCK]
            at = here.start + np.minimum(np.searchsorted(start, wanted[0][mine]), len(start) - 1)
            same = np.logical_and.reduce([its[at] == own[mine] for its, own in zip(among, wanted, strict=True)])
            found[mine[same]] = at[same]
    return found


def _first_equal(wanted: list[Ints], among: list[Ints]) -> Ints:
    """For each row of `wanted` the first row of `among` with the same values, MISSING where there is none."""
    n = len(among[0])
    columns = [np.concatenate(pair) for pair in zip(among, wanted, strict=True)]
    columns = [column for column in columns if (column != column[0]).any()] or columns[:1]
    order = np.lexsort(columns[::-1])  # stable: of equal rows those of `among` come first
    opens = np.zeros(len(order), dtype=np.bool_)
    opens[0] = True
    for column in columns:
        ordered = column[order]
        opens[1:] |= ordered[1:] != ordered[:-1]
    first = order[np.flatnonzero(opens)][np.cumsum(opens) - 1]
    row = np.empty(len(order), dtype=np.int64)
    row[order] = np.where(first < n, first, MISSING)
    return row[n:]
