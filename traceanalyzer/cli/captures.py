"""Reading captures, one place after another, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.cli.common import counting, reading

if TYPE_CHECKING:
    from traceanalyzer.analysis.captures import OpenRun, Run
    from traceanalyzer.config import Config
    from traceanalyzer.ingest.how import How

History = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="PLACE",
        help="Compare with the last captures of a history (see `history add`) since its level last changed.",
        show_default=False,
    ),
]
Last = Annotated[int, typer.Option("--last", min=1, metavar="N", help="So many of the history's captures.")]
Branch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Of which branch.", show_default="main, master or trunk"),
]
OfSeries = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="Of which series, where the history holds several: config=NAME or project=NAME; may be repeated.",
        show_default=False,
    ),
]


@contextmanager
def run_of(place: Path, config: Config, how: How, shown: bool = True) -> Iterator[OpenRun]:
    """What a place holds, with its events until the end of the context; `shown` says that a page of them will be made."""
    from traceanalyzer.analysis.captures import opened_run

    with ExitStack() as bars:

        def count(what: str, total: int) -> Callable[[], None]:
            bars.close()  # A terminal shows one bar at a time.
            return bars.enter_context(counting(what, total)) if total > 1 else lambda: None

        progress = bars.enter_context(reading())
        with opened_run(place, config, replace(how, progress=progress), count, shown) as run:
            bars.close()
            yield run


def read_run(place: Path, config: Config, how: How) -> Run:
    """The same without events: only small documents stay in memory."""
    from traceanalyzer.analysis.captures import Run

    with run_of(place, config, how, shown=False) as run:
        return Run(run.place, run.captures, run.result, run.recorded_ns, run.kernel_times)


def last_of_history(place: Path, labels: list[str] | None, branch: str | None, most: int) -> Run:
    """The last captures of a history as one run."""
    from traceanalyzer.analysis.captures import Run
    from traceanalyzer.history.baseline import last_captures
    from traceanalyzer.history.labels import given_labels

    return Run(place, last_captures(place, given_labels(labels or []), branch, most))
