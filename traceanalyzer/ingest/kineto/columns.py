"""From decoded events of one category to Arrow columns of one event table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.kineto.decode import Args, Event, Number, Times

NO_ARGS = Args()


def arguments(events: Sequence[Event]) -> list[Args]:
    """The arguments of each event, empty ones where it has none."""
    return [e.args or NO_ARGS for e in events]


INT64 = pa.int64()


def integers(values: Iterable[Number], type_: pa.DataType = INT64) -> pa.Array:
    """Integers; strings that spell one count, anything else becomes null."""
    values = list(values)
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_integer(v, type_) for v in values], type_)


def _integer(value: Number, type_: pa.DataType) -> int | None:
    try:
        number = int(value) if value is not None else None
        pa.scalar(number, type_)
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return None
    return number


def shares(percents: Iterable[Number]) -> pa.Array:
    """Percentages as shares from 0 to 1; what is no finite number becomes null."""
    return pa.array([_share(v) for v in percents], pa.float32())


def _share(value: Number) -> float | None:
    try:
        number = float(value) / 100 if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def texts(values: Iterable[str | None]) -> pa.DictionaryArray:
    """Names, dictionary-encoded."""
    return pa.array(list(values), pa.string()).dictionary_encode()


def raw_texts(values: Iterable[msgspec.Raw]) -> pa.Array:
    """JSON kept as the text it was; absent values become null."""
    return pa.array([bytes(v).decode("utf-8", "replace") or None for v in values], pa.string())


def json_texts(values: Iterable[Any]) -> pa.Array:
    """Values as JSON text; strings stay as they are."""
    return pa.array([v if v is None or isinstance(v, str) else json.dumps(v) for v in values], pa.string())


def triples(values: Iterable[list[int] | None]) -> pa.Array:
    """x, y, z sizes; anything but three numbers becomes null."""
    return pa.array([v if v is not None and len(v) == 3 else None for v in values], pa.list_(pa.int32(), 3))


def span(start: Times, duration: Times) -> dict[str, pa.Array]:
    """The time columns, both int64 ns."""
    return {"start_ns": pa.array(start), "end_ns": pa.array(start + duration)}


def pick(times: Times, rows: Sequence[int]) -> Times:
    """The times of the given events."""
    return times[np.asarray(rows, np.int64)]
