"""Which importer reads a file: told from its content."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.sources import Source, explain_unknown
from traceanalyzer.ingest.contract import Importer


def _importers() -> Iterator[Importer]:
    """The most specific sniff first. A new format is two more lines here; those that come after what knows the file are not loaded."""
    from traceanalyzer.ingest.formats.nsys.importer import NsysImporter

    yield NsysImporter()
    from traceanalyzer.ingest.formats.kineto.importer import KinetoImporter

    yield KinetoImporter()


def importer_of(source: Source) -> Importer:
    """The first importer that knows the content. Raises InputError that says what to do when there is none."""
    for importer in _importers():
        if importer.sniff(source):
            return importer
    raise InputError(explain_unknown(source))
