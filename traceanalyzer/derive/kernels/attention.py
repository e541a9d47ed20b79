"""Attention computed in pieces: a softmax between two batched matrix products, with only scaling, masking and copying in between."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.kernels.kernel_names import kernel_of
from traceanalyzer.derive.kernels.kernels import is_compute
from traceanalyzer.derive.kernels.lanes import by_stream
from traceanalyzer.derive.kernels.tables import ATTENTION_BLOCKS
from traceanalyzer.derive.launches.launches import launching_ranges
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

REACH, REACH_WRITTEN = 8, 16
"""Scale, mask, bias, casts, dropout and copies of the operands make at most this many operations between softmax and a product; a
softmax that is written out, and its gradient, take twice as many."""
BETWEEN = ("elementwise", "copy", "layout", "random")
PRODUCTS = ("matmul", "matvec")
SEVERAL = 4
"""Without operators only the pattern speaks, so it must come as often as layers do: this often in all, and more than once a step."""
LEAST_SOFTMAX = 0.25
"""Likewise softmax over all pairs of tokens takes at least this share of a product's time; that of a router is far shorter."""

_OPERATOR = re.compile(r"aten::(\w+)")
BATCHED = ("bmm", "baddbmm", "baddbmm_", "matmul", "einsum")
"""Operators around the products of attention, one for each head; `mm` and `addmm` multiply by the weights of a layer."""
_EXPONENTIAL = re.compile(r"\bexp_kernel_cuda|^exp_")

# What a stream's operations are to the search.
_PRODUCT, _BETWEEN, _SOFTMAX, _SOFTMAX_BACKWARD, _REDUCTION, _EXP, _OTHER = range(7)
_BEGINS = (_SOFTMAX, _SOFTMAX_BACKWARD, _EXP)
Roles = npt.NDArray[np.int8]


def attention_blocks(ledger_ops: pa.Table, launches: pa.Table, host: Host, step_stats: pa.Table) -> pa.Table:
    """One row per block, sorted by (rank, device, stream, start)."""
    steps = frames.by_device(step_stats)
    calls = frames.by_device(launches.select(["op", "rank", "device", "process", "thread", "start_ns"]))
    tables = [_device_blocks(key, ops, calls[key], host, steps[key].num_rows) for key, ops in frames.split(ledger_ops)]
    return frames.stack(ATTENTION_BLOCKS, [table for table in tables if table.num_rows])


def _device_blocks(key: frames.Key, ops: pa.Table, launches: pa.Table, host: Host, steps: int) -> pa.Table:
    role = _roles(ops)
    if role is None:
        return ATTENTION_BLOCKS.empty()
    stream, order = by_stream(ops)
    order = np.arange(len(stream)) if order is None else order
    role, stream = role[order], stream[order]
    whole, written = _candidates(role, stream)
    asked = np.zeros(len(role), bool)
    before, after = _neighbours(role, stream, role == _PRODUCT)
    for found in (whole, written):
        for products in (found.first, found.last, before[found.first], after[found.last]):
            asked[products] = True
    batched = np.full(len(role), -1, np.int64)
    batched[asked] = _batched(launching_ranges(frames.ints(ops, "row")[order][asked], launches, host))
    name, names = frames.codes(ops, "name")
    name = name[order]
    start, end = frames.ints(ops, "start_ns")[order], frames.ints(ops, "end_ns")[order]
    length = end - start
    whole = whole.take(_accepted(whole, name, batched, length, steps))
    # Reductions alone say little, so they need a forward pass that is written out too.
    written = written.take((batched[written.first] == 1) & (batched[written.last] == 1))
    written = written.take(np.full(len(written.first), (role[written.middle] == _EXP).any()))
    found = whole.join(written)
    if not len(found.first):
        return ATTENTION_BLOCKS.empty()
    first, middle, last = found.first, found.middle, found.last
    backward = np.isin(role[middle], (_SOFTMAX_BACKWARD, _REDUCTION))
    # Each product has two gradients, computed one after the other.
    two_before = backward & (before[first] >= 0) & (first - before[first] <= 3) & (batched[before[first]] != 0)
    two_after = backward & (after[last] >= 0) & (after[last] - last <= 3) & (batched[after[last]] != 0)
    begin, finish = np.where(two_before, before[first], first), np.where(two_after, after[last], last)
    matmul = length[first] + length[last]
    matmul += np.where(two_before, length[begin], 0) + np.where(two_after, length[finish], 0)
    at = pa.array(order[begin])
    return frames.build(
        ATTENTION_BLOCKS,
        {
            "rank": np.full(len(first), key[0]),
            "device": np.full(len(first), key[1]),
            "process": ops["process"].take(at),
            "stream": ops["stream"].take(at),
            "start_ns": start[begin],
            "end_ns": end[finish],
            "direction": frames.names(backward.astype(np.int64), ["forward", "backward"]),
            "kernels": finish - begin + 1,
            "matmul": matmul,
            "name": frames.names(name[middle], names),
        },
    )


def _roles(ops: pa.Table) -> Roles | None:
    """What each operation is to the search, None where there is nothing to begin with; copies and memsets lie between, communication
    does not."""
    code, names = frames.codes(ops, "name")
    roles = np.array([_role(name) if name else _OTHER for name in names], np.int8)
    if not np.isin(roles, _BEGINS).any():
        return None
    role = np.where(is_compute(ops), roles[code], np.int8(_OTHER))
    if not np.isin(role, _BEGINS).any():
        return None
    role[frames.equals(ops, "kind", "memcpy", "memset")] = _BETWEEN
    return role


