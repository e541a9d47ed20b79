"""Reads a log of GPUs into its table: content to samples, samples to rows, and what was met into health."""

from __future__ import annotations

import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.gpu_log.reading.content import writing_of
from traceanalyzer.evidence.gpu_log.reading.interleaved import gpus_in_rows
from traceanalyzer.evidence.gpu_log.reading.rows import Notes, Samples, tables_of
from traceanalyzer.evidence.gpu_log.reading.smi import without_header
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import INFO, LOW, MEDIUM

_MOST_GPUS = 1024
_MOST_NAMED = 8
_STEP_NS = 1_000_000
"""How exactly the slowest of these tools writes times: ms."""


def read_log(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError for what holds no sample that can be read."""
    writing = writing_of(source.head)
    if writing is None or writing.read is None:
        raise without_header(source)
    notes = Notes()
    with source.open(progress) as stream:
        content = _plain(stream.read())
    with without_collection():
        pieces = [gpus_in_rows(piece, notes) for piece in writing.read(source, content, notes) if len(piece)]
    del content
    if not pieces:
        raise InputError(
            f"{source.path}: a log of GPUs without a sample that can be read; let it run longer, or record it again"
        )
    clocks = {piece.clock for piece in pieces}
    if len(clocks) > 1:
        raise InputError(
            f"{source.path}: its times are of different kinds ({', '.join(sorted(clocks))}); give each log by itself"
        )
    name = source.path.name
    _say(notes, pieces, sink)
    for piece in pieces:
        for table in tables_of(piece, name):
            sink.add("gpu_log_samples", table)
    time = np.concatenate([piece.time for piece in pieces])
    (clock,) = clocks
    uuids = sorted({uuid for piece in pieces for uuid in _told(piece, "uuid")})[:_MOST_GPUS]
    # An exporter names its node or its pod, which a program in a container does not: ids tell better.
    hosts = set() if uuids else {host for piece in pieces for host in _told(piece, "host")}
    return Marks(
        producer=pieces[0].tool,
        host=next(iter(hosts)) if len(hosts) == 1 else None,
        gpus=tuple(sorted({form for uuid in uuids for form in (uuid, uuid.removeprefix("GPU-"))})),
        clock=clock,
        clock_base_ns=0 if clock == "epoch" else None,
        clock_error_ns=None if clock == "none" else _STEP_NS,
        recorded_ns=(int(time.min()), int(time.max())),
    )


def _plain(content: bytes) -> bytes:
    """The content as UTF-8 whatever it is: what is none of it are single letters, such as a degree sign."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace").encode()
    return content


def _told(piece: Samples, what: str) -> set[str]:
    column = piece.who.get(what)
    return {text for text in column.dictionary.to_pylist() if text} if column is not None else set()


def _say(notes: Notes, pieces: list[Samples], sink: Sink) -> None:
    if notes.lines:
        sink.health(
            NOT_ALL_READ, LOW, "lines of a log of GPUs could not be read and are left out", notes.lines, notes.example
        )
    if notes.values:
        sink.health(
            NOT_ALL_READ, LOW, "values of a log of GPUs are no numbers and are left out", notes.values, notes.value
        )
    if notes.cut:
        sink.health(
            NOT_ALL_READ, INFO, "the last line of a log of GPUs is cut, as when its logger is ended, and is left out"
        )
    for said in notes.said:
        sink.health(NOT_RECORDED, MEDIUM if "no times" in said else LOW, f"a log of GPUs: {said}")
    if notes.unknown:
        names = ", ".join(sorted(notes.unknown)[:_MOST_NAMED])
        sink.health(NOT_RECORDED, INFO, "fields of a log of GPUs that are not used here", len(notes.unknown), names)
