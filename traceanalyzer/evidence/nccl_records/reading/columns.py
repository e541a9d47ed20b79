"""Columns from dictionaries that may hold anything: what is not of the kind becomes null, and is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pyarrow as pa

from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.trace import EPOCH_NS

MOST = 1 << 62
"""Beyond this a number is no size or count."""
FIRST_NS, LAST_NS = EPOCH_NS, 3 * EPOCH_NS
"""From 2001 to 2065: what lies outside is no moment that was recorded, in nanoseconds since the epoch."""
MOST_RANKS = 1 << 20
MOST_TEXT = 4096
"""Characters of a name that is believed."""


class Wrong:
    """How many values were of a wrong type or beyond their range."""

    def __init__(self) -> None:
        self.count = 0


def whole(value: Any, wrong: Wrong, least: int = 0) -> int | None:
    """A whole number of at least `least`, also where it is written as text (as in JSON of the flight recorder); else None."""
    if type(value) is int and least <= value <= MOST:
        return value
    if type(value) is str and 0 < len(value) < 20 and value.removeprefix("-").isascii():
        try:
            return whole(int(value), wrong, least)
        except ValueError:
            pass
    # A number below the least is how the recorder says that there is none.
    wrong.count += value is not None and not (type(value) is int and value < least)
    return None


def time_of(value: Any, wrong: Wrong) -> int | None:
    """A moment in ns since the epoch; 0 stands for none."""
    found = whole(value, wrong, 1) if value != 0 else None
    if found is None or FIRST_NS <= found <= LAST_NS:
        return found
    wrong.count += 1
    return None


def few(value: Any, wrong: Wrong, least: int = 0) -> int | None:
    """A rank, or a number of them."""
    found = whole(value, wrong, least)
    if found is None or found < MOST_RANKS:
        return found
    wrong.count += 1
    return None


def wholes(values: list[Any], wrong: Wrong) -> list[int | None]:
    """As `whole`, of many."""
    if set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MOST:
        return values
    return [whole(value, wrong) for value in values]


def times(values: list[Any], wrong: Wrong) -> list[int | None]:
    """As `time_of`, of many."""
    if set(map(type, values)) <= {int, type(None)}:
        known = [value for value in values if value]
        if not known or (min(known) >= FIRST_NS and max(known) <= LAST_NS):
            return [value or None for value in values]
    return [time_of(value, wrong) for value in values]


def real(value: Any, wrong: Wrong) -> float | None:
    """A finite number that is not negative; else None."""
    if type(value) in (int, float) and isfinite(value) and 0 <= value < MOST:
        return float(value)
    wrong.count += value is not None
    return None


def text(value: Any, wrong: Wrong) -> str | None:
    """A name as UTF-8 can say it; None for what is no string."""
    if type(value) is str:
        return clean(value)
    wrong.count += value is not None
    return None


def clean(value: str) -> str:
    return value[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8")


def table(spec: TableSpec, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Rows as declared but for the rank; a column that is not given is null."""
    size = len(next(iter(columns.values())))
    arrays = []
    fields = [field for field in spec.schema if field.name != "rank"]
    for field in fields:
        if field.name not in columns:
            arrays.append(pa.nulls(size, field.type))
        elif pa.types.is_dictionary(field.type):
            arrays.append(pa.array(columns[field.name], pa.string()).dictionary_encode().cast(field.type))
        else:
            arrays.append(pa.array(columns[field.name], field.type))
    return pa.table(arrays, schema=pa.schema(fields))
