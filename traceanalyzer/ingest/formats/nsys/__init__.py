"""Nsight Systems exports (SQLite)."""

from __future__ import annotations

import re

from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Format, Progress, Sink
from traceanalyzer.ingest.formats.nsys.reports import Reports
from traceanalyzer.ingest.formats.nsys.sqlite import SQLITE_MAGIC

_TABLES = re.compile(rb"CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|TARGET_INFO_")


class Nsys(Format):
    """`nsys export --type sqlite`, of any version since 2021."""

    name = "nsys"
    priority = 900
    about = "an Nsight Systems SQLite export"
    record = "run nsys export --type sqlite"
    suffixes = (".sqlite",)
    conversion = Reports()

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


KIND = Nsys()
