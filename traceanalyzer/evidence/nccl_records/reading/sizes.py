"""Shapes and types of the tensors of a call, as the flight recorder writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import Any

from traceanalyzer.evidence.nccl_records.reading.columns import MOST, clean
from traceanalyzer.ingest.bytes.pickles import Budget

_DTYPES = (
    (re.compile(r"float8|e4m3|e5m2|e8m0|bool|byte|char|u?int8|bits8|^q", re.IGNORECASE), 1),
    (re.compile(r"bfloat16|float16|half|short|u?int16", re.IGNORECASE), 2),
    (re.compile(r"complexdouble", re.IGNORECASE), 16),
    (re.compile(r"complexhalf", re.IGNORECASE), 4),
    (re.compile(r"double|float64|long|u?int64|complex", re.IGNORECASE), 8),
    (re.compile(r"float|u?int", re.IGNORECASE), 4),
)


class Sizes:
    """Shapes of tensors as text and in elements; each different list is worked out once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._known: dict[tuple[tuple[int, ...], ...], tuple[str, int | None]] = {}
        self._types: dict[tuple[str, ...], tuple[str | None, int | None]] = {}

    def all(self, found: list[Any]) -> list[tuple[str, int | None]]:
        return [self.of(shapes) for shapes in found]

    def types(self, given: list[Any], taken: list[Any]) -> list[tuple[str | None, int | None]]:
        return [self.dtype(one, other) for one, other in zip(given, taken, strict=True)]

    def of(self, shapes: Any) -> tuple[str, int | None]:
        """What to show of them, and their elements; None where they are not recorded."""
        if type(shapes) is not list:
            return "?", None
        self._budget.spend(shapes)
        for shape in shapes:
            if type(shape) is not list:
                return "?", None
            self._budget.spend(shape)
        key = tuple([tuple(shape) for shape in shapes])
        try:
            found = self._known.get(key)
        except TypeError:
            return "?", None
        if found is None:
            found = self._known[key] = self._new(shapes)
        return found

    def _new(self, shapes: list[Any]) -> tuple[str, int | None]:
        total = 0
        for shape in shapes:
            if not all(type(size) is int and 0 <= size < MOST for size in shape):
                return "?", None
            total += prod(shape)
        several = [*map(str, shapes[:4]), *(["..."] if len(shapes) > 4 else [])]
        shown = several[0] if len(shapes) == 1 else f"[{', '.join(several)}]"
        return clean(shown), total if total < MOST >> 4 else None

    def dtype(self, given: Any, taken: Any) -> tuple[str | None, int | None]:
        """The one type of all tensors and its bytes; None where they are of several or not recorded."""
        names = []
        for one in (given, taken):
            if type(one) is list:
                self._budget.spend(one)
                names += [name for name in one if type(name) is str]
        key = tuple(names)
        if key not in self._types:
            self._types[key] = _dtype(key)
        return self._types[key]


def _dtype(names: Iterable[str]) -> tuple[str | None, int | None]:
    different = list(dict.fromkeys(names))
    if len(different) != 1:
        return (clean(", ".join(different)) or None, None)
    name = clean(different[0])
    return name, next((size for pattern, size in _DTYPES if pattern.search(name)), None)
