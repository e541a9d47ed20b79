"""API calls, NVTX ranges, calls of MPI and of the operating system, and the profiler's own overhead: what happened on host threads.

A table is read once for the rows that have an end. Those that have none end with the last record of the file, which is
known only when all of it has been read; then they are read on their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import ascending
from traceanalyzer.ingest.formats.nsys.events.domains import Domains
from traceanalyzer.ingest.formats.nsys.events.operators import describe_ranges
from traceanalyzer.ingest.formats.nsys.lookups import (
    Ints,
    Strings,
    among,
    integers,
    names_by_key,
    nulls,
    present,
    processes,
    threads,
)
from traceanalyzer.ingest.formats.nsys.repairs import Repairs, keep_rows
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns, EventReader
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PROCESS_BITS, Table
from traceanalyzer.ingest.rows.classify import api_class, map_names, plain_api_name

# CUPTI's own numbers for what it spent time on.
_CUPTI_OVERHEADS = {
    1: "CUPTI: driver compiler",
    1 << 16: "CUPTI: buffer flush",
    2 << 16: "CUPTI: instrumentation",
    3 << 16: "CUPTI: resource management",
    4 << 16: "CUPTI: module loading on first use",
    5 << 16: "CUPTI: lazy function loading",
    6 << 16: "CUPTI: command buffer full",
    7 << 16: "CUPTI: activity buffer request",
}
_plain, _class = cache(plain_api_name), cache(api_class)
_STARTS = ("launch", "copy")
"""Classes of calls that start GPU work."""
_OF_PROCESS = 24
"""Bits of a global thread id below those of its process."""


class Host:
    """Makes the tables of host events. `process` is the one of rows that name none."""

    def __init__(self, reader: EventReader, strings: Strings, repairs: Repairs, process: int, domains: Domains) -> None:
        self._reader, self._strings, self._repairs, self._process = reader, strings, repairs, process
        self._domains = domains
        self.launching: Ints = np.empty(0, np.int64)
        """The global ids of threads that start GPU work, once their calls have been read."""

    @property
    def using_gpu(self) -> set[int]:
        """The processes that start GPU work, once their calls have been read."""
        return set(np.unique((self.launching >> _OF_PROCESS) & PROCESS_BITS).tolist())

    def api_calls(self, last: int | None = None) -> Iterator[pa.Table]:
        """Batches of `api_calls`, runtime and driver calls alike: those with an end, or, given the `last` time, the others."""
        for columns in self._rows(tables.RUNTIME, last):
            raw = self._strings.names(_ids(columns, "name"), "unknown call")
            plain = map_names(raw, _plain)
            place = self.placed(columns)
            place |= {"name": plain, "raw_name": raw, "class": map_names(plain, _class)}
            self._see(columns, place["class"])
            if "correlation" in columns:
                place["correlation"] = present(columns["correlation"])
            yield pa.table(place)

    def ranges(self, last: int | None = None) -> Iterator[pa.Table]:
        """Batches of `host_ranges` of all NVTX domains; `last` as for `api_calls`."""
        for columns in self._rows(tables.NVTX, last):
            place = self.placed(columns)
            if "ended_by" in columns:
                place["thread"] = _unless_handed_over(place["thread"], columns)
            unended = pa.array(np.full(len(columns["start"]), last is not None))
            yield pa.table(
                place | describe_ranges(self._texts(columns)) | self._domains.of(columns) | {"open": unended}
            )

    def mpi_calls(self, last: int | None = None) -> Iterator[tuple[Table, Columns, pa.Table]]:
        """The rows of MPI's tables, of processes that start GPU work, and batches of `host_ranges` with each call once.

        A call that waits for several requests has a row for each of them. `last` as for `api_calls`.
        """
        for table in tables.MPI_CALLS:
            for columns in self._rows(table, last):
                own = among(integers(_ids(columns, "caller")) >> _OF_PROCESS, self.launching >> _OF_PROCESS)
                rows = keep_rows(columns, pa.array(own))
                yield table, rows, self._calls("mpi", _once(rows))

    def os_calls(self, last: int | None = None) -> Iterator[pa.Table]:
        """Batches of `host_ranges` of threads that start GPU work: the many waits of all others hold up no launch."""
        for columns in self._rows(tables.OS_CALLS, last):
            own = among(integers(_ids(columns, "caller")), self.launching)
            yield self._calls("os", keep_rows(columns, pa.array(own)))

    def of_launching(self, columns: Columns) -> pa.Array:
        """Which rows are of threads that start GPU work; all where none is known to."""
        if not len(self.launching):
            return pa.repeat(True, len(columns["start"]))
        return pa.array(among(integers(_ids(columns, "caller")), self.launching))

    def called(self, columns: Columns) -> dict[str, pa.Array]:
        """Where and when calls were, and their names."""
        return self.placed(columns) | {"name": self._strings.names(_ids(columns, "name"), "unknown call")}

    def _calls(self, category: str, columns: Columns) -> pa.Table:
        kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(columns["start"]), np.int32)), pa.array([category]))
        return pa.table(self.called(columns) | {"category": kind})

    def _see(self, columns: Columns, kinds: pa.DictionaryArray) -> None:
        """Note which threads made calls of these classes that start GPU work."""
        if "caller" in columns:
            starts = np.array([kind in _STARTS for kind in kinds.dictionary.to_pylist()], bool)[integers(kinds.indices)]
            callers = ascending(integers(columns["caller"])[starts])
            self.launching = np.union1d(self.launching, callers)

    def overheads(self, last: int) -> Iterator[pa.Table]:
        """Batches of `overheads`: what Nsight Systems and CUPTI say that they cost."""
        for table in (tables.OVERHEAD, tables.CUPTI_OVERHEAD):
            for which in (None, last):
                for columns in self._rows(table, which):
                    names = self._strings.names(_ids(columns, "name"), None)
                    if table is tables.CUPTI_OVERHEAD:
                        kinds = names_by_key(
                            _ids(columns, "kind"), lambda key: _CUPTI_OVERHEADS.get(key, "CUPTI: other")
                        )
                        names = pc.coalesce(names.dictionary_decode(), kinds.dictionary_decode()).dictionary_encode()
                    yield pa.table(self.placed(columns) | {"name": names})

    def _rows(self, table: Table, last: int | None) -> Iterator[Columns]:
        """Rows with a start and an end: the recorded one, or `last` for those that have none."""
        if last is None:
            for raw in self._reader.read(table):
                columns = self._repairs.complete(_ranges(raw) if table is tables.NVTX else raw, "start")
                columns = columns | {"end": _ids(columns, "end")}
                ended = columns["end"].is_valid()
                self._repairs.opened[table.names[0]] += ended.false_count
                yield keep_rows(columns, ended)
        elif self._repairs.opened[table.names[0]]:
            for raw in self._reader.unended(table):
                columns = _ranges(raw) if table is tables.NVTX else raw
                columns = keep_rows(columns, columns["start"].is_valid())
                yield columns | {"end": pa.array(np.maximum(integers(columns["start"]), last))}

    def placed(self, columns: Columns) -> dict[str, pa.Array]:
        """Where and when: the columns that all host events have."""
        start, end = self._repairs.span(columns)
        return {
            "process": processes(_ids(columns, "owner")).fill_null(self._process),
            "thread": threads(_ids(columns, "caller")),
            "start_ns": pa.array(start),
            "end_ns": pa.array(end),
        }

    def _texts(self, columns: Columns) -> pa.Array:
        """The text of each range, which may be registered once and named by its id."""
        texts = columns.get("text", pa.repeat("", len(columns["start"])))
        empty = pc.equal(texts, "")
        if not pc.any(empty).as_py():
            return texts
        return pc.if_else(
            empty, self._strings.names(_ids(columns, "text_id"), "(unnamed range)").dictionary_decode(), texts
        )


def _ids(columns: Columns, name: str) -> pa.Array:
    return columns.get(name, pa.nulls(len(columns["start"]), pa.int64()))


def _ranges(columns: Columns) -> Columns:
    """Those rows of NVTX_EVENTS that are ranges. Exports without event types tell them by their end."""
    kind = integers(_ids(columns, "type"), -1)
    untyped = (kind == -1) & ~nulls(_ids(columns, "end"))
    return keep_rows(columns, pa.array(np.isin(kind, tables.PUSHED + tables.STARTED) | untyped))


def _once(columns: Columns) -> Columns:
    """Each call of a batch once: rows of one thread and the same times are one call."""
    key = np.stack([integers(columns[name]) for name in ("caller", "start", "end")])
    order = np.lexsort(key)
    new = np.ones(len(order), bool)
    new[order[1:]] = (np.diff(key[:, order]) != 0).any(axis=0)
    return keep_rows(columns, pa.array(new))


def _unless_handed_over(thread: pa.Array, columns: Columns) -> pa.Array:
    """The thread of each range; null for one that another thread ended: it is nested in neither."""
    start, end = integers(_ids(columns, "caller")), integers(columns["ended_by"])
    moved = np.isin(integers(_ids(columns, "type")), tables.STARTED) & ~nulls(columns["ended_by"]) & (start != end)
    return pc.if_else(pa.array(moved), None, thread)
