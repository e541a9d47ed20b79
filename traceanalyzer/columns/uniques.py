"""The distinct of many numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import Ints


def unique(values: Ints) -> tuple[Ints, Ints]:
    """The distinct of some numbers, ascending, and the place of each number among them: as `np.unique` tells them, without sorting
    all."""
    numbers, code = _as_they_come(values)
    order, place = _sorted(numbers)
    return numbers[order], place[code]


def unique_first(values: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct of some numbers, ascending, where each comes first, and the place of each number among them."""
    numbers, code = _as_they_come(values)
    # Each comes first where the largest code so far grows.
    first = np.searchsorted(np.maximum.accumulate(code), np.arange(len(numbers)))
    order, place = _sorted(numbers)
    return numbers[order], first[order], place[code]


def _as_they_come(values: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers in the order in which they occur, and for each value which of them it is."""
    found = pa.array(values).dictionary_encode()
    return found.dictionary.to_numpy(), found.indices.to_numpy()


def _sorted(numbers: Ints) -> tuple[Ints, Ints]:
    """The order of numbers, and the place of each in it."""
    order = np.argsort(numbers, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return order, place
