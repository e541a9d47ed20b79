"""Convolutions: 2 × elements of the output × elements of a filter, counted as a direct convolution whatever algorithm runs.

A filter has C_in / groups × its spatial sizes (NVIDIA, "Convolutional Layers User's Guide": the GEMM that a convolution is has
M = N·H_out·W_out, N = C_out, K = C_in·kernel). Each of the two gradients of a convolution takes as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from traceanalyzer.derive.roofline.inputs import Inputs, Shape, Work, sizes_of
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class _Form:
    """Where an operator of forward convolution has what: numbers of its inputs. `transposed` is a number, or what it always is."""

    stride: int
    padding: int
    dilation: int
    transposed: int | bool = False
    is_number: bool = False


_FORWARD: Mapping[str, _Form] = {
    "aten::convolution": _Form(3, 4, 5, 6, True),
    "aten::_convolution": _Form(3, 4, 5, 6, True),
    "aten::convolution_overrideable": _Form(3, 4, 5, 6, True),
    "aten::cudnn_convolution": _Form(3, 2, 4),
    "aten::cudnn_convolution_transpose": _Form(4, 2, 5, True),
    "aten::cudnn_convolution_relu": _Form(3, 4, 5),
    "aten::miopen_convolution": _Form(4, 3, 5),
    "aten::miopen_depthwise_convolution": _Form(4, 3, 5),
    "aten::miopen_convolution_transpose": _Form(5, 3, 6, True),
    "aten::miopen_convolution_relu": _Form(3, 4, 5),
}


@dataclass(frozen=True)
class _Backward:
    """Where an operator of the gradients has what."""

    gradient: int
    input: int
    weight: int
    transposed: int | bool
    mask: int
    is_number: bool = False


_GRADIENTS: Mapping[str, _Backward] = {
    "aten::convolution_backward": _Backward(0, 1, 2, 7, 10, True),
    "aten::convolution_backward_overrideable": _Backward(0, 1, 2, 6, 9, True),
    "aten::cudnn_convolution_backward": _Backward(1, 0, 2, False, 9),
    "aten::miopen_convolution_backward": _Backward(1, 0, 2, False, 9),
}
CONVOLUTIONS = frozenset([*_FORWARD, *_GRADIENTS])


def convolution_work(name: str, inputs: Inputs) -> Work | None:
    """None where the shapes do not fit together, or the values that tell the size of the output were not recorded."""
    if form := _FORWARD.get(name):
        return _forward(form, inputs)
    return _backward(_GRADIENTS[name], inputs)


def _forward(form: _Form, inputs: Inputs) -> Work | None:
    data, weight = inputs.shape(0, 3, 4, 5), inputs.shape(1, 3, 4, 5)
    transposed = inputs.value(int(form.transposed)) if form.is_number else form.transposed
    if not data or not weight or len(data) != len(weight) or not isinstance(transposed, bool):
        return None
    if transposed:
        # Every element of the input meets every filter of its group. What is written is about as large as what is spread.
        flops = 2 * prod(data) * prod(weight[1:])
        return Work("convolution", flops, None, inputs.precision(0), sizes_of(data, weight))
    spatial = len(data) - 2
    stride, padding, dilation = (_each(inputs.value(at), spatial) for at in (form.stride, form.padding, form.dilation))
    if stride is None or padding is None or dilation is None or 0 in stride:
        return None
    sizes = [
        (size + 2 * pad - far * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, far in zip(data[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    if min(sizes) < 1:
        return None
    out = (data[0], weight[0], *sizes)
    moved = inputs.moved([(data, 0), (weight, 1), (out, 0)])
    return Work("convolution", 2 * prod(out) * prod(weight[1:]), moved, inputs.precision(0), sizes_of(data, weight))


def _backward(form: _Backward, inputs: Inputs) -> Work | None:
    """As many as forward for the gradient of the input and for that of the weight, as far as they were asked for."""
    gradient, data, weight = (inputs.shape(at, 3, 4, 5) for at in (form.gradient, form.input, form.weight))
    transposed = inputs.value(int(form.transposed)) if form.is_number else form.transposed
    mask = inputs.value(form.mask)
    if not gradient or not data or not weight or not isinstance(transposed, bool):
        return None
    if not isinstance(mask, list) or len(mask) < 2 or not all(isinstance(one, bool) for one in mask):
        return None
    many = int(mask[0]) + int(mask[1])
    each = 2 * prod(data if transposed else gradient) * prod(weight[1:])
    parts: list[tuple[Shape, int]] = []
    if mask[0]:
        parts += [(gradient, form.gradient), (weight, form.weight), (data, form.input)]
    if mask[1]:
        parts += [(gradient, form.gradient), (data, form.input), (weight, form.weight)]
    moved, precision = inputs.moved(parts), inputs.precision(form.gradient)
    return Work("convolution", many * each, moved, precision, sizes_of(data, weight)) if many else None


def _each(value: Any, count: int) -> list[int] | None:
    """One number for each spatial dimension; a single one stands for all."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(one, int) and 0 <= one < 1 << 30 for one in value):
        return None
    found: list[int] = value * count if len(value) == 1 else value
    return found if len(found) == count else None
