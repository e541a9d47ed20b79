"""PyTorch (Kineto) and other Chrome-trace JSON: events become event tables, chunk by chunk."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Progress, Sink
from traceanalyzer.ingest.formats.kineto import metadata
from traceanalyzer.ingest.formats.kineto.reader import Reader
from traceanalyzer.ingest.formats.kineto.text.damage import Damage
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.opening import NoEventsError
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter
from traceanalyzer.ingest.formats.kineto.text.surroundings import read_surroundings


class KinetoImporter:
    """Reads `torch.profiler` exports of PyTorch 1.8 and later, plain or gzipped."""

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        reader, damage = Reader(sink), Damage()
        with source.open(progress) as stream, _gc_paused():
            splitter = Splitter(stream, Events)
            read_any = False
            try:
                for events in splitter:
                    read_any = True
                    damage.take(events)
                    reader.take(events)
                    del events
            except NoEventsError:
                what = "JSON without a traceEvents array; this is not a Chrome trace"
                raise InputError(f"{source.path}: {_ended_early(stream.damage) or what}") from None
            if stream.damage and not read_any:
                raise InputError(f"{source.path}: {_ended_early(stream.damage)}")
            for note in stream.notes:
                sink.health(*note)
        process = reader.finish()
        damage.report(stream.damage, splitter, reader.gpu_work, sink)
        found = read_surroundings(splitter, sink)
        described = metadata.devices(found)
        if described is not None:
            sink.add("devices", described)
        return replace(metadata.facts(found, process, reader.rank), recorded_ns=reader.recorded_ns)


def _ended_early(damage: str | None) -> str | None:
    """The words for a file whose damage begins before its events do."""
    return damage and f"{damage}, and no event came before; copy or record the trace again"


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Decoding makes many objects and no cycles; collecting between them only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
