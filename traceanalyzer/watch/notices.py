"""Telling somebody of a verdict, once: a command that is run, or a page of the web that is called."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from traceanalyzer.files import replacing
from traceanalyzer.records import dataclass
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Series, Shift, Trend, name_of, shift_words

_PATIENCE_S = 30.0
_BESIDE = 2
"""A change that moves by so many captures, as more of them come, is still the same one."""


@dataclass(frozen=True)
class Notices:
    """Whom to tell: a `command` that gets the notice as JSON on its standard input, a `webhook` to which it is posted. `verdicts` are
    those that are told."""

    command: Sequence[str]
    webhook: str | None
    verdicts: Sequence[str]


@dataclass(frozen=True)
class Notice:
    """A change of a series that nobody was told of. `key` is the same however often it is told."""

    series: Series
    shift: Shift
    report: str | None
    first: Entry | None = None
    """The capture with which it began."""

    @property
    def key(self) -> str:
        return sha256(f"{name_of(self.series)}\n{self.shift.after}".encode()).hexdigest()[:32]

    def document(self) -> dict[str, Any]:
        """What is told."""
        return {
            "id": self.key,
            "series": self.series.labels,
            "verdict": self.shift.verdict,
            "text": f"{name_of(self.series)}: {shift_words(self.shift, self.first)}.",
            "share": self.shift.share,
            "before_ns": self.shift.before_ns,
            "after_ns": self.shift.after_ns,
            "commits": list(self.shift.commits),
            "report": self.report,
        }


class Told:
    """Which changes were told, in files of a folder: by series the captures with which they began."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "told"

    def missing(self, trend: Trend, entries: Sequence[Entry], verdicts: Sequence[str]) -> Iterator[Notice]:
        """The last change of each series, where it is none that was told."""
        by_id = {entry.id: entry for entry in entries}
        for series in trend.series:
            if not series.shifts or series.shifts[-1].verdict not in verdicts:
                continue
            shift = series.shifts[-1]
            at = series.captures.index(shift.after)
            near = series.captures[max(at - _BESIDE, 0) : at + _BESIDE + 1]
            if not set(near) & set(self._of(series)):
                yield Notice(series, shift, by_id[shift.after].report, by_id[shift.after])

    def remember(self, notice: Notice) -> None:
        """That it was told. Raises OSError."""
        known = [*self._of(notice.series), notice.shift.after]
        with replacing(self._folder / _file_of(notice.series)) as file:
            file.write(json.dumps(known).encode())

    def _of(self, series: Series) -> list[str]:
        with suppress(OSError, ValueError):
            return [str(id) for id in json.loads((self._folder / _file_of(series)).read_bytes())]
        return []


def _file_of(series: Series) -> str:
    return sha256(name_of(series).encode()).hexdigest()[:32]


def send(notice: Notice, notices: Notices) -> None:
    """Tell it. Raises OSError where nobody heard."""
    body = json.dumps(notice.document()).encode()
    if notices.command:
        try:
            done = subprocess.run(notices.command, input=body, timeout=_PATIENCE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{notices.command[0]}: not done after {_PATIENCE_S:.0f} s") from error
        if done.returncode:
            raise OSError(f"{notices.command[0]}: exit code {done.returncode}")
    if notices.webhook:
        headers = {"Content-Type": "application/json", "Idempotency-Key": notice.key}
        request = urllib.request.Request(notices.webhook, body, headers)
        with urllib.request.urlopen(request, timeout=_PATIENCE_S):
            pass
