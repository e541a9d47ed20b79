"""The captures of a history that a new one is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from traceanalyzer.errors import InputError, NotJudgedError
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.result.captures.capture import Baseline, Capture
from traceanalyzer.result.history.entry import SERIES, Entry
from traceanalyzer.result.history.trend import series_of
from traceanalyzer.urls import Place, shown_place

MOST = 10
"""So many of the last captures, unless the user says otherwise."""
MAIN = ("main", "master", "trunk")
"""Branches that are followed, unless the user says otherwise: the first that any capture is labelled with."""


def last_captures(
    place: Place, labels: Mapping[str, str], branch: str | None = None, most: int = MOST
) -> list[Capture]:
    """The last captures of one series of a history on its branch, since its level last changed and without noisy ones.

    `labels` choose the series, as far as they are of `SERIES`; captures that are labelled with no branch are all of one. Raises
    InputError where they do not choose one, and NotJudgedError where there is none to compare with.
    """
    shelf = Shelf(place)
    entries = _chosen(shelf.read().entries, labels, place)
    on_branch = _of_branch(entries, branch)
    if not any(entry.unit_ns for entry in on_branch):
        where = f" on the branch {branch}" if branch else ""
        raise NotJudgedError(f"{shown_place(place)}: holds no capture{where} with a unit of work to compare with")
    series = series_of(on_branch)
    kept = [id for id in series.captures[series.stretches[-1].first :] if id not in series.noisy]
    read = msgspec.json.Decoder(Baseline).decode
    return [capture for id in kept[-most:] for capture in read(shelf.capture_bytes(id)).captures]


def _chosen(entries: Sequence[Entry], labels: Mapping[str, str], place: Place) -> list[Entry]:
    asked = {name: labels[name] for name in SERIES if name in labels}
    found = [entry for entry in entries if all(entry.labels.get(name) == value for name, value in asked.items())]
    if entries and not found:
        raise InputError(
            f"{shown_place(place)}: holds no capture with {_words(asked)}; see `traceanalyzer history show`"
        )
    series = {tuple(entry.labels.get(name, "") for name in SERIES) for entry in found}
    if len(series) > 1:
        raise InputError(
            f"{shown_place(place)}: holds {len(series)} series; say which with --label config=NAME or --label project=NAME"
        )
    return found


def _words(labels: Mapping[str, str]) -> str:
    return " and ".join(f"{name}={value}" for name, value in labels.items())


def _of_branch(entries: Sequence[Entry], branch: str | None) -> list[Entry]:
    there = {entry.labels["branch"] for entry in entries if "branch" in entry.labels}
    wanted = branch or next((name for name in MAIN if name in there), None)
    return [entry for entry in entries if wanted is None or entry.labels.get("branch") == wanted]
