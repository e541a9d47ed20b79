"""Reads a page of Nsight Compute into its tables: lines to launches, launches to rows, and what was met into health."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.kernel_counters.reading import csv_pages, report_file, text_page
from traceanalyzer.evidence.kernel_counters.reading.collected import MOST_ALIKE, Collected
from traceanalyzer.evidence.kernel_counters.reading.content import page_of
from traceanalyzer.evidence.kernel_counters.reading.lines import lines_of
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import INFO, LOW, MEDIUM

PRODUCER = "Nsight Compute"
_ERRORS = {
    "ERR_NVGPUCTRPERM": "the user may not read the GPU's counters; run ncu as root, or load the driver with "
    "NVreg_RestrictProfilingToAdminUsers=0",
    "No kernels were profiled": "no kernel was profiled; check --kernel-name, --launch-skip and --profile-from-start",
}


def read_counters(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError where no launch can be read."""
    found = Collected(zlib.crc32(source.head), sink.add)
    damage = None
    with without_collection():
        try:
            if page_of(source) == "report":
                report_file.read_report(source, found)
            else:
                damage = _read_text(source, found, progress)
            left = found.finish()
        except OverflowError as error:
            raise InputError(f"{source.path}: {error}; this is no profile as Nsight Compute writes it") from error
    if not found.count:
        why = damage or "it holds no launch of a kernel; profile again with ncu --set full"
        raise InputError(f"{source.path}: a page of Nsight Compute of which nothing can be read: {why}")
    if damage:
        sink.health(NOT_ALL_READ, MEDIUM, f"counters of kernels: {damage}")
    if left:
        message = f"of a kernel with one grid and block the first {MOST_ALIKE} profiled launches are looked at, the others counted"
        sink.health(NOT_ALL_READ, INFO, message, left)
    if found.odd:
        message = "lines of a page of Nsight Compute are cut off or garbled, and were left out"
        sink.health(NOT_ALL_READ, LOW, message, found.odd, found.example)
    if found.bad:
        sink.health(
            NOT_ALL_READ, LOW, "values of a page of Nsight Compute are no numbers, and count as absent", found.bad
        )
    if not found.metrics:
        message = (
            "the profile of Nsight Compute holds none of the counters that are used here; profile with ncu --set full"
        )
        sink.health(NOT_RECORDED, MEDIUM, message)
    return Marks(producer=PRODUCER, pids=sorted(found.pids))


def _read_text(source: Source, found: Collected, progress: Progress) -> str | None:
    """Read a page of lines; what is wrong with the file, if anything."""
    said: list[str] = []
    with source.open(progress) as stream:
        lines = lines_of(stream)
        for line in lines:
            if csv_pages.KERNEL in line and (header := csv_pages.header_of(line)):
                csv_pages.read_pages(lines, header, found)
                break
            if text_page.is_launch(line) or line.lstrip().startswith("["):
                text_page.read_text(_again(line, lines), found)
                break
            if line.startswith("==ERROR=="):
                said.append(line)
        if stream.damage:
            return stream.damage
    if said and not found.count:
        known = next((words for line in said for mark, words in _ERRORS.items() if mark in line), None)
        return known or said[0].removeprefix("==ERROR==").strip()[:200]
    return None


def _again(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest
