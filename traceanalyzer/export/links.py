"""Which call launched which operations: the arrows of an exported trace."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.export.events import LINK

CALL = ("process", "thread", "start_ns", "end_ns")


def linked(launches: pa.Table, calls: pa.Table, ops: pa.Table, used: int = 0) -> tuple[pa.Table, pa.Table, int]:
    """API calls and GPU operations of one rank with a column LINK: the number of the call, above `used`; and the highest number."""
    keys = [pc.fill_null(launches[name], -1).to_numpy() for name in CALL]
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) + 1
    of_op = np.zeros(ops.num_rows, np.int64)
    of_op[launches["op"].to_numpy()] = number
    first = order[new | (np.arange(len(order)) == 0)]
    found = _looked_up([key[first] for key in keys], [pc.fill_null(calls[name], -1).to_numpy() for name in CALL])
    of_call = np.where(found >= 0, found + 1, 0)
    return _with(calls, of_call, used), _with(ops, of_op, used), used + len(first)


def _looked_up(known: list[npt.NDArray[np.int64]], wanted: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """For each of the wanted rows the number of the known one that equals it, -1 where none does. Known rows are sorted and distinct;
    of wanted rows that are alike the first has it."""
    size = len(known[0])
    every = [np.concatenate(pair) for pair in zip(known, wanted, strict=True)]
    order = np.lexsort((np.arange(len(every[0])), *every[::-1]))
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in every:
        same &= column[order][1:] == column[order][:-1]
    before, here = order[:-1][same], order[1:][same]
    after_known = before < size
    found = np.full(len(every[0]), -1, np.int64)
    found[here[after_known]] = before[after_known]
    return found[size:]


def _with(table: pa.Table, link: npt.NDArray[np.int64], used: int) -> pa.Table:
    return table.append_column(LINK, pa.array(link + used, mask=link == 0))
