"""Logs of GPUs: clocks, power, temperature and use over time, as nvidia-smi, NVML, DCGM and Prometheus give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.evidence.contract import Evidence, Figure, Marks, Role
from traceanalyzer.evidence.gpu_log.derived_tables import DERIVED
from traceanalyzer.evidence.gpu_log.tables import TABLES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section


class GpuLog(Evidence):
    """As `evidence.contract.Evidence`."""

    name = "gpu_log"
    about = "a log of GPUs' clocks, power and use"
    told = "nvidia-smi's CSV or dmon, NVML's values as JSON lines, DCGM's or Prometheus' metrics"
    role: Role = "beside"
    priority = 660
    suffixes: Sequence[str] = (".csv", ".log", ".txt", ".jsonl", ".ndjson", ".json", ".prom", ".metrics")
    tables: Sequence[TableSpec] = TABLES
    derived: Sequence[Derived] = DERIVED
    figures: Mapping[str, Figure] = {
        "utilization": Figure("share", "time in which kernels ran while the GPU had work, the mean of all"),
        "clock": Figure("count", "median SM clock under load in MHz, of the slowest GPU"),
        "power": Figure("count", "median power under load in W, the mean of all GPUs"),
        "temperature": Figure("count", "highest temperature under load in °C, of the hottest GPU"),
        "memory": Figure("bytes", "most memory in use on one GPU"),
        "held_down": Figure(
            "share", "samples under load in which heat or the hardware holds clocks down, of the worst GPU"
        ),
    }
    several = True
    spans = True

    def sniff(self, source: Source) -> bool:
        from traceanalyzer.evidence.gpu_log.reading.content import writing_of

        return writing_of(source.head) is not None

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        from traceanalyzer.evidence.gpu_log.reader import read_log

        return read_log(source, sink, progress)

    def enrich(self, own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
        from traceanalyzer.evidence.gpu_log.counters import counters_with

        return counters_with(own, trace) if on_clock else {}

    def headline(self, tables: Tables) -> str | None:
        from traceanalyzer.evidence.gpu_log.scorecard import headline

        return headline(tables.table("gpu_load"))

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        from traceanalyzer.evidence.gpu_log.section import sections

        return sections(result, tables)

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        from traceanalyzer.evidence.gpu_log.scorecard import measure

        return measure(tables.table("gpu_load"))

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        from traceanalyzer.evidence.gpu_log.advice import advice

        return advice(tables.table("gpu_log_samples"))


KIND = GpuLog()
