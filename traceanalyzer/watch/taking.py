"""One capture: read, judged, its report written, and put into the history, in this order. So what is in the history has its report,
and a watcher that is killed in between begins with the capture again and finds by its content what it had done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traceanalyzer.analysis.captures import OpenRun, opened_run
from traceanalyzer.arrow import use_little_memory
from traceanalyzer.config import Config
from traceanalyzer.errors import InputError, UnreachableError
from traceanalyzer.files import replacing
from traceanalyzer.history.adding import labelled
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.ingest.how import How
from traceanalyzer.records import dataclass
from traceanalyzer.report.html import render_html
from traceanalyzer.report.page_size import MEGABYTE
from traceanalyzer.report.timeline.selection import ranks_to_show
from traceanalyzer.urls import Place, may_pass

RANKS_SHOWN = 8


@dataclass(frozen=True)
class Task:
    """Where a watcher puts things, and how it makes them. `link` leads from the history to the folder of reports: a path or a URL."""

    history: Place
    reports: Path
    link: str
    labels: Sequence[str]
    config: Config
    how: How
    limit_mb: float
    redact: bool


class NotWholeError(InputError):
    """The capture is damaged, as one is that somebody still writes."""


def take(place: Place, task: Task, damaged: bool) -> str:
    """Judge a capture; the id of its entry in the history. Raises NotWholeError for one that is damaged unless such are taken too,
    InputError for what cannot be read, of which UnreachableError says that this may pass, and OSError."""
    use_little_memory()
    try:
        return _take(place, task, damaged)
    except InputError as error:
        if not isinstance(error, NotWholeError) and may_pass(error):
            raise UnreachableError(str(error)) from error
        raise


def _take(place: Place, task: Task, damaged: bool) -> str:
    shelf = Shelf(task.history)
    with opened_run(place, task.config, task.how, shown=True) as run:
        found = list(labelled(run, task.labels, surroundings=False))
        if damage := next((text for _, one in found for text in one.damage), None) if not damaged else None:
            raise NotWholeError(damage)
        page = _page(run, task)
    for entry, capture in found:
        name = f"{entry.id}.html"
        if page:
            with replacing(task.reports / name) as file:
                file.write(page)
        shelf.add(replace(entry, report=f"{task.link}{name}" if page else None), capture)
    return found[-1][0].id


def _page(run: OpenRun, task: Task) -> bytes:
    """The report; empty for a baseline file, which has no events."""
    if run.result is None or run.tables is None:
        return b""
    parts = [run.parts[at] for at in ranks_to_show(run.result, RANKS_SHOWN)]
    limit = int(task.limit_mb * MEGABYTE)
    return render_html(run.result, run.tables(parts), sections=run.sections, limit=limit, redact=task.redact)
