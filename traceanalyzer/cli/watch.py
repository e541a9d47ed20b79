"""`traceanalyzer watch`."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import (
    Disabled,
    Jobs,
    MaxSize,
    Redacted,
    RuleFolders,
    Thresholds,
    choice,
    configuration,
    refuse_nan,
    size_limit,
)
from traceanalyzer.cli.history import Labels
from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass
from traceanalyzer.urls import Place

EPILOG = (
    "Exit codes: 0 done (--once) · 2 wrong usage, nothing to watch, or not all could be done (--once) · "
    "128 + n stopped by signal n."
)
On = choice("On", ("real", "method", "hardware", "noise"))


def watch(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL", help="Where captures land: files, or folders of a job's ranks.", show_default=False
        ),
    ],
    history: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="The history that they go into: a folder or a URL. It is made.", show_default=False
        ),
    ],
    reports: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="A folder for their reports and an index.html. It is made.", show_default=False
        ),
    ],
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Metrics for Prometheus, in the folder of node_exporter's textfile collector.",
            show_default="none",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file that gets a line of JSON for each capture.", show_default="none"),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="Run on a verdict, with the verdict as JSON on standard input.", show_default="none"
        ),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Post that JSON there on a verdict.", show_default="none")
    ] = None,
    on: Annotated[
        list[On] | None,  # type: ignore[valid-type]
        typer.Option(
            "--on", help="The verdicts that are told; may be repeated.", show_default="real, method, hardware"
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep the newest N reports and remove older ones. The history keeps all.",
            show_default="all",
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(callback=refuse_nan, min=0.1, metavar="SECONDS", help="How often to look.")
    ] = 30,
    settle: Annotated[
        float,
        typer.Option(
            callback=refuse_nan,
            min=0,
            metavar="SECONDS",
            help="A capture is taken when it has not changed for so long.",
        ),
    ] = 10,
    give_up: Annotated[
        float,
        typer.Option(
            "--give-up",
            callback=refuse_nan,
            min=0,
            metavar="SECONDS",
            help="One that is damaged or cut short is waited for so long, then taken as it is.",
        ),
    ] = 600,
    once: Annotated[
        bool, typer.Option("--once", help="End when all is taken that lies there, as a cron job does.")
    ] = False,
    labels: Labels = None,
    limit_mb: Annotated[
        float,
        typer.Option(
            "--limit-mb",
            callback=refuse_nan,
            metavar="N",
            min=0.1,
            max=1000,
            help="A report is at most so large, in MB.",
        ),
    ] = 10,
    redact: Redacted = True,
    thresholds: Thresholds = None,
    rules: RuleFolders = None,
    disabled: Disabled = None,
    jobs: Jobs = None,
    max_size: MaxSize = None,
) -> None:
    """Take captures as they land: judge each once, write its report, and follow them in a history.

    Only whole captures are taken. A broken one is told of and left out, and taken if it changes. The watcher can be stopped at any
    time and started again, and several may share a place. It writes to the history, the reports and what
    you name, and never to the captures.

    Example: traceanalyzer watch /traces --history perf/history --reports /var/www/gpu --metrics /var/lib/node_exporter/gpu.prom

    Example: traceanalyzer watch s3://bucket/traces --history s3://bucket/history --reports out --once
    """
    from traceanalyzer.history.labels import given_labels
    from traceanalyzer.ingest.how import How
    from traceanalyzer.watch.notices import Notices
    from traceanalyzer.watch.outputs import Kept
    from traceanalyzer.watch.taking import Task
    from traceanalyzer.watch.watching import Watch, Watcher

    config = configuration(thresholds, rules, disabled)
    given_labels(labels or [])  # What is none is said before anything is taken.
    places = _places(place, history, reports, [metrics, log])
    task = Task(
        history=places.history,
        reports=places.reports,
        link=places.link,
        labels=labels or [],
        config=config,
        how=How(jobs, None, None, size_limit(max_size)),
        limit_mb=limit_mb,
        redact=redact,
    )
    notices = Notices(
        _command(run), _address(webhook), [str(one) for one in on] if on else ["real", "method", "hardware"]
    )
    kept = Kept(places.reports, *places.files, keep)
    Watcher(Watch(places.watched, task, kept, notices, settle, give_up, every)).run(once)


@dataclass(frozen=True)
class _Places:
    watched: Place
    history: Place
    reports: Path
    files: tuple[Path | None, Path | None]
    link: str


def _places(watched: str, history: str, reports: Path, files: list[Path | None]) -> _Places:
    """All places, resolved; what is written lies apart from what is watched. Raises InputError."""
    from traceanalyzer.files import resolve_place
    from traceanalyzer.model.stores.placing import within
    from traceanalyzer.urls import local_of, shown_place

    local_watched, local_history = local_of(watched), local_of(history)
    folder = resolve_place(local_watched) if local_watched is not None else None
    kept = resolve_place(local_history) if local_history is not None else None
    pages = resolve_place(reports)
    made = [None if one is None else resolve_place(one) for one in files]
    for given, place in zip((history, reports, *files), (kept, pages, *made), strict=True):
        if folder is not None and place is not None and within(place, folder):
            raise InputError(f"{given}: lies in {shown_place(watched)}, which is watched; choose a place outside of it")
    link = f"{os.path.relpath(pages, kept)}/" if kept is not None else ""
    return _Places(folder or watched, kept or history, pages, (made[0], made[1]), link)


def _command(text: str | None) -> list[str]:
    """The words of a command. Raises InputError."""
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise InputError(f"--run: {error}; write it as in a shell") from error
    if text is not None and not words:
        raise InputError("--run: names no command")
    return words


def _address(url: str | None) -> str | None:
    """Where a notice is posted. Raises InputError for what is no page of the web."""
    if url is not None and not re.match(r"https?://[^/]", url):
        raise InputError("--webhook: give a URL that begins with https:// or http://")
    return url


COMMAND = Command("watch", watch, order=56, epilog=EPILOG)
