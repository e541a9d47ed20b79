"""PyTorch (Kineto) and other Chrome-trace JSON: events become event tables, chunk by chunk."""

from __future__ import annotations

import gc
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.contract import FileFacts, Progress, Sink
from traceanalyzer.ingest.kineto import metadata
from traceanalyzer.ingest.kineto.decode import Events, readable
from traceanalyzer.ingest.kineto.reader import Reader
from traceanalyzer.ingest.kineto.splitter import UTF8_BOM, NoEventsError, Splitter
from traceanalyzer.ingest.sources import Source


class KinetoImporter:
    """Reads `torch.profiler` exports of PyTorch 1.8 and later, plain or gzipped."""

    format = "kineto"

    def sniff(self, source: Source) -> bool:
        start = source.head.removeprefix(UTF8_BOM).lstrip()
        return bool(re.match(rb"\{\s*[\"}]|\[\s*[\[{\]]", start))

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        reader = Reader(sink)
        with source.open(progress) as stream, _gc_paused():
            splitter = Splitter(stream, Events)
            try:
                for events in splitter:
                    reader.take(events)
            except NoEventsError:
                raise InputError(
                    f"{source.path}: JSON without a traceEvents array; this is not a Chrome trace"
                ) from None
            except (EOFError, zlib.error, OSError) as error:
                raise InputError(
                    f"{source.path}: damaged gzip data ({error}); copy or record the trace again"
                ) from error
        _report_damage(splitter, reader, sink)
        found = _metadata(splitter, sink)
        described = metadata.devices(found)
        if described is not None:
            sink.add("devices", described)
        return metadata.facts(found, reader.finish())


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


def _report_damage(splitter: Splitter[Events], reader: Reader, sink: Sink) -> None:
    if splitter.truncated:
        sink.health("TRC001", "low", "the file ends in the middle of its events; what came after is lost")
    if reader.bad_bytes:
        sink.health("TRC001", "info", "bytes that are no UTF-8 were read as question marks", reader.bad_bytes)
    if dropped := splitter.dropped + reader.misfits:
        example = (splitter.first_dropped or b"").decode("utf-8", "replace") or None
        sink.health(
            "TRC001", "low", "events that are not valid JSON or hold no usable values were dropped", dropped, example
        )


def _metadata(splitter: Splitter[Events], sink: Sink) -> dict[str, Any]:
    """The object around the event array; what cannot be read of it is said in health."""
    if not splitter.header:
        return {}
    trailer = b"}" if splitter.truncated else splitter.trailer
    try:
        found = msgspec.json.decode(readable(splitter.header + b'"traceEvents":[]' + trailer)[0])
    except (msgspec.DecodeError, RecursionError) as error:
        sink.health(
            "TRC001",
            "low",
            "the metadata around the events is not valid JSON; rank and device facts are lost",
            1,
            str(error),
        )
        return {}
    return found if isinstance(found, dict) else {}
