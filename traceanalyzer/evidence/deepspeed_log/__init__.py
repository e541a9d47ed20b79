"""Logs of DeepSpeed: timers of its phases, the flops profiler's reports, the comms logger's summaries, and what of it can be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role
from traceanalyzer.evidence.deepspeed_log.derived_tables import DERIVED
from traceanalyzer.evidence.deepspeed_log.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class DeepSpeedLog(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "deepspeed_log"
    about = "a log of DeepSpeed"
    told = "lines that DeepSpeed's timers, flops profiler and comms logger print"
    role: Role = "beside"
    priority = 650
    suffixes: Sequence[str] = (".log", ".txt", ".out")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    several = True
    figures: Mapping[str, Figure] = {
        "step": Figure("ns", "median of a step by DeepSpeed's timers"),
        "forward": Figure("ns", "median of its forward pass"),
        "backward": Figure("ns", "median of its backward pass"),
        "optimizer": Figure("ns", "median of its optimizer's step"),
        "growth": Figure("ns", "how much longer the last step is than the first, by a robust line through all"),
        "flops": Figure("count", "operations of a forward pass on one GPU that the flops profiler counts, each once"),
    }

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.deepspeed_log.reading.sniffing import is_deepspeed_log

        return is_deepspeed_log(source)

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.deepspeed_log.reader import read_log

        return read_log(source, sink, progress)

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.deepspeed_log.section import headline

        return headline(tables)

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.deepspeed_log.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.deepspeed_log.measuring import measure

        return measure(tables)

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.deepspeed_log.advice import advice

        return advice(tables)


KIND = DeepSpeedLog()
