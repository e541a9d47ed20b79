"""Memory snapshots of PyTorch's CUDA caching allocator (`torch.cuda.memory._dump_snapshot`): who holds what, since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role
from traceanalyzer.evidence.memory_snapshot.derived_tables import DERIVED
from traceanalyzer.evidence.memory_snapshot.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class MemorySnapshot(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "memory_snapshot"
    about = "a memory snapshot of PyTorch"
    told = "a pickle or JSON of `segments` or `device_traces`"
    role: Role = "beside"
    priority = 700
    suffixes: Sequence[str] = (".pickle", ".pkl", ".json")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    figures: Mapping[str, Figure] = {
        "peak": Figure("bytes", "most memory in use at once on one GPU"),
        "reserved": Figure("bytes", "most memory taken from the driver by one GPU's allocator"),
        "level": Figure("bytes", "memory in use between steps on one GPU"),
        "growth": Figure("bytes", "how much more memory each step leaves in use on one GPU"),
    }

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.memory_snapshot.reading.content import is_snapshot

        return is_snapshot(source)

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.memory_snapshot.reader import read_snapshot

        return read_snapshot(source, sink, progress)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.memory_snapshot.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.memory_snapshot.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.memory_snapshot.advice import advice

        return advice({name: tables.table(name) for name in ("snapshot_totals", "snapshot_frames")})


KIND = MemorySnapshot()
