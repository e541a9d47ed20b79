"""From a place that the user names to what is compared of it: a trace, the ranks of a job, a store, or a baseline file is one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.analysis import ReportTables, analyze_parts
from traceanalyzer.analysis.capturing import WORK_TABLES, capture_of
from traceanalyzer.analysis.examine import rules_for
from traceanalyzer.analysis.opening import open_parts
from traceanalyzer.analysis.parts import Part
from traceanalyzer.config import Config
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.how import How
from traceanalyzer.model.stores.store import is_store
from traceanalyzer.model.trace import EPOCH_NS, Input
from traceanalyzer.records import dataclass
from traceanalyzer.redaction.people import file_name
from traceanalyzer.result.captures.baseline_file import is_baseline, read_baseline
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Section
from traceanalyzer.urls import Place, shown_place, url_of
from traceanalyzer.workers import LOCAL

if TYPE_CHECKING:
    from traceanalyzer.result.captures.capture import Capture

Counting = Callable[[str, int], Callable[[], None]]
"""`counting(what, total)` gives the function that is called after each part."""


@dataclass(frozen=True)
class Run:
    """What one place holds: a capture, or as many as a baseline file has. `result` is that of a capture, None for a baseline file.
    `recorded_ns` is when its recording began, in ns since 1970, where the first of its files says that; `kernel_times` what kernels
    take on each GPU, where there are events."""

    place: Place
    captures: list[Capture]
    result: Result | None = None
    recorded_ns: int | None = None
    kernel_times: pa.Table | None = None


@dataclass(frozen=True)
class OpenRun(Run):
    """The same with its events: `parts` by ordinal, of which `tables` shows some; None for a baseline file, which has no events.
    `sections` are what a report of it has besides."""

    parts: Sequence[Part] = ()
    tables: Callable[[Sequence[Part]], ReportTables] | None = None
    sections: Sequence[Section] = ()


@contextmanager
def opened_run(
    place: Place, config: Config, how: How, counting: Counting | None = None, shown: bool = True
) -> Iterator[OpenRun]:
    """Read a place; its events are there until the end of the context. `shown` says that a page of them will be made.

    Raises InputError for what cannot be read, ConfigError for rules that do not fit.
    """
    if url_of(place) is None and is_baseline(Path(place)):
        yield OpenRun(place, read_baseline(Path(place)).captures)
        return
    if how.scheduler not in (None, LOCAL) and not is_store(place):
        raise InputError(
            f"{shown_place(place)}: workers of {how.scheduler} must see its tables; ingest it first, and name the store: "
            f"traceanalyzer ingest {shown_place(place)} -o STORE --scheduler {how.scheduler}"
        )
    rules_for(config)  # What does not fit is said before anything is read.
    with open_parts([place], how) as (parts, executor):

        def count(what: str) -> Callable[[], None]:
            return counting(what, len(parts)) if counting else lambda: None

        found = analyze_parts(
            parts, config, executor, count, (*WORK_TABLES, "kernel_times"), shown=shown, processes=how.jobs
        )
        yield OpenRun(
            place,
            [capture_of(_name(place, parts), found)],
            found.result,
            _recorded_ns(parts[0].input, found.result),
            found.tables.table("kernel_times"),
            found.parts,
            lambda some: ReportTables(some, config, found.tables),
            found.sections,
        )


def _recorded_ns(first: Input, result: Result) -> int | None:
    start = next((one.start_ns for one in result.recordings), None)
    if start is None or (first.clock_base_ns is None and start < EPOCH_NS):
        return None
    return start + (first.clock_base_ns or 0)


def _name(place: Place, parts: Sequence[Part]) -> str:
    """What a capture is called: its file or folder, in letters that can be written anywhere, and without the host that recorded it. A
    store of one file is called what the file was."""
    given = parts[0].input.path if is_store(place) and len(parts) == 1 else shown_place(place)
    text = os.fsencode(given).decode("utf-8", "replace")
    return file_name(text) or text


def check_different(captures: Sequence[Capture]) -> None:
    """Captures that stand for the noise between runs must be different runs. Raises InputError for one that is there twice."""
    seen: dict[str, str] = {}
    for one in captures:
        content = repr(replace(one, name=""))
        if content in seen:
            raise InputError(
                f"{one.name}: is the same run as {seen[content]}; what varies from run to run is only told by different ones"
            )
        seen[content] = one.name
