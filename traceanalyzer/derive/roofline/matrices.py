"""Matrix products: 2 m n k of an m × k matrix by a k × n one (BLAS's own count: Dongarra et al., "A set of level 3 BLAS", 1990)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from traceanalyzer.derive.roofline.inputs import Inputs, Shape, Work, sizes_of

COMPLEX = {"complex64": 4, "complex128": 4}
"""A product of complex numbers takes four of real ones."""


def _work(inputs: Inputs, first: int, second: int, left: Shape, right: Shape, out: Shape, inner: int) -> Work:
    precision = inputs.precision(first)
    flops = 2 * prod(out) * inner * COMPLEX.get(precision or "", 1)
    # What an 8-bit product writes is not told by its inputs; 2 bytes are what its callers ask for.
    parts = [(left, first), (right, second), (out, first)]
    moved = inputs.moved(parts)
    if moved is not None and inputs.width(first) == 1:
        moved += prod(out)
    return Work("matmul", flops, moved, precision, sizes_of(left, right))


def _matrices(inputs: Inputs, at: int) -> Work | None:
    """m × k by k × n, from input `at` on."""
    left, right = inputs.shape(at, 2), inputs.shape(at + 1, 2)
    if not left or not right or left[1] != right[0]:
        return None
    return _work(inputs, at, at + 1, left, right, (left[0], right[1]), left[1])


def _batches(inputs: Inputs, at: int) -> Work | None:
    """b × m × k by b × k × n."""
    left, right = inputs.shape(at, 3), inputs.shape(at + 1, 3)
    if not left or not right or left[0] != right[0] or left[2] != right[1]:
        return None
    return _work(inputs, at, at + 1, left, right, (*left[:2], right[2]), left[2])


def _grouped(inputs: Inputs, at: int) -> Work | None:
    """Rows (or columns, or the inner dimension) that groups share: each belongs to one group."""
    left, right = inputs.shape(at, 2, 3), inputs.shape(at + 1, 2, 3)
    if not left or not right:
        return None
    if len(left) == len(right) == 3:
        return _batches(inputs, at)
    inner = left[-1]
    if right[-2] != inner:
        return None
    out = (left[-2], right[-1])
    return _work(inputs, at, at + 1, left, right, out, inner)


def _vector(inputs: Inputs, at: int) -> Work | None:
    """m × k by k."""
    left, right = inputs.shape(at, 2), inputs.shape(at + 1, 1)
    if not left or not right or left[1] != right[0]:
        return None
    return _work(inputs, at, at + 1, left, right, (left[0],), left[1])


def _linear(inputs: Inputs) -> Work | None:
    """... × k by the transpose of n × k."""
    left, right = inputs.shape(0), inputs.shape(1, 2)
    if not left or not right or left[-1] != right[1]:
        return None
    return _work(inputs, 0, 1, left, right, (*left[:-1], right[0]), right[1])


def _matmul(inputs: Inputs) -> Work | None:
    """NumPy's rules: vectors become matrices, and batches are broadcast."""
    left, right = inputs.shape(0), inputs.shape(1)
    if not left or not right:
        return None
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    if rows[-1] != columns[-2]:
        return None
    some, others = rows[:-2], columns[:-2]
    length = max(len(some), len(others))
    pairs = list(zip((1,) * (length - len(some)) + some, (1,) * (length - len(others)) + others, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    out = (*(max(pair) for pair in pairs), rows[-2], columns[-1])
    return _work(inputs, 0, 1, left, right, out, rows[-1])


def _from(count: Callable[[Inputs, int], Work | None], at: int) -> Callable[[Inputs], Work | None]:
    return lambda inputs: count(inputs, at)


MATRICES: Mapping[str, Callable[[Inputs], Work | None]] = {
    "aten::mm": _from(_matrices, 0),
    "aten::_int_mm": _from(_matrices, 0),
    "aten::_scaled_mm": _from(_matrices, 0),
    "aten::addmm": _from(_matrices, 1),
    "aten::addmm_": _from(_matrices, 1),
    "aten::_addmm_activation": _from(_matrices, 1),
    "aten::bmm": _from(_batches, 0),
    "aten::baddbmm": _from(_batches, 1),
    "aten::baddbmm_": _from(_batches, 1),
    "aten::addbmm": _from(_batches, 1),
    "aten::_grouped_mm": _from(_grouped, 0),
    "aten::_scaled_grouped_mm": _from(_grouped, 0),
    "aten::mv": _from(_vector, 0),
    "aten::addmv": _from(_vector, 1),
    "aten::addmv_": _from(_vector, 1),
    "aten::linear": _linear,
    "aten::matmul": _matmul,
}
"""By name of the operator. `linear` and `matmul` count only where they call none of the others."""
