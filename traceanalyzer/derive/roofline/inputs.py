"""The inputs of an operator as they were recorded, and what is told of its work."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import msgspec

from traceanalyzer.records import dataclass

MOST = 1 << 60
"""More FLOPs or bytes than an operator ever has: a wrong number."""
_MOST_TEXT = 1 << 16
Shape = tuple[int, ...]

TYPES = {
    "double": ("fp64", 8),
    "float": ("fp32", 4),
    "c10::half": ("fp16", 2),
    "half": ("fp16", 2),
    "c10::bfloat16": ("bf16", 2),
    "bfloat16": ("bf16", 2),
    "signed char": ("int8", 1),
    "unsigned char": ("int8", 1),
    "c10::complex<float>": ("complex64", 8),
    "c10::complex<double>": ("complex128", 16),
}
"""By what PyTorch calls them in traces, in small letters: the precision, and bytes of an element."""
_FLOAT8, _FLOAT4 = "float8_", "float4_"


def type_of(name: str) -> tuple[str, int] | None:
    """Precision and bytes of an element type; None for one that is not known, or of which two elements share a byte."""
    low = name.lower()
    if low in TYPES:
        return TYPES[low]
    return ("fp8", 1) if _FLOAT8 in low else None


@dataclass(frozen=True)
class Work:
    """What an operator has to do.

    `kind` is matmul, convolution or attention, `flops` its floating-point operations, `moved` the bytes of its inputs and outputs once
    (None where their types are not known), `precision` the type of its operands (None likewise), and `sizes` what it multiplies, in
    words. `assumed` says what was not recorded and taken for granted; "" for nothing.
    """

    kind: str
    flops: int
    moved: int | None
    precision: str | None
    sizes: str
    assumed: str = ""


@dataclass(frozen=True)
class Inputs:
    """Shapes (None where an input is no tensor), types and values of what an operator was given; `values` is empty where no values were
    recorded."""

    shapes: Sequence[Shape | None]
    types: Sequence[str]
    values: Sequence[str]

    @classmethod
    def read(cls, shapes: str, types: str, values: str) -> Inputs | None:
        """From the texts of host_ranges ("" for nulls); None where there are no shapes that can be read."""
        told = _items(shapes)
        if told is None:
            return None
        names = _items(types) or []
        given = _items(values) or []
        return cls(
            [_shape(one) for one in told],
            [one if isinstance(one, str) else "" for one in names],
            [one if isinstance(one, str) else "" for one in given],
        )

    def shape(self, at: int, *rank: int) -> Shape | None:
        """The shape of a tensor with that many dimensions (or one of several numbers); None where there is none."""
        found = self.shapes[at] if at < len(self.shapes) else None
        return found if found and (not rank or len(found) in rank) else None

    def width(self, at: int) -> int | None:
        """Bytes of an element of that input."""
        known = type_of(self.types[at]) if at < len(self.types) else None
        return known[1] if known else None

    def precision(self, at: int) -> str | None:
        known = type_of(self.types[at]) if at < len(self.types) else None
        return known[0] if known else None

    def value(self, at: int) -> Any:
        """A value as Python has it: a number, a truth value or a list of them; None where it was not recorded, and for no value."""
        text = self.values[at] if at < len(self.values) else ""
        if text in ("True", "False"):
            return text == "True"
        try:
            return msgspec.json.decode(text.replace("True", "true").replace("False", "false")) if text else None
        except (msgspec.DecodeError, RecursionError):
            return None

    def moved(self, parts: Sequence[tuple[Shape, int]]) -> int | None:
        """Bytes of tensors, each with the number of the input whose type it has."""
        total = 0
        for shape, at in parts:
            width = self.width(at)
            if width is None:
                return None
            total += prod(shape) * width
        return total


def sizes_of(*shapes: Shape) -> str:
    """Shapes in words: "64×1536×64 by 64×64×1536"."""
    return " by ".join("×".join(map(str, one)) for one in shapes)


def _items(text: str) -> list[Any] | None:
    if not text or len(text) > _MOST_TEXT:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _shape(told: Any) -> Shape | None:
    """A shape of positive sizes; None for anything else (no tensor, a list of tensors, an empty tensor)."""
    if not isinstance(told, list) or not all(type(one) is int and 0 < one < MOST for one in told):
        return None
    return tuple(told)
