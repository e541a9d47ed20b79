"""The tables that the report shows: events of some parts, and small tables of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from traceanalyzer.analysis.examine import small_tables
from traceanalyzer.analysis.parts import Part
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.catalog.declarations import declared
from traceanalyzer.columns import frames
from traceanalyzer.config import Config


class ReportTables:
    """Event and derived tables by name, the rows of all these parts one after another; small tables, and those about all ranks
    together, are those of the whole job."""

    def __init__(self, parts: Sequence[Part], config: Config, whole: Catalog) -> None:
        self._catalogs = [part.catalog(config) for part in parts]
        self._whole = whole
        self._small = frozenset((*small_tables(), *(one.name for one in declared().values() if one.of_job)))
        self._made: dict[str, pa.Table] = {}

    def table(self, name: str) -> pa.Table:
        """A table is put together once. Raises KeyError for an unknown name."""
        if name in self._small:
            return self._whole.table(name)
        if name not in self._made:
            tables = [catalog.table(name) for catalog in self._catalogs]
            self._made[name] = tables[0] if len(tables) == 1 else frames.concatenated(tables)
        return self._made[name]
