"""Counters of kernels that NVIDIA's Nsight Compute (`ncu`) takes: what each kernel could be, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role, Whereabouts
from traceanalyzer.evidence.kernel_counters.derived_tables import DERIVED
from traceanalyzer.evidence.kernel_counters.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class KernelCounters(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "kernel_counters"
    about = "counters of kernels from Nsight Compute"
    told = "pages of ncu (details, raw, summaries; CSV or text), or a report (.ncu-rep)"
    role: Role = "beside"
    priority = 680
    suffixes: Sequence[str] = (".csv", ".txt", ".log", ".ncu-rep")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    figures: Mapping[str, Figure] = {
        "used": Figure("share", "use of what limits the kernels, of its peak, weighted by their time"),
        "occupancy": Figure("share", "achieved occupancy of the kernels, weighted by their time"),
        "profiled": Figure("ns", "time of one launch under the profiler, by kernel"),
        "limited": Figure("ns", "exposed time of kernels that wait: latency, occupancy, too few blocks"),
    }
    several = True
    spans = True
    fits_by = "the kernels that both ran"

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.kernel_counters.reading.content import page_of

        return page_of(source) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.kernel_counters.reader import read_counters

        return read_counters(source, sink, progress)

    def place(self, own: Whereabouts, parts: Sequence[Whereabouts]) -> Sequence[int]:
        """None by where it was recorded: the profiler runs the program anew, another process at another time, maybe on another host."""
        return ()

    def fits(self, own: Tables, trace: Tables) -> bool | None:
        from traceanalyzer.evidence.kernel_counters.belonging import ran

        return ran(own, trace)

    def joins(self, own: Tables, other: Tables) -> bool:
        from traceanalyzer.evidence.kernel_counters.belonging import are_of_one_run

        return are_of_one_run(own, other)

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.kernel_counters.section import headline

        return headline(tables)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.kernel_counters.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.kernel_counters.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.kernel_counters.advice import advice

        return advice(tables)


KIND = KernelCounters()
