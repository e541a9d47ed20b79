"""How much an operator computes and moves at least, from what was recorded of its inputs.

Counted as everywhere in the field: a multiplication and an addition are two floating-point operations. What an algorithm saves
(Winograd, Strassen) or wastes (padding, rounding up to tiles) is not in it. Bytes are those of every input and output once: what has to
cross the memory's bus where nothing is in a cache yet (the compulsory traffic of Williams, Waterman and Patterson, "Roofline", 2009).
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from traceanalyzer.derive.roofline.attention import ATTENTION, attention_work
from traceanalyzer.derive.roofline.convolutions import CONVOLUTIONS, convolution_work
from traceanalyzer.derive.roofline.inputs import MOST, Inputs, Work
from traceanalyzer.derive.roofline.matrices import MATRICES

WITH_FORMULA = frozenset([*MATRICES, *CONVOLUTIONS, *ATTENTION])
"""The operators whose work their inputs tell."""
COMPILED = "triton_"
"""What kernels that TorchInductor made are called."""


class _FromCompiler(msgspec.Struct):
    kernel_flop: float | None = None
    kernel_num_gb: float | None = None


@lru_cache(maxsize=1 << 14)
def work_of(name: str, shapes: str, types: str, arguments: str) -> Work | None:
    """Of an operator by its name, and the texts of `host_ranges` ("" for nulls). None where it cannot be told."""
    if name.startswith(COMPILED):
        return _told_by_compiler(arguments)
    inputs = Inputs.read(shapes, types, arguments) if name in WITH_FORMULA else None
    if inputs is None:
        return None
    if name in CONVOLUTIONS:
        found = convolution_work(name, inputs)
    elif name in ATTENTION:
        found = attention_work(name, inputs)
    else:
        found = MATRICES[name](inputs)
    return found if found and 0 < found.flops < MOST and (found.moved or 0) < MOST else None


def _told_by_compiler(arguments: str) -> Work | None:
    """TorchInductor counts the operations of its matrix products (`kernel_flop`, per launch) and the bytes of every kernel in 10^9
    (`kernel_num_gb`), where it was asked to."""
    try:
        told = msgspec.json.decode(arguments, type=_FromCompiler, strict=False) if arguments else _FromCompiler()
    except (msgspec.DecodeError, RecursionError):
        return None
    flops = told.kernel_flop
    if flops is None or not 0 < flops < MOST:
        return None
    moved = (
        None
        if told.kernel_num_gb is None or not 0 <= told.kernel_num_gb < MOST / 1e9
        else round(told.kernel_num_gb * 1e9)
    )
    return Work("matmul", round(flops), moved, None, "as its compiler says")
