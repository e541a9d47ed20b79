"""The tables that the report shows: events of some parts, and small tables of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from traceanalyzer.analysis.examine import small_tables
from traceanalyzer.analysis.parts import Part
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.catalog.declarations import declared
from traceanalyzer.columns import frames
from traceanalyzer.config import Config
from traceanalyzer.forks import beside
from traceanalyzer.workers import cpus

SLOW = ("call_trees", "operator_stats", "sync_stats")
"""Small tables that nobody but the page asks for. Of a large trace they take about as long as its timeline does."""


class ReportTables:
    """Event and derived tables by name, the rows of all these parts one after another; small tables, and those about all ranks
    together, are those of the whole job."""

    def __init__(self, parts: Sequence[Part], config: Config, whole: Catalog) -> None:
        self._catalogs = [part.catalog(config) for part in parts]
        self._whole = whole
        self._small = frozenset((*small_tables(), *(one.name for one in declared().values() if one.of_job)))
        self._made: dict[str, pa.Table] = {}
        self._slow: Callable[[], Mapping[str, pa.Table]] = dict

    def table(self, name: str) -> pa.Table:
        """A table is put together once. Raises KeyError for an unknown name."""
        if name in self._small:
            return self._whole.table(name)
        if name in SLOW and name not in self._made:
            self._made.update(self._slow())
        if name not in self._made:
            self._made[name] = self._of_parts(name)
        return self._made[name]

    def _of_parts(self, name: str) -> pa.Table:
        tables = [catalog.table(name) for catalog in self._catalogs]
        return tables[0] if len(tables) == 1 else frames.concatenated(tables)

    @contextmanager
    def ahead(self, processes: int | None = None) -> Iterator[None]:
        """Until the end of the context a copy of this process makes the slow tables of large traces, if there is one to have. None
        stands for as many `processes` as there are CPUs."""
        if (processes or cpus()) == 1 or not any(catalog.is_large for catalog in self._catalogs):
            yield
            return
        with beside(lambda: {name: self._of_parts(name) for name in SLOW}) as self._slow:
            yield
        self._slow = dict
