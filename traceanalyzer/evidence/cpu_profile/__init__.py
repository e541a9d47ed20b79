"""CPU profiles of the host, of py-spy, VizTracer, perf, Austin, pprof and what writes speedscope's format: what its threads ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role
from traceanalyzer.evidence.cpu_profile.derived_tables import DERIVED
from traceanalyzer.evidence.cpu_profile.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class CpuProfile(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "cpu_profile"
    about = "a CPU profile"
    told = "speedscope's schema, events of py-spy or VizTracer, the lines of `perf script`, Austin or folded stacks, pprof's messages"
    role: Role = "beside"
    priority = 670
    suffixes: Sequence[str] = (
        ".json",
        ".speedscope",
        ".txt",
        ".folded",
        ".collapsed",
        ".austin",
        ".mojo",
        ".pprof",
        ".pb",
        ".perf",
    )
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    figures: Mapping[str, Figure] = {
        "hottest": Figure("share", "most that one function of the user's has of the main thread, import chain apart"),
        "own": Figure("share", "what the user's own code has of the main thread, import chain apart"),
    }

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.cpu_profile.reading.content import form_of

        return form_of(source) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.cpu_profile.reader import read_profile

        return read_profile(source, sink, progress)

    def fits(self, own: Tables, trace: Tables) -> bool | None:
        from traceanalyzer.evidence.cpu_profile.joining import fits

        return fits(own, trace)

    def shift(self, tables: Tables, trace: Tables) -> tuple[int, int | None] | None:
        from traceanalyzer.evidence.cpu_profile.aligning import shift

        return shift(tables, trace)

    def enrich(self, own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
        from traceanalyzer.evidence.cpu_profile.joining import enrich

        return enrich(own, trace) if on_clock else {}

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.cpu_profile.words import headline

        return headline(tables)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.cpu_profile.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.cpu_profile.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.cpu_profile.advice import advice

        return advice(tables)


KIND = CpuProfile()
