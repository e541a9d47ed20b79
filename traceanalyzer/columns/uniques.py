"""The distinct of many numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import Ints


def unique(values: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct of some numbers, ascending, where each comes first, and the place of each number among them: as `np.unique` tells
    them, without sorting all."""
    found = pa.array(values).dictionary_encode()
    numbers, code = found.dictionary.to_numpy(), found.indices.to_numpy()
    # They are numbered as they come: each comes first where the largest number so far grows.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(code), prepend=-1))
    order = np.argsort(numbers)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return numbers[order], first[order], place[code]