def _role(name: str) -> int:
    """What a compute kernel of this name is to the search."""
    kernel = kernel_of(name)
    if kernel.family == "softmax" and not kernel.log_softmax:
        return _SOFTMAX_BACKWARD if kernel.backward else _SOFTMAX
    if kernel.family in PRODUCTS:
        return _PRODUCT
    if kernel.family == "reduction":
        return _REDUCTION
    if kernel.family == "elementwise" and _EXPONENTIAL.search(name):
        return _EXP
    return _BETWEEN if kernel.family in BETWEEN else _OTHER


@dataclass(frozen=True)
class _Found:
    """Candidates, as positions in the order of the streams: the product before, what makes it attention, the product after."""

    first: Array
    middle: Array
    last: Array

    def take(self, which: Array | frames.Flags) -> _Found:
        return _Found(self.first[which], self.middle[which], self.last[which])

    def join(self, other: _Found) -> _Found:
        return _Found(*(np.concatenate((getattr(self, f), getattr(other, f))) for f in ("first", "middle", "last")))


def _candidates(role: Roles, stream: Array) -> tuple[_Found, _Found]:
    """Every softmax, and every softmax written out, with nothing but small work between it and a product on either side.

    Written out, it is exponentials and reductions (the largest value, the sum); its gradient has only reductions. The middle is the
    first exponential, else the first reduction.
    """
    softmax = np.flatnonzero(np.isin(role, (_SOFTMAX, _SOFTMAX_BACKWARD)))
    before, after = _neighbours(role, stream, ~np.isin(role, (_BETWEEN, _EXP)))
    whole = _Found(before[softmax], softmax, after[softmax])
    whole = whole.take(_between_products(role, whole, REACH))
    first = np.flatnonzero(role == _PRODUCT)
    _, after = _neighbours(role, stream, ~np.isin(role, (_BETWEEN, _EXP, _REDUCTION)))
    middle = np.where(
        _has(role == _EXP, first, after[first]) > 0, _next(role == _EXP)[first], _next(role == _REDUCTION)[first]
    )
    written = _Found(first, middle, after[first])
    reduced = _has(role == _REDUCTION, first, written.last) > 0
    return whole, written.take(reduced & _between_products(role, written, REACH_WRITTEN))


def _between_products(role: Roles, found: _Found, reach: int) -> frames.Flags:
    near = (found.first >= 0) & (found.last >= 0)
    near &= (found.middle - found.first <= reach + 1) & (found.last - found.middle <= reach + 1)
    products: frames.Flags = (role[found.first] == _PRODUCT) & (role[found.last] == _PRODUCT)
    return near & products


def _has(wanted: frames.Flags, first: Array, last: Array) -> Array:
    """How many of the wanted lie between two positions, none where the last is -1."""
    count = np.concatenate(([0], np.cumsum(wanted), [0]))
    between: Array = np.maximum(count[last] - count[first], 0)
    return between


def _next(wanted: frames.Flags) -> Array:
    """For each position the next wanted one at or after it, the last position where there is none."""
    count = len(wanted)
    place = np.where(wanted, np.arange(count), count - 1)
    following: Array = np.minimum.accumulate(place[::-1])[::-1]
    return following


def _neighbours(role: Roles, stream: Array, wanted: frames.Flags) -> tuple[Array, Array]:
    """For each position the nearest wanted one before and after it on its stream, -1 where there is none."""
    count = len(role)
    place = np.arange(count)
    before = np.concatenate(([-1], np.maximum.accumulate(np.where(wanted, place, -1))[:-1]))
    after = np.concatenate((np.minimum.accumulate(np.where(wanted, place, count)[::-1])[::-1][1:], [count]))
    before[(before >= 0) & (stream[before] != stream)] = -1
    inside = after < count
    after[~inside] = -1
    after[inside & (stream[after] != stream)] = -1
    return before, after


def _batched(operators: pa.DictionaryArray) -> Array:
    """1 where the operator multiplies batches of matrices, 0 where it does not, -1 where it is unknown."""
    values = []
    for name in operators.dictionary.to_pylist():
        found = _OPERATOR.match(name)
        values.append(-1 if found is None else int(found[1] in BATCHED))
    code = operators.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    known: Array = np.array([*values, -1], np.int64)[code]
    return known


def _accepted(found: _Found, name: Array, batched: Array, length: Array, steps: int) -> frames.Flags:
    """Which softmaxes are attention: by their operators, else as others of their name are, else by how long and how often they run."""
    first, last = batched[found.first], batched[found.last]
    sure, denied = (first == 1) & (last == 1), (first == 0) | (last == 0)
    unknown = ~sure & ~denied
    product = np.maximum(length[found.first], length[found.last])
    likely = unknown & (length[found.middle] >= LEAST_SOFTMAX * product)
    _, code = np.unique(name[found.middle], return_inverse=True)

    def count(which: frames.Flags) -> Array:
        return np.bincount(code, weights=which, minlength=1)[code].astype(np.int64)

    known = (count(sure) > 0) | (count(denied) > 0)
    often = count(likely) >= max(SEVERAL, 2 * steps)
    accepted: frames.Flags = sure | np.where(known, unknown & (count(sure) > 0), likely & often)
    return accepted
