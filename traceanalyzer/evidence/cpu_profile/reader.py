"""Reads a CPU profile of any form into its tables, and says what was met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.cpu_profile.reading import chrome, content, folded, mojo, perf_script, pprof, speedscope
from traceanalyzer.evidence.cpu_profile.reading.rows import NO_TIME, About, Rows, checked_weight
from traceanalyzer.evidence.cpu_profile.tables import ABOUT, TABLES
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.terminal import printable
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import LOW

_READ: dict[str, Callable[[Source, Progress, Rows], About]] = {
    content.SPEEDSCOPE: speedscope.read,
    content.PYSPY: chrome.read_pyspy,
    content.VIZTRACER: chrome.read_viztracer,
    content.PERF: perf_script.read,
    content.AUSTIN: folded.read_austin,
    content.MOJO: mojo.read,
    content.PPROF: pprof.read,
    content.FOLDED: folded.read_folded,
}
_MOST_NS = 1 << 62


def read_profile(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError for what is damaged as a whole, has no samples, or is a profile of something else."""
    form = content.form_of(source)
    if form is None:
        raise InputError(f"{source.path}: no CPU profile of a form that is read")
    rows = Rows()
    with without_collection():
        try:
            about = _READ[form](source, progress, rows)
            thread, time, weight, stack = rows.columns()
        except OverflowError as error:
            raise InputError(f"{source.path}: numbers that no recording has; record the profile again") from error
    if not len(thread) or not weight.any():
        raise InputError(f"{source.path}: a CPU profile without any sample; record it while the program works")
    if not checked_weight(weight) or (about.timed and (abs(time) > _MOST_NS).any()):
        raise InputError(f"{source.path}: times that no recording has; record the profile again")
    base, span = _times(about, time, weight)
    if base is not None and about.span_ns is None:
        # From the first sample on: what is written is small, and the marks say since when.
        shift = int(time.min())
        time, base, span = time - shift, base + shift, (0, span[1] - shift) if span else None
    specs = {spec.name: spec for spec in TABLES}
    for name, table in rows.tables((thread, time, weight, stack)):
        schema = pa.schema([field for field in specs[name].schema if field.name != "rank"])
        sink.add(name, table.select(schema.names).cast(schema))
    sink.add(ABOUT.name, _about(about, base is not None and about.timed))
    _say(about, sink)
    return Marks(
        producer=printable(about.producer),
        pids=sorted({one.pid for one in rows.threads if one.pid is not None}),
        clock="none" if base is None else "epoch",
        clock_base_ns=base,
        recorded_ns=span,
    )


def _times(about: About, time: np.ndarray, weight: np.ndarray) -> tuple[int | None, tuple[int, int] | None]:
    """What to add for ns since the epoch, None where nobody knows, and from when to when was sampled."""
    if about.span_ns is not None:
        low, high = about.span_ns
        return low, (0, high - low)
    if not about.timed or (time == NO_TIME).any():
        return None, None
    last = weight if about.unit == "ns" else 1
    return about.clock_base_ns, (int(time.min()), int((time + last).max()))


def _about(about: About, epoch: bool) -> pa.Table:
    return pa.table(
        {
            "form": [about.form],
            "producer": [printable(about.producer)],
            "unit": [about.unit],
            "period": pa.array([about.period_ns], pa.int64()),
            "timed": [about.timed],
            "epoch": [epoch],
            "stretches": [about.stretches],
            "idle_kept": pa.array([about.idle_kept], pa.bool_()),
            "ordered": [about.ordered],
            "lost": pa.array([about.lost], pa.string()),
        }
    ).cast(pa.schema([field for field in ABOUT.schema if field.name != "rank"]))


def _say(about: About, sink: Sink) -> None:
    """What was met, into health."""
    if about.skipped:
        sink.health(NOT_ALL_READ, LOW, "parts of a CPU profile could not be read", about.skipped, about.skipped_example)
    for words, count in about.notes:
        sink.health(NOT_ALL_READ, LOW, f"left out of a CPU profile: {words}", count)
    if about.lost:
        sink.health(NOT_RECORDED, LOW, f"the CPU profile lost its beginning: {about.lost}")
