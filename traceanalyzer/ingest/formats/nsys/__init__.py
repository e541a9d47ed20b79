"""Nsight Systems exports (SQLite)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Format, Progress, Sink
from traceanalyzer.ingest.formats.nsys.reports import Reports
from traceanalyzer.ingest.formats.nsys.sqlite import SQLITE_MAGIC

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Contents
    from traceanalyzer.result.recording.ways import Ways

_TABLES = re.compile(rb"CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|TARGET_INFO_")


class Nsys(Format):
    """`nsys export --type sqlite`, of any version since 2021."""

    name = "nsys"
    priority = 900
    about = "an Nsight Systems SQLite export"
    told = "SQLite with tables of CUDA or NVTX events (`CUPTI_ACTIVITY_KIND_…`, `NVTX_EVENTS`, `TARGET_INFO_…`)"
    record = "run nsys export --type sqlite"
    suffixes = (".sqlite",)
    conversion = Reports()
    any_program = True
    recorded_with: Mapping[str, str] = {
        "gpu_metrics": "nsys records them with --gpu-metrics-devices=cuda-visible",
        "memory_events": "nsys records them with --cuda-memory-usage=true",
    }

    def sniff(self, source: Source) -> bool:
        return source.head.startswith(SQLITE_MAGIC) and _TABLES.search(source.head) is not None

    def tries(self, source: Source, named: bool) -> bool:
        """Any other SQLite file that is called like an export: names of tables may stand behind the head."""
        return source.head.startswith(SQLITE_MAGIC)

    def vouches(self, source: Source) -> bool:
        return source.head.startswith(SQLITE_MAGIC)

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        from traceanalyzer.ingest.formats.nsys.importer import NsysImporter

        return NsysImporter().read(source, sink, progress)

    def ways(self, held: Contents, producer: str) -> Ways:
        from traceanalyzer.ingest.formats.nsys.advice.ways import ways

        return ways(held)


KIND = Nsys()
