"""Which call launched which operation: the launching calls are numbered, and their operations carry the number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import MISSING, Ints, encoded, frames, integers
from traceanalyzer.records import dataclass

Numbers = NDArray[np.uint32]


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
    rank = integers(gpu_ops, "rank")
    order = np.argsort(rank, kind="stable")
    wanted, op = integers(launches, "rank"), integers(launches, "op")
    at = np.searchsorted(rank[order], wanted) + op
    row = order[np.clip(at, 0, len(order) - 1)]
    found = (op >= 0) & (at < len(order)) & (rank[row] == wanted)
    for mine, its in (("op_start_ns", "start_ns"), ("op_end_ns", "end_ns")):
        found &= integers(launches, mine) == integers(gpu_ops, its)[row]
    return np.where(found, row, MISSING)


def _call_rows(launches: pa.Table, api_calls: pa.Table) -> Ints:
    """For each launch the row of its call: the one of that name and span on that thread; MISSING where there is none."""
    numbers = ("rank", "process", "thread", "start_ns", "end_ns")
    name, names = encoded(launches, "api_name")
    its, its_names = encoded(api_calls, "name")
    known = {text: code for code, text in enumerate(its_names)}
    same = np.array([*(known.get(text, len(its_names)) for text in names), MISSING], dtype=np.int64)[name]
    wanted = [*(integers(launches, column) for column in numbers), same]
    among = [*(integers(api_calls, column) for column in numbers), its]
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
        if here is None or (np.diff(start := among[0][here]) < 0).any():
            continue
        at = here.start + np.minimum(np.searchsorted(start, wanted[0][rows]), len(start) - 1)
        same = np.logical_and.reduce([its[at] == own[rows] for its, own in zip(among, wanted, strict=True)])
        found[rows[same]] = at[same]
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
