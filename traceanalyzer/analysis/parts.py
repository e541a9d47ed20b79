"""The parts of a job: one input file each, which is one rank, or a recording of several processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.derive import frames
from traceanalyzer.model.parts import Part as Files
from traceanalyzer.model.store import Edition, read_part
from traceanalyzer.model.trace import Input, Trace
from traceanalyzer.urls import Place


class Part(Protocol):
    """A part whose tables can be had, here or in another process."""

    @property
    def input(self) -> Input: ...

    def catalog(self, config: Config) -> Catalog:
        """Its tables, derived as `config` asks."""
        ...


@dataclass(frozen=True)
class MemoryPart:
    """A part in this process's memory; what is derived of it is kept."""

    trace: Trace
    _made: dict[tuple[tuple[str, ...], ...], Catalog] = field(default_factory=dict, compare=False)

    @property
    def input(self) -> Input:
        return self.trace.inputs[0]

    def catalog(self, config: Config) -> Catalog:
        patterns = config.input_patterns, config.communication_patterns
        if patterns not in self._made:
            self._made[patterns] = Catalog(self.trace, patterns[0], communication_patterns=patterns[1])
        return self._made[patterns]


@dataclass(frozen=True)
class StoredPart:
    """A part in a store, which is read each time it is asked for; any process that sees the store can do that.

    ChangedError is raised when the store is another one by then.
    """

    place: Place
    store: Edition
    """All parts are of this one."""
    input: Input
    files: Files
    """What the manifest says of it."""

    def catalog(self, config: Config) -> Catalog:
        trace = read_part(self.place, self.store, self.input, self.files)
        return Catalog(trace, config.input_patterns, communication_patterns=config.communication_patterns)


def parts_of(trace: Trace) -> list[MemoryPart]:
    """The parts of a trace in memory, in the order of its inputs."""
    if len(trace.inputs) == 1:
        return [MemoryPart(trace)]
    by_rank = {name: dict(_by_rank(table)) for name, table in trace.tables.items()}
    return [
        MemoryPart(
            Trace((one,), {name: by_rank[name].get(one.ordinal, table[:0]) for name, table in trace.tables.items()})
        )
        for one in trace.inputs
    ]


def _by_rank(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    rank = frames.ints(table, "rank")
    for (one,), rows in frames.together(rank):
        first, last = int(rows[0]), int(rows[-1])
        own = table[first : last + 1] if last - first + 1 == len(rows) else table.take(pa.array(rows))
        yield one, _compact(own)


def _compact(table: pa.Table) -> pa.Table:
    """The table with the names of its own rows only: every table of a job shares one list of them."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            chunk = table.column(at).combine_chunks()
            used, index = np.unique(chunk.indices.fill_null(-1).to_numpy(), return_inverse=True)
            present = used[used >= 0]
            index = index - (len(used) - len(present))
            codes = pa.array(index.astype(np.int32), mask=index < 0)
            names = pa.DictionaryArray.from_arrays(codes, chunk.dictionary.take(pa.array(present)))
            table = table.set_column(at, column, names.cast(column.type))
    return table
