"""Which tables a part may have: the event tables, and those that kinds of evidence register when they are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from traceanalyzer.errors import ConfigError
from traceanalyzer.model.schema import EVENT_TABLES, TableSpec

EXTRA_TABLES: dict[str, TableSpec] = {}
"""Tables that kinds of evidence bring along, as far as these are known; see `register`."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def register(specs: Iterable[TableSpec]) -> None:
    """Make tables known that are none of the event tables. Raises ConfigError for a name that another table has."""
    for spec in specs:
        if spec.name in EVENT_TABLES or EXTRA_TABLES.get(spec.name, spec) != spec:
            raise ConfigError(f"two tables are called '{spec.name}'; rename the one that a package brings along")
        EXTRA_TABLES[spec.name] = spec


def is_table_name(name: str) -> bool:
    """Whether a table, and so its folder in a store, may be called so."""
    return _NAME.fullmatch(name) is not None


def table_specs() -> Mapping[str, TableSpec]:
    """All tables that are known to this process, by name: the event tables first."""
    return EVENT_TABLES | EXTRA_TABLES
