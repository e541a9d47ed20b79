"""NCCL's records: PyTorch's flight recorder, NCCL Inspector and nccl-tests: who is late, missing, or in another collective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role, Whereabouts
from traceanalyzer.evidence.nccl_records.derived_tables import DERIVED
from traceanalyzer.evidence.nccl_records.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class NcclRecords(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "nccl_records"
    about = "records of NCCL's collectives"
    told = (
        "a pickle or JSON of `entries`, `pg_config` and `pg_status`, lines with `coll_perf`, or results of nccl-tests"
    )
    role: Role = "beside"
    priority = 690
    suffixes: Sequence[str] = (".pickle", ".pkl", ".json", ".jsonl", ".log", ".txt")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    several = True
    spans = True
    figures: Mapping[str, Figure] = {
        "late": Figure("ns", "time that the others of a group could wait for the rank that comes late most"),
        "late_share": Figure(
            "share", "share of the records' time in which a rank that comes late keeps the others waiting"
        ),
        "missing": Figure("count", "ranks that do not take part in a collective that others wait in"),
        "mismatched": Figure("count", "collectives in which ranks do different things"),
    }

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.nccl_records.reading.content import source_kind

        return source_kind(source) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.nccl_records.reader import read_records

        return read_records(source, sink, progress)

    def place(self, own: Whereabouts, parts: Sequence[Whereabouts]) -> Sequence[int]:
        # A file is of one rank; only results of nccl-tests, of which nothing here tells, stand beside several.
        found = super().place(own, parts)
        return found if len(found) == 1 else ()

    def fits(self, own: Tables, trace: Tables) -> bool | None:
        from traceanalyzer.evidence.nccl_records.enriching import fits

        return fits(own, trace)

    def enrich(self, own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
        from traceanalyzer.evidence.nccl_records.enriching import enrich

        return enrich(own, trace, on_clock)

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.nccl_records.section import headline

        return headline(tables)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.nccl_records.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.nccl_records.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.nccl_records.advice import advice

        return advice({name: tables.table(name) for name in ("nccl_dumps", "nccl_calls")})


KIND = NcclRecords()
