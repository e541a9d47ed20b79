"""The tables of a file, by what they were made of: the same profile is often printed several times, sorted by other columns.

Tables of one file with the same totals are of one profile. Of it counts what tells names apart and nothing else: shapes or stacks make
several rows of one name, which are added up where there is no other table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.records import dataclass

NUMBERS = (
    "calls",
    "self_host",
    "host_total",
    "self_device",
    "device_total",
    "device_memory",
    "self_device_memory",
    "flops",
)
MOST = 32
"""A program that prints a table in each step prints thousands; the first ones are judged."""
_KEYS = ("name", "class", "on_device")


@dataclass(frozen=True)
class Profile:
    """What is known of one profile.

    `rows` has a row a name (and class) with the columns `NUMBERS`, `shaped` those of the table that tells input shapes apart,
    None without one. `device` is what its device is called. `place` is its place among the `several` of its file. `partial` says
    that rows of one name were added up, of which the table may have left out some.
    """

    rank: int
    file: int
    place: int
    several: int
    device: str | None
    host_total: int | None
    device_total: int | None
    rows: pa.Table
    shaped: pa.Table | None
    partial: bool


def profiles(averages: pa.Table, totals: pa.Table) -> list[Profile]:
    """Those of all files, in the order of rank, file and table; of one file at most `MOST`."""
    found: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in totals.sort_by([(name, "ascending") for name in ("rank", "file", "table")]).to_pylist():
        told = row["host_total"] is not None or row["device_total"] is not None
        key = (row["rank"], row["file"], row["device"], row["host_total"], row["device_total"])
        found.setdefault(key if told else (row["rank"], row["file"], row["table"], None), []).append(row)
    counts: Counter[tuple[int, int]] = Counter((tables[0]["rank"], tables[0]["file"]) for tables in found.values())
    places: Counter[tuple[int, int]] = Counter()
    rows = _Rows(averages)
    result = []
    for tables in found.values():
        whose = tables[0]["rank"], tables[0]["file"]
        if places[whose] < MOST:
            result.append(_profile(rows, tables, places[whose], counts[whose]))
        places[whose] += 1
    return result


class _Rows:
    """The rows of each table, which lie together."""

    def __init__(self, averages: pa.Table) -> None:
        ordered = averages.sort_by([(name, "ascending") for name in ("rank", "file", "table", "position")])
        self._parts = dict(_parts(ordered))

    def of(self, whose: dict[str, Any], tables: Sequence[int]) -> pa.Table:
        return pa.concat_tables([self._parts[whose["rank"], whose["file"], table] for table in tables])


def _parts(ordered: pa.Table) -> Iterator[tuple[tuple[int, int, int], pa.Table]]:
    columns = [frames.ints(ordered, name) for name in ("rank", "file", "table")]
    starts = np.flatnonzero(np.concatenate(([True], *[np.any([np.diff(one) != 0 for one in columns], axis=0)])))
    for start, end in pairwise([*starts.tolist(), ordered.num_rows]):
        if end > start:
            rank, file, table = (int(one[start]) for one in columns)
            yield (rank, file, table), ordered.slice(start, end - start)


def _profile(rows: _Rows, tables: list[dict[str, Any]], place: int, several: int) -> Profile:
    first = tables[0]
    plain = [one["table"] for one in tables if not one["by_shape"] and not one["by_place"]]
    shaped = [one["table"] for one in tables if one["by_shape"] and not one["by_place"]]
    return Profile(
        *(first["rank"], first["file"], place, several, first["device"], first["host_total"], first["device_total"]),
        _summed(rows.of(first, plain or shaped[:1] or [first["table"]])),
        rows.of(first, shaped[:1]) if shaped else None,
        not plain,
    )


def _summed(some: pa.Table) -> pa.Table:
    """Rows of one name are added up within a table; tables repeat each other."""
    some = some.select(["table", *_KEYS, *NUMBERS])
    for name in ("name", "class"):
        some = some.set_column(some.schema.get_field_index(name), name, some[name].cast(pa.string()))
    within = some.group_by(["table", *_KEYS], use_threads=False).aggregate([(name, "sum") for name in NUMBERS])
    within = within.rename_columns([name.removesuffix("_sum") for name in within.column_names])
    whole = within.group_by(list(_KEYS), use_threads=False).aggregate([(name, "max") for name in NUMBERS])
    return whole.rename_columns([name.removesuffix("_max") for name in whole.column_names])
