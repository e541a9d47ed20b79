"""What most rows say: the commonest number, what those of a family agree on, the name with most weight."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import NULL
from traceanalyzer.columns.frames import Array, Flags, codes


def commonest(values: Array) -> int:
    """The value that occurs most often, of equals the smallest; there is at least one."""
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(counts)])


def agreed(family: Array, value: Array, known: Flags) -> Array:
    """For each row the one value that all known rows of its family have, `NULL` where they have several or none is known.

    `family` counts from 0, as `dense` gives it.
    """
    count = int(family.max(initial=-1)) + 1
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, NULL)
    np.minimum.at(low, family[known], value[known])
    np.maximum.at(high, family[known], value[known])
    return np.where(low == high, low, NULL)[family]


def top_name(table: pa.Table, name: str, weight: Array) -> str | None:
    """The value of a dictionary column with the largest total weight, None without any; of equals the first in the dictionary."""
    code, values = codes(table, name)
    total = np.bincount(code, weight, len(values))[:-1]
    return values[int(total.argmax())] if total.max(initial=0) > 0 else None
