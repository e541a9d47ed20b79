"""Which tables a part may have: the event tables, and those that kinds of evidence declare when they are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from traceanalyzer.model.schema import EVENT_TABLES, TableSpec

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_known: dict[str, TableSpec] = dict(EVENT_TABLES)


def is_table_name(name: str) -> bool:
    """Whether a table, and so its folder in a store, may be called so."""
    return _NAME.fullmatch(name) is not None


def declare_tables(specs: Iterable[TableSpec]) -> None:
    """Make tables known to this process, so that parts with them can be written and read. Declaring the same again changes nothing.

    Raises ValueError for a name that cannot be one or is another table's, and for a table without the column `rank`.
    """
    for spec in specs:
        if not is_table_name(spec.name):
            raise ValueError(f"'{spec.name}' is no name for a table: lower-case letters, digits and _, a letter first")
        if spec.column("rank") is None:
            raise ValueError(f"table {spec.name} has no column 'rank'")
        if _known.setdefault(spec.name, spec) != spec:
            raise ValueError(f"there is already another table {spec.name}")


def table_specs() -> Mapping[str, TableSpec]:
    """All tables that are known to this process, by name: the event tables first."""
    return MappingProxyType(_known)
