"""Which page of Nsight Compute a file is, told by its beginning."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Literal

from traceanalyzer.evidence.kernel_counters.reading import csv_pages, text_page
from traceanalyzer.ingest.bytes.source import Source

REPORT = b"NVR\0"
PACKAGE = "ncu_report"
Page = Literal["report", "csv", "text", "log"]


def page_of(source: Source) -> Page | None:
    """What the head shows: a report, a header of CSV, a launch, or at least the profiler's own messages; None for anything else.

    A report is none without the package that reads it: in a folder it is then passed over.
    """
    head = source.head
    if head.startswith(REPORT):
        return "report" if find_spec(PACKAGE) is not None else None
    log = False
    for line in _lines(head):
        if csv_pages.KERNEL in line and csv_pages.header_of(line):
            return "csv"
        if b"Section: " in head and text_page.is_launch(line):
            return "text"
        log = log or line.startswith("==PROF== ")
    return "log" if log else None


def _lines(head: bytes) -> Iterator[str]:
    if b"\0" in head[:4096]:
        return
    if not any(mark in head for mark in (b"Kernel Name", b", Context ", b"==PROF== ")):
        return
    yield from (line.rstrip("\r") for line in head.decode("utf-8-sig", "replace").split("\n"))
