"""Memory snapshots of PyTorch's CUDA caching allocator (`torch.cuda.memory._dump_snapshot`): who holds what, since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from traceanalyzer.evidence.contract import Marks, Role
from traceanalyzer.evidence.memory_snapshot.derived_tables import DERIVED
from traceanalyzer.evidence.memory_snapshot.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.model.trace import Input
from traceanalyzer.result.document import Result
from traceanalyzer.result.recording.diagnosis import Setting
from traceanalyzer.result.sections import Section


class MemorySnapshot:
    """As `evidence.contract.Evidence`."""

    name = "memory_snapshot"
    role: Role = "beside"
    priority = 700
    suffixes: Sequence[str] = (".pickle", ".pkl", ".json")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.memory_snapshot.reading.content import is_snapshot

        return is_snapshot(source)

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.memory_snapshot.reader import read_snapshot

        return read_snapshot(source, sink, progress)

    def place(self, marks: Marks, parts: Sequence[Input]) -> int | None:
        """By rank, else the only part that was recorded at the same time: ranks of one job all are."""
        if marks.rank is not None:
            same = [place for place, part in enumerate(parts) if part.rank == marks.rank]
        else:
            same = [place for place, part in enumerate(parts) if _meets(marks, part)]
        return same[0] if len(same) == 1 else None

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.memory_snapshot.section import sections

        return sections(tables)

    def recording_advice(self, tables: Mapping[str, pa.Table]) -> Iterable[Setting]:
        from traceanalyzer.evidence.memory_snapshot.advice import advice

        return advice(tables)


def _meets(marks: Marks, part: Input) -> bool:
    """Whether both say when they were recorded, and some of that is the same time."""
    if None in (marks.recorded_ns, marks.clock_base_ns, part.recorded_ns, part.clock_base_ns):
        return False
    assert marks.recorded_ns and part.recorded_ns and marks.clock_base_ns is not None and part.clock_base_ns is not None
    low, high = (time + marks.clock_base_ns for time in marks.recorded_ns)
    first, last = (time + part.clock_base_ns for time in part.recorded_ns)
    return low < last and first < high


KIND = MemorySnapshot()
