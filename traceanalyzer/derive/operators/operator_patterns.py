"""What each pattern of operators looks like on one thread."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from traceanalyzer.derive.operators.operator_loops import loops
from traceanalyzer.derive.operators.operators import Operators
from traceanalyzer.intervals import Array, coverage, union
from traceanalyzer.records import dataclass

# What an operator is to the patterns.
OTHER, MOVE, CREATE, SELECT, CONVOLUTION, NORM, ADD, PRODUCT, HEAVY, ZERO, ZERO_GRAD, BACKWARD = range(12)
LEADING = (MOVE, SELECT, CONVOLUTION, PRODUCT, ZERO_GRAD)
"""Without one of these there is no pattern to look for."""
_CREATORS = (
    *("zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "eye", "zeros_like", "ones_like"),
    *("full_like", "rand_like", "randn_like", "randint_like", "fill_", "normal_", "uniform_", "random_", "bernoulli_"),
)
_ROLES = {
    "aten::to": MOVE,
    **{f"aten::{name}": CREATE for name in _CREATORS},
    "aten::select": SELECT,
    **{f"aten::conv{n}d": CONVOLUTION for n in (1, 2, 3)},
    "aten::batch_norm": NORM,
    "aten::add_": ADD,
    **{f"aten::{name}": PRODUCT for name in ("mm", "addmm", "bmm", "baddbmm")},
    **{f"aten::{name}": HEAVY for name in ("linear", "matmul", "einsum", "lstm_cell", "gru_cell", "rnn_tanh_cell")},
    "aten::zero_": ZERO,
    "aten::_foreach_zero_": ZERO,
}
_ZERO_GRAD = re.compile(r"^Optimizer\.zero_grad#|^torch/(?:optim/optimizer|nn/modules/module)\.py\(\d+\): zero_grad$")
_BACKWARD = "autograd::engine::evaluate_function"
_FIRST_SHAPE = re.compile(r"\[(\[\d[\d, ]*\])")
_HALF = ("c10::Half", "c10::BFloat16")
ALIGNMENT = 8
"""Elements of two bytes in the 16 bytes that tensor cores read at once."""
_DEEPEST = 12
"""Operators inside one that makes a tensor: zeros has empty, zero_ and fill_."""


@dataclass(frozen=True)
class Found:
    """Occurrences of a pattern: `at` is the position of the operator to name; start and end in ns; a text or None in `detail`."""

    at: Array
    start: Array
    end: Array
    count: Array
    detail: list[str | None]


def role_of(name: str | None) -> int:
    """What an operator or range of this name is to the patterns."""
    if name is None:
        return OTHER
    if name in _ROLES:
        return _ROLES[name]
    if name.startswith(_BACKWARD):
        return BACKWARD
    return ZERO_GRAD if _ZERO_GRAD.match(name) else OTHER


def extra_copies(operators: Operators) -> Found:
    """A tensor made on the host, then moved to the GPU: aten::to right after what made a tensor of its shape."""
    start, end, gpu = operators.start, operators.end, operators.gpu
    at = operators.outermost(operators.where(MOVE))
    at = at[gpu.inbound(start[at], end[at]) > 0]
    if not len(at):
        return Found(at, at, at, at, [])
    makes_one = (operators.role == CREATE) | (operators.role == ZERO)
    maker, reach = np.full(len(at), -1, np.int64), np.full(len(at), -1, np.int64)
    for back in range(1, _DEEPEST + 1):
        before = np.maximum(at - back, 0)
        # What makes the tensor is a sibling that has in it whatever else lies before the move.
        sibling = (operators.parent[before] == operators.parent[at]) & (end[before] >= reach)
        makes = makes_one[before] & sibling & (end[before] <= start[at]) & (at >= back)
        maker = np.where(makes, before, maker)
        reach = np.maximum(reach, end[before])
    made = maker >= 0
    made[made] = gpu.count(start[maker[made]], start[at[made]]) == 0
    at, maker = at[made], maker[made]
    shape = [_first_shape(text) for text in operators.shapes(at)]
    # The maker and the operators inside it, of all candidates at once.
    count = at - maker
    owner = np.repeat(np.arange(len(at)), count)
    inner = np.arange(count.sum()) + np.repeat(maker - np.cumsum(count) + count, count)
    told = zip(owner.tolist(), operators.shapes(inner), strict=True)
    which = np.unique([one for one, text in told if (wanted := shape[one]) is not None and wanted in text]).astype(int)
    at, maker = at[which], maker[which]
    return Found(maker, start[maker], end[at], np.ones(len(at), np.int64), [_product(shape[i]) for i in which])


def loop_indexing(operators: Operators) -> Found:
    """A loop that takes one element of a tensor after another and starts work on the GPU for each."""
    indexing = operators.where(SELECT)
    first, last, rounds = loops(operators, indexing, np.isin(operators.role, (HEAVY, PRODUCT, CONVOLUTION)))
    start, end = operators.start[first], operators.end[last]
    works = operators.gpu.count(start, end) >= rounds
    first, last, rounds, start, end = first[works], last[works], rounds[works], start[works], end[works]
    at, detail, keep = [], [], []
    begin, stop = np.searchsorted(indexing, first), np.searchsorted(indexing, last, side="right")
    for low, a, b in zip(first.tolist(), begin.tolist(), stop.tolist(), strict=True):
        taken = indexing[a:b]
        taken = taken[operators.parent[taken] == operators.parent[low]]
        shapes = set(operators.shapes(taken))
        at.append(int(taken[0]))
        detail.append(_product(_first_shape(min(shapes))))
        # One tensor, or two that are read side by side; a list of tensors is no tensor to index.
        keep.append(len(shapes) <= 2 and None not in {_first_shape(s) for s in shapes})
    which = np.flatnonzero(keep)
    return Found(np.array(at, np.int64)[which], start[which], end[which], rounds[which], [detail[i] for i in which])


def zeroed_gradients(operators: Operators) -> Found:
    """Gradients filled with zeros instead of dropped: aten::zero_ inside zero_grad."""
    start, end = operators.ranges(ZERO_GRAD)
    zero = operators.where(ZERO)
    first, stop = (np.searchsorted(operators.start[zero], time) for time in (start, end))
    some = stop > first
    return Found(zero[first[some]], start[some], end[some], (stop - first)[some], [None] * int(some.sum()))


def bias_before_norm(operators: Operators) -> Found:
    """A convolution with a bias whose result goes straight into a batch normalisation, which takes the mean out again."""
    at = operators.outermost(operators.where(CONVOLUTION))
    count = len(operators.start)
    following = operators.after(at)
    for _ in range(2):
        # The layer counts its batches before it normalises.
        counting = np.flatnonzero(following < count)
        counting = counting[operators.role[following[counting]] == ADD]
        following[counting] = operators.after(following[counting])
    known = following < count
    at, following = at[known], following[known]
    normed = (operators.role[following] == NORM) & (operators.parent[following] == operators.parent[at])
    at, following = at[normed], following[normed]
    keep = [
        _biased(convolution, norm)
        for convolution, norm in zip(operators.shapes(at), operators.shapes(following), strict=True)
    ]
    at, following = at[keep], following[keep]
    detail = [_product(_first_shape(text)) for text in operators.shapes(at)]
    return Found(at, operators.start[at], operators.end[at], np.ones(len(at), np.int64), detail)


def misaligned_products(operators: Operators) -> Found:
    """Matrix products of two-byte numbers in the forward pass whose inner or output width is no multiple of `ALIGNMENT`."""
    at = operators.outermost(operators.where(PRODUCT))
    backward = union(*operators.ranges(BACKWARD))
    # The backward pass multiplies along the batch as well, where alignment says nothing: the forward pass tells the same once.
    at = at[coverage(operators.start[at], operators.end[at], backward) == 0]
    detail = [_misaligned(*texts) for texts in zip(operators.shapes(at), operators.dtypes(at), strict=True)]
    which = np.flatnonzero([text is not None for text in detail])
    at = at[which]
    count = np.ones(len(at), np.int64)
    return Found(at, operators.start[at], operators.end[at], count, [detail[i] for i in which])


FINDERS: dict[str, Callable[[Operators], Found]] = {
    "extra_device_copy": extra_copies,
    "loop_indexing": loop_indexing,
    "gradients_zeroed": zeroed_gradients,
    "bias_before_batch_norm": bias_before_norm,
    "matmul_alignment": misaligned_products,
}


def _first_shape(text: str) -> str | None:
    """The first input's shape as recorded, None for scalars and where there is none."""
    match = _FIRST_SHAPE.match(text)
    return match[1] if match else None


