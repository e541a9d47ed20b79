"""Which importer reads a file: told from its content."""

from __future__ import annotations

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.contract import Importer
from traceanalyzer.ingest.kineto.importer import KinetoImporter
from traceanalyzer.ingest.nsys.importer import NsysImporter
from traceanalyzer.ingest.sources import Source, explain_unknown

# The most specific sniff first. A new format is one more line here.
IMPORTERS: tuple[Importer, ...] = (NsysImporter(), KinetoImporter())


def importer_of(source: Source) -> Importer:
    """The first importer that knows the content. Raises InputError that says what to do when there is none."""
    for importer in IMPORTERS:
        if importer.sniff(source):
            return importer
    raise InputError(explain_unknown(source))
