"""Reads a file of NCCL's records into its tables, and says in health what it cannot tell."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.nccl_records.reading.columns import Wrong, table
from traceanalyzer.evidence.nccl_records.reading.content import source_kind
from traceanalyzer.evidence.nccl_records.reading.inspector import read_inspector
from traceanalyzer.evidence.nccl_records.reading.link_tests import read_link_tests
from traceanalyzer.evidence.nccl_records.reading.recorder import Dump, read_recorder
from traceanalyzer.evidence.nccl_records.tables import DUMPS, INSPECTOR, LINK_TEST, RECORDER
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

_ROWS = 1 << 16
RING = "TORCH_FR_BUFFER_SIZE (before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE)"


def read_records(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError for what is damaged, hostile or none of these files."""
    wrong = Wrong()
    with without_collection():
        kind = source_kind(source)
        if kind == RECORDER:
            marks = _recorder(source, sink, progress, wrong)
        elif kind == INSPECTOR:
            marks = _inspector(source, sink, progress, wrong)
        elif kind == LINK_TEST:
            marks = _link_tests(source, sink, progress, wrong)
        else:
            raise InputError(f"{source.path}: no records of NCCL")
    if wrong.count:
        sink.health(
            NOT_ALL_READ,
            LOW,
            "values of NCCL's records are of a wrong type or impossible, and count as absent",
            wrong.count,
        )
    return marks


def _recorder(source: Source, sink: Sink, progress: Progress, wrong: Wrong) -> Marks:
    dump = read_recorder(source, progress, wrong)
    _add(sink, "nccl_calls", dump.calls)
    _add(sink, "nccl_groups", dump.groups)
    _dump(
        sink,
        source=RECORDER,
        version=dump.version,
        member=dump.member,
        world_size=dump.world_size,
        entries=dump.calls.num_rows,
        lost_beginning=dump.lost_beginning,
        active_only=dump.active_only,
        latest_ns=dump.latest_ns,
    )
    _notes(sink, dump)
    return Marks(
        producer=f"PyTorch flight recorder {dump.version or ''}".strip(),
        rank=dump.member,
        rank_source="content" if dump.member is not None else None,
        world_size=dump.world_size,
        versions={"NCCL": dump.library} if dump.library else {},
        clock="epoch",
        clock_base_ns=0,
        recorded_ns=_span(dump.calls),
    )


def _notes(sink: Sink, dump: Dump) -> None:
    if not dump.recorded:
        sink.health(
            NOT_RECORDED,
            MEDIUM,
            "the dump of the flight recorder holds no calls, only how far each process group had come: which collectives they were, "
            "and where they were called, is not known",
        )
    elif dump.active_only:
        sink.health(
            NOT_RECORDED,
            LOW,
            "the dump of the flight recorder holds nothing that was completed (as with onlyActive): what came before is not judged",
        )
    elif dump.lost_beginning:
        first = min(number for number in dump.calls["entry"].to_pylist() if number is not None)
        sink.health(
            NOT_RECORDED,
            LOW,
            f"the flight recorder's ring lost its beginning: the first call in it is number {first + 1:,}, and what came before is not "
            f"judged; a larger {RING} holds more",
        )


def _inspector(source: Source, sink: Sink, progress: Progress, wrong: Wrong) -> Marks:
    found = read_inspector(source, progress, wrong)
    _add(sink, "nccl_calls", found.calls)
    _add(sink, "nccl_groups", found.groups)
    _dump(
        sink,
        source=INSPECTOR,
        version=found.version,
        member=found.member,
        world_size=found.world_size,
        entries=found.calls.num_rows,
        lost_beginning=True,
        active_only=False,
        latest_ns=found.latest_ns,
    )
    if found.unread:
        sink.health(
            NOT_ALL_READ, LOW, "lines of NCCL Inspector could not be read, or lack their communicator", found.unread
        )
    if found.dropped:
        sink.health(
            NOT_RECORDED,
            LOW,
            "NCCL Inspector overwrote records before they were written; a larger NCCL_INSPECTOR_DUMP_COLL_RING_SIZE keeps them",
            found.dropped,
        )
    span = _span(found.calls)
    return Marks(
        producer=f"NCCL Inspector {found.version or ''}".strip(),
        host=found.host,
        pids=found.pids,
        rank=found.member,
        rank_source="content" if found.member is not None else None,
        world_size=found.world_size,
        clock="epoch" if span else "none",
        clock_base_ns=0 if span else None,
        recorded_ns=span,
    )


def _link_tests(source: Source, sink: Sink, progress: Progress, wrong: Wrong) -> Marks:
    rows, library = read_link_tests(source, progress, wrong)
    _add(sink, "nccl_link_tests", rows)
    bad = sum(1 for count in rows["wrong"].to_pylist() if count)
    if bad:
        sink.health(
            NOT_ALL_READ, MEDIUM, "measurements of nccl-tests gave wrong results: the link or its memory is faulty", bad
        )
    return Marks(producer="nccl-tests", versions={"NCCL": library} if library else {})


def _add(sink: Sink, name: str, rows: pa.Table) -> None:
    for at in range(0, rows.num_rows, _ROWS):
        sink.add(name, rows.slice(at, _ROWS))


def _dump(sink: Sink, **values: str | int | bool | None) -> None:
    sink.add("nccl_dumps", table(DUMPS, {name: [value] for name, value in values.items()}))


def _span(calls: pa.Table) -> tuple[int, int] | None:
    """From the first time to the last."""
    known = [
        time for name in ("created_ns", "started_ns", "completed_ns") for time in calls[name].drop_null().to_pylist()
    ]
    return (min(known), max(known)) if known else None
