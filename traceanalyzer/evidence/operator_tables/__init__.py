"""PyTorch's own tables: what `key_averages().table()` prints, and execution traces of `ExecutionTraceObserver`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role, Whereabouts
from traceanalyzer.evidence.operator_tables.derived_tables import DERIVED
from traceanalyzer.evidence.operator_tables.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class OperatorTables(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "operator_tables"
    about = "a table or execution trace of PyTorch's operators"
    told = "the columns of `key_averages().table()` in a text; JSON of `schema` 1.x and `nodes`"
    role: Role = "beside"
    priority = 640
    several = True
    fits_by = "its operators"
    suffixes: Sequence[str] = (".txt", ".log", ".out", ".json")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    figures: Mapping[str, Figure] = {
        "device": Figure("ns", "time of the device's work in a table of sums"),
        "host": Figure("ns", "time on the host in a table of sums"),
        "kernel": Figure("ns", "mean length of a kernel in a table of sums"),
        "launches": Figure("count", "calls that launch work, in a table of sums"),
        "operators": Figure("count", "operators in an execution trace"),
    }

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.operator_tables.reading.content import form_of

        return form_of(source) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.operator_tables.reader import read_tables

        return read_tables(source, sink, progress)

    def place(self, own: Whereabouts, parts: Sequence[Whereabouts]) -> Sequence[int]:
        """As of any kind, else by the process alone: an execution trace names no host."""
        if found := super().place(own, parts):
            return found
        same = [at for at, part in enumerate(parts) if own.pids & part.pids]
        return same if len(same) == 1 else ()

    def fits(self, own: Tables, trace: Tables) -> bool | None:
        from traceanalyzer.evidence.operator_tables.joining import fits

        return fits(own, trace)

    def enrich(self, own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
        from traceanalyzer.evidence.operator_tables.joining import enriched

        return enriched(own, trace)

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.operator_tables.answers.words import headline

        return headline(tables)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.operator_tables.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.operator_tables.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.operator_tables.advice import advice

        return advice(tables)


KIND = OperatorTables()
