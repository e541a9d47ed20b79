"""Rows of several GPUs or ranks put together: the one bridge from Arrow to the plain columns of a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

Rows = dict[str, list[Any]]
"""Columns by name."""


def plain(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Some columns, names as texts: dictionaries of several parts do not group together."""
    columns = [table[name] for name in names]
    texts = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in columns]
    return pa.table(texts, list(names))


def merge_rows(table: pa.Table, keys: tuple[str, ...], by: str, **how: tuple[str, str]) -> pa.Table:
    """One row for each combination of `keys`, the largest `by` first (ties by the keys). `how` has, for each column of the result,
    the column it is made of and the function of Arrow that makes it."""
    found = table.group_by(list(keys), use_threads=False).aggregate(list(how.values()))
    order = [*keys, *(f"{column}_{function}" for column, function in how.values())]
    found = found.select(order).rename_columns([*keys, *how])
    return found.sort_by([(by, "descending"), *((key, "ascending") for key in keys)])


def first(table: pa.Table, most: int) -> Rows:
    """The first rows as plain columns."""
    rows: Rows = table.slice(0, most).to_pydict()
    return rows


def rest(table: pa.Table, column: str, most: int) -> int:
    """The sum of a column over all rows but the first."""
    return sum(value or 0 for value in table[column].slice(most).to_pylist())
