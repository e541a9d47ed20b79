"""The parts of a job: one input file each, which is one rank, or a recording of several processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import frames
from traceanalyzer.config import Config
from traceanalyzer.errors import ConfigError
from traceanalyzer.evidence.contract import Evidence
from traceanalyzer.model.kinds import EVIDENCE, kinds_of
from traceanalyzer.model.placed import PLACED
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.stores.parts import Part as Files
from traceanalyzer.model.stores.store import Edition, read_part
from traceanalyzer.model.trace import Input, Trace
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place
from traceanalyzer.vocabulary.levels import INFO

UNPACKED = 20
"""So many times as much as a store do its tables take in memory, or more."""


class Part(Protocol):
    """A part whose tables can be had, here or in another process."""

    @property
    def input(self) -> Input: ...

    @property
    def table_bytes(self) -> int:
        """About how many bytes its event tables take in memory."""
        ...

    def read(self) -> Trace:
        """Its event tables."""
        ...

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

    @property
    def table_bytes(self) -> int:
        return sum(table.nbytes for table in self.trace.tables.values())

    def read(self) -> Trace:
        return self.trace

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
    beside: tuple[Beside, ...] | None = None
    """The evidence that is beside it; None as long as nobody looked."""

    @property
    def table_bytes(self) -> int:
        return UNPACKED * sum(table.bytes for table in self.files.tables.values())

    def read(self) -> Trace:
        kinds_of(EVIDENCE)  # What the tables look like that they bring along.
        trace = read_part(self.place, self.store, self.input, self.files)
        return trace if self.beside is None else together(trace, self.beside)

    def catalog(self, config: Config) -> Catalog:
        trace = self.read()
        return Catalog(trace, config.input_patterns, communication_patterns=config.communication_patterns)


@dataclass(frozen=True)
class Beside:
    """Evidence that is placed: what is to be added to its times (None: they are on no clock of the trace), what told whose it is, and
    how far its times may be off."""

    part: Part
    shift_ns: int | None
    placed_by: str
    clock_error_ns: int | None


def with_beside(part: Part, beside: Sequence[Beside]) -> Part:
    """The part with evidence beside it, or, without any, evidence that is a part by itself."""
    if isinstance(part, StoredPart):
        return replace(part, beside=tuple(beside))
    return MemoryPart(together(part.read(), beside))


def together(trace: Trace, beside: Sequence[Beside]) -> Trace:
    """A trace with the tables of the evidence beside it, in its rank and on its clock."""
    (one,) = trace.inputs
    tables = dict(trace.tables)
    rows: list[tuple[object, ...]] = []
    for file in beside:
        found, given = file.part.read(), file.part.input
        kind = next(kind for kind in kinds_of(EVIDENCE) if kind.name == given.format)
        own = {spec.name: _placed(found.table(spec.name), one.ordinal, file.shift_ns or 0) for spec in kind.tables}
        for name, more in own.items():
            tables[name] = frames.concatenated([tables[name], more]) if name in tables else more
        tables |= _enriched(kind, Trace(found.inputs, own), Trace(trace.inputs, tables), file.shift_ns is not None)
        tables["health"] = pa.concat_tables([tables["health"], _notes(found.table("health"), one.ordinal)])
        rows.append(
            (one.ordinal, given.format, given.path, file.placed_by, file.shift_ns is not None, file.clock_error_ns)
        )
    if one.witness is not None:
        joined = ((one.ordinal, file.part.input.format, file.part.input.path, None, False, None) for file in beside)
        rows = [(one.ordinal, one.format, one.path, None, False, None), *joined]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), PLACED.schema, strict=True)
    ]
    return Trace(trace.inputs, {**tables, PLACED.name: pa.table(columns, schema=PLACED.schema)})


def _enriched(kind: Evidence, own: Trace, trace: Trace, on_clock: bool) -> Mapping[str, pa.Table]:
    """The event tables that a kind makes anew. Raises ConfigError for what is no such table."""
    made = kind.enrich(own, trace, on_clock)
    for name, table in made.items():
        if name not in EVENT_TABLES or table.schema != EVENT_TABLES[name].schema:
            raise ConfigError(
                f"the kind of evidence '{kind.name}' gives '{name}', which is no event table of traces as declared"
            )
    return made


def _placed(rows: pa.Table, ordinal: int, shift: int) -> pa.Table:
    for at, column in enumerate(rows.schema):
        if column.name == "rank":
            rows = rows.set_column(at, column, pa.repeat(pa.scalar(ordinal, column.type), rows.num_rows))
        elif column.name.endswith("_ns") and shift:
            rows = rows.set_column(at, column, pc.add(rows[column.name], shift))
    return rows


def _notes(health: pa.Table, ordinal: int) -> pa.Table:
    """What was met in a file of evidence: it takes nothing from what its trace tells, and is no fault of how that was recorded."""
    health = _placed(health, ordinal, 0)
    at = health.schema.get_field_index("severity")
    return health.set_column(at, health.schema.field(at), pa.repeat(INFO, health.num_rows))


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
