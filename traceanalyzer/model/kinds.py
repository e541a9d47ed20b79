"""The kinds of files that are installed, as objects of which nothing is asked here: found by folder, and as entry points of others.

Who asks what of them: `ingest.registry` (what a file is), `catalog.declarations` (tables), `engine.rules.library` (rules), `analysis`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from traceanalyzer.errors import ConfigError
from traceanalyzer.extensions import EVIDENCE, FORMATS, kinds
from traceanalyzer.model.table_specs import is_table_name, register

__all__ = ["EVIDENCE", "FORMATS", "kinds_of"]

_ASKED = ("name", "role", "priority", "sniff", "read", "tables")


@cache
def kinds_of(group: str) -> tuple[Any, ...]:
    """The kinds of one group; what their tables look like is known from then on. Raises ConfigError for what is no kind."""
    found = kinds(group)
    for whose, kind in found:
        if lacks := [name for name in _ASKED if not hasattr(kind, name)]:
            raise ConfigError(f"{group}: {whose} is no kind of files (it has no {lacks[0]}); update or uninstall it")
        for spec in kind.tables:
            if spec.column("rank") is None or not is_table_name(spec.name):
                raise ConfigError(
                    f"{group}: {whose}: the table '{spec.name}' has no column 'rank', or a name of other letters than a-z, 0-9 and _"
                )
        register(kind.tables)
    return tuple(kind for _, kind in found)
