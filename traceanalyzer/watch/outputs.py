"""What a watcher keeps for people and machines: a page of all captures, metrics, and a line of JSON for each capture."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from traceanalyzer.files import replacing
from traceanalyzer.records import dataclass
from traceanalyzer.render.history.trend_prometheus import render_trend_metrics
from traceanalyzer.report.trend_page import render_trend_html
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Series, Trend, name_of

INDEX = "index.html"
_REPORT = re.compile(r"[0-9a-f]{32}\.html")


@dataclass(frozen=True)
class Kept:
    """The files that a watcher writes: `metrics` and `log` only where they are given. Of reports the `most` newest are kept."""

    reports: Path
    metrics: Path | None
    log: Path | None
    most: int | None


def write_outputs(kept: Kept, trend: Trend, entries: Sequence[Entry]) -> None:
    """Bring all of them up to date with a history. Raises OSError."""
    _remove_old(kept, entries)
    with replacing(kept.reports / INDEX) as file:
        file.write(render_trend_html(trend, _without_gone(kept, entries), title="Captures"))
    if kept.metrics is not None:
        with replacing(kept.metrics) as file:
            file.write(render_trend_metrics(trend, entries).encode())
    if kept.log is not None:
        _append(kept.log, entries, states_of(trend))


def states_of(trend: Trend) -> dict[str, Series]:
    """The series of each of its captures, also of those that could not be judged."""
    return {id: series for series in trend.series for id in (*series.captures, *(one.id for one in series.left_out))}


def _remove_old(kept: Kept, entries: Sequence[Entry]) -> None:
    """Remove reports beyond the newest; of what lies in the folder only what has the name of a report of the history."""
    if kept.most is None:
        return
    newest = [f"{entry.id}.html" for entry in entries[-kept.most :]]
    ours = {f"{entry.id}.html" for entry in entries}
    for file in kept.reports.iterdir():
        if _REPORT.fullmatch(file.name) and file.name in ours and file.name not in newest:
            file.unlink(missing_ok=True)


def _without_gone(kept: Kept, entries: Iterable[Entry]) -> list[Entry]:
    """The entries as the page beside the reports has them: a link to a report is its name, and none where it is gone."""
    there = {file.name for file in kept.reports.iterdir()}
    return [replace(entry, report=name if (name := f"{entry.id}.html") in there else None) for entry in entries]


def _append(log: Path, entries: Sequence[Entry], series: dict[str, Series]) -> None:
    """Add the lines that are missing: each capture has one, whoever was stopped when."""
    written = _ids(log)
    lines = [_line(entry, series.get(entry.id)) for entry in entries if entry.id not in written]
    if lines:
        with log.open("ab") as file:
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())


def _ids(log: Path) -> set[str]:
    """The captures that have a line; what was written of one that is not whole is cut off."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        log.parent.mkdir(parents=True, exist_ok=True)
        return set()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(log, len(whole))
    found = set()
    for line in whole.splitlines():
        with suppress(msgspec.DecodeError, KeyError, TypeError):
            found.add(msgspec.json.decode(line)["id"])
    return found


def _line(entry: Entry, series: Series | None) -> bytes:
    said = {
        "id": entry.id,
        "time_ns": entry.time_ns,
        "name": entry.name,
        "labels": entry.labels,
        "series": name_of(series) if series else None,
        "unit": entry.unit,
        "unit_ns": entry.unit_ns,
        "headline": entry.headline,
        "unjudged": entry.unjudged,
        "findings": [{"rule": one.rule, "severity": one.severity, "ns": one.ns} for one in entry.findings],
        "report": entry.report,
    }
    return msgspec.json.encode(said) + b"\n"
