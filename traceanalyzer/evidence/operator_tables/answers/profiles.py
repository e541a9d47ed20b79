"""The tables of a file, by what they were made of: the same profile is often printed several times, sorted by other columns.

Tables of one file with the same totals are of one profile. Of it counts what tells names apart and nothing else: shapes or stacks make
several rows of one name, which are added up where there is no other table.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

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
_KEYS = ("name", "class", "on_device")


@dataclass(frozen=True)
class Profile:
    """What is known of one profile.

    `rows` has a row a name (and class) with the columns `NUMBERS`, `shaped` those of the table that tells input shapes apart, None
    without one. `device` is what its device is called. `place` is its place among those of its file. `partial` says that rows of one
    name were added up, of which the table may have left out some.
    """

    rank: int
    file: int
    place: int
    device: str | None
    host_total: int | None
    device_total: int | None
    rows: pa.Table
    shaped: pa.Table | None
    partial: bool


def profiles(averages: pa.Table, totals: pa.Table) -> list[Profile]:
    """Those of all files, in the order of rank, file and table."""
    found: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in totals.sort_by([(name, "ascending") for name in ("rank", "file", "table")]).to_pylist():
        told = row["host_total"] is not None or row["device_total"] is not None
        key = (row["rank"], row["file"], row["device"], row["host_total"], row["device_total"])
        found.setdefault(key if told else (row["rank"], row["file"], row["table"], None), []).append(row)
    places: dict[tuple[object, object], int] = {}
    result = []
    for tables in found.values():
        first = tables[0]
        whose = first["rank"], first["file"]
        own = averages.filter(
            pc.and_(pc.equal(averages["rank"], first["rank"]), pc.equal(averages["file"], first["file"]))
        )
        place = places[whose] = places.get(whose, -1) + 1
        result.append(_profile(own, tables, place))
    return result


def _profile(own: pa.Table, tables: list[dict[str, object]], place: int) -> Profile:
    first = tables[0]
    plain = [one["table"] for one in tables if not one["by_shape"] and not one["by_place"]]
    shaped = [one["table"] for one in tables if one["by_shape"] and not one["by_place"]]
    return Profile(
        *(first["rank"], first["file"], place, first["device"], first["host_total"], first["device_total"]),  # type: ignore[arg-type]
        _rows(own, plain or shaped[:1] or [first["table"]]),
        own.filter(pc.equal(own["table"], pa.scalar(shaped[0], pa.int32()))) if shaped else None,
        not plain,
    )


def _rows(own: pa.Table, tables: list[object]) -> pa.Table:
    """Rows of one name are added up within a table; tables repeat each other."""
    some = own.filter(pc.is_in(own["table"], pa.array(tables, pa.int32())))
    some = some.select(["table", *_KEYS, *NUMBERS])
    for name in ("name", "class"):
        some = some.set_column(some.schema.get_field_index(name), name, some[name].cast(pa.string()))
    within = some.group_by(["table", *_KEYS], use_threads=False).aggregate([(name, "sum") for name in NUMBERS])
    within = within.rename_columns([name.removesuffix("_sum") for name in within.column_names])
    whole = within.group_by(list(_KEYS), use_threads=False).aggregate([(name, "max") for name in NUMBERS])
    return whole.rename_columns([name.removesuffix("_max") for name in whole.column_names])
