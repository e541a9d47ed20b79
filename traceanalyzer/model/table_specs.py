"""Which tables a part may have: the event tables, and those that kinds of evidence register when they are found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from traceanalyzer.model.schema import EVENT_TABLES, EXTRA_TABLES, TableSpec

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def is_table_name(name: str) -> bool:
    """Whether a table, and so its folder in a store, may be called so."""
    return _NAME.fullmatch(name) is not None


def table_specs() -> Mapping[str, TableSpec]:
    """All tables that are known to this process, by name: the event tables first."""
    return EVENT_TABLES | EXTRA_TABLES
