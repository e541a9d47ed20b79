"""Constructs of OpenACC and OpenMP, and host functions that streams call: what a host thread did, as the runtime says it.

Names are put together so that they say what a construct is and where it stands: "OpenACC Wait, jacobi.c:31 in main". Of OpenMP the
table and its kind say more than the recorded name, and waits are called so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.events.host import Host
from traceanalyzer.ingest.formats.nsys.lookups import Strings, integers, names_by_key
from traceanalyzer.ingest.formats.nsys.repairs import Repairs, keep_rows
from traceanalyzer.ingest.formats.nsys.sqlite import tables
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns, EventReader
from traceanalyzer.ingest.formats.nsys.sqlite.tables import Table

_BARRIERS = {
    1: "barrier",
    2: "implicit barrier",
    3: "explicit barrier",
    4: "barrier of the implementation",
    5: "taskwait",
    6: "taskgroup",
}
_LOCKS = {
    1: "lock",
    2: "lock that is tested",
    3: "nested lock",
    4: "nested lock that is tested",
    5: "critical section",
    6: "atomic region",
    7: "ordered region",
}
_SHARED_WORK = {
    1: "loop",
    2: "sections",
    3: "single region",
    4: "wait for a single region",
    5: "workshare region",
    6: "distribute region",
    7: "taskloop",
}
_TASKS = {1: "initial task", 2: "implicit task", 3: "explicit task"}
_INITIAL = 1
"""The kind of the task that is the program itself: it says nothing but that the program ran."""
# Of each table of OpenMP: what its rows are called, with the kinds it has; {} is where the kind goes.
_CALLED: dict[Table, tuple[str, str, dict[int, str]]] = {
    tables.OPENMP["PARALLEL"]: ("parallel region", "", {}),
    tables.OPENMP["SYNC_REGION_WAIT"]: ("waiting at a barrier", "waiting at {}", _BARRIERS),
    tables.OPENMP["SYNC_REGION"]: ("barrier", "{}", _BARRIERS),
    tables.OPENMP["TASK"]: ("task", "{}", _TASKS),
    tables.OPENMP["TASK_CREATE"]: ("task creation", "", {}),
    tables.OPENMP["MASTER"]: ("master region", "", {}),
    tables.OPENMP["REDUCTION"]: ("reduction", "", {}),
    tables.OPENMP["MUTEX_WAIT"]: ("waiting for a lock", "waiting for {}", _LOCKS),
    tables.OPENMP["CRITICAL_SECTION"]: ("critical section", "{}", _LOCKS),
    tables.OPENMP["WORKSHARE"]: ("shared work", "{}", _SHARED_WORK),
}


class Directives:
    """Makes rows of `host_ranges`; `host` has read the calls of CUDA, which say whose threads count."""

    def __init__(self, reader: EventReader, strings: Strings, repairs: Repairs, host: Host) -> None:
        self._reader, self._strings, self._repairs, self._host = reader, strings, repairs, host

    def read(self) -> Iterator[pa.Table]:
        """Batches of `host_ranges` of all three kinds."""
        for table in tables.OPENACC:
            for columns in self._rows(table):
                yield self._ranges(columns, "openacc", self._constructs(columns))
        for table in tables.OPENMP.values():
            for columns in self._rows(table):
                # The many threads of a team wait all the time; only one that launches holds up the GPU.
                own = keep_rows(columns, self._host.of_launching(columns))
                if table is tables.OPENMP["TASK"]:
                    own = keep_rows(own, pa.array(integers(_column(own, "kind")) != _INITIAL))
                yield self._ranges(own, "openmp", _regions(table, own))
        for columns in self._rows(tables.CALLBACKS):
            names = self._strings.names(_column(columns, "name"), "host function")
            yield self._ranges(columns, "callback", names)

    def _rows(self, table: Table) -> Iterator[Columns]:
        for columns in self._reader.read(table):
            yield self._repairs.complete(columns, "start", "end")

    def _ranges(self, columns: Columns, category: str, names: pa.DictionaryArray) -> pa.Table:
        kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(names), np.int32)), pa.array([category]))
        return pa.table(self._host.placed(columns) | {"name": names, "category": kind})

    def _constructs(self, columns: Columns) -> pa.DictionaryArray:
        """ "OpenACC Enqueue Upload of A, solve.f90:42 in solve", as far as each row says it."""
        name, kernel, variable, file, function = (
            self._text(columns, key) for key in ("name", "kernel", "variable", "file", "function")
        )
        name = pc.if_else(pc.equal(name, ""), "construct", name)
        about = pc.if_else(pc.equal(variable, ""), kernel, variable)
        line = _column(columns, "line")
        number = pc.if_else(pc.greater(pc.fill_null(line, 0), 0), line, None).cast(pa.string())
        numbered = pc.binary_join_element_wise(file, number, ":", null_handling="skip")
        where = pc.if_else(pc.equal(file, ""), "", numbered)
        parts = [pc.binary_join_element_wise("OpenACC ", name, "")]
        for before, part in ((" of ", about), (", ", where), (" in ", function)):
            parts.append(pc.if_else(pc.equal(part, ""), "", pc.binary_join_element_wise(before, part, "")))
        return pc.binary_join_element_wise(*parts, "").dictionary_encode()

    def _text(self, columns: Columns, key: str) -> pa.Array:
        """Texts by their ids, "" for none; of a file the last part of its path."""
        if key not in columns:
            return pa.repeat("", len(columns["start"]))
        names = self._strings.names(columns[key], "")
        texts = names.dictionary
        if key == "file":
            texts = pc.replace_substring_regex(texts, r"^.*[/\\]", "")
        return texts.take(names.indices)


def _regions(table: Table, columns: Columns) -> pa.DictionaryArray:
    plain, form, kinds = _CALLED[table]

    def called(kind: int | None) -> str:
        known = kinds.get(kind) if kind is not None else None
        return f"OpenMP {form.format(known) if known else plain}"

    return names_by_key(_column(columns, "kind") if kinds else pa.nulls(len(columns["start"]), pa.int64()), called)


def _column(columns: Columns, name: str) -> pa.Array:
    return columns.get(name, pa.nulls(len(columns["start"]), pa.int64()))