def _product(shape: str | None) -> str | None:
    return None if shape is None else "×".join(shape.strip("[]").split(", "))


@cache
def _biased(convolution: str, norm: str) -> bool:
    given, weight, bias, *_ = _read(convolution, 3)
    normed, *_ = _read(norm, 1)
    return len(bias) == 1 and len(weight) > 2 and len(normed) == len(given) and normed[1:2] == weight[:1] == bias


@cache
def _misaligned(shapes: str, dtypes: str) -> str | None:
    """Which product it is, None for one that is aligned, not of two-byte numbers, or not known."""
    inputs = zip(_read(shapes, 3), _read(dtypes, 3), strict=True)
    matrices = [shape for shape, kind in inputs if len(shape) >= 2 and kind in _HALF][-2:]
    if len(matrices) < 2 or matrices[0][-1] != matrices[1][-2]:
        return None
    # A dimension below the alignment is small on purpose, such as a head with one output.
    if not any(size > ALIGNMENT and size % ALIGNMENT for size in matrices[1][-2:]):
        return None
    return " by ".join("×".join(map(str, shape)) for shape in matrices)


def _read(text: str, count: int) -> list[Any]:
    """The first `count` inputs of an operator: a list of numbers or a text each; [] for what is missing or neither."""
    try:
        values = json.loads(text)
    except ValueError:
        values = []
    values = [value if _plain(value) else [] for value in values] if isinstance(values, list) else []
    return [*values, *[[]] * count][:count]


def _plain(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(size, int) for size in value))
