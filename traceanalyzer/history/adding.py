"""From what was found in captures to their entries in a history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from traceanalyzer.analysis.captures import Run
from traceanalyzer.errors import InputError
from traceanalyzer.files import status_of
from traceanalyzer.history.labels import head_of, labels_for
from traceanalyzer.history.paces import paces_of
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.document import Result
from traceanalyzer.result.history.entry import Entry, entry_of
from traceanalyzer.urls import local_of
from traceanalyzer.version import VERSION

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


def labelled(
    run: Run,
    given: Sequence[str],
    time_ns: int | None = None,
    report: str | None = None,
    surroundings: bool = True,
) -> Iterator[tuple[Entry, Capture]]:
    """The captures of a run with their entries. They were recorded at `time_ns` or, without it, when the trace says, else when the
    file was last changed. With `surroundings`, what the pipeline's variables and Git say labels them too. Raises InputError for labels
    that are none."""
    when = time_ns or run.recorded_ns or _changed_ns(run) or _now_ns()
    labels = labels_for(given, when, *((os.environ, head_of(Path())) if surroundings else ({}, None)))
    paces = paces_of(run.kernel_times, run.result.job if run.result else None)
    for capture in run.captures:
        yield (
            entry_of(
                capture,
                id=id_of(capture, run.result),
                time_ns=when,
                labels=labels,
                tool=run.result.tool["version"] if run.result else VERSION,
                gpu_ns=sum(device.window_ns for device in run.result.devices) if run.result else 0,
                report=report,
                paces=paces,
            ),
            capture,
        )


def id_of(capture: Capture, result: Result | None) -> str:
    """What stands for the content of a capture: the files that were read, evidence too, else what a baseline says of it."""
    digests = [one.sha256 for one in result.inputs] + [one.sha256 for one in result.evidence] if result else []
    content = "\n".join(sorted(digests)).encode() if digests else msgspec.json.encode(capture)
    return sha256(content).hexdigest()[:32]


def since_ns(text: str) -> int:
    """A moment, or one so many days or hours before now, as ns since 1970. Raises InputError."""
    if ago := re.fullmatch(r"(\d{1,5})([dh])", text):
        return _now_ns() - int(ago[1]) * (86_400 if ago[2] == "d" else 3_600) * 10**9
    return moment(text, "--since")


def moment(text: str, option: str = "--time") -> int:
    """A time as ns since 1970; one without a zone is UTC. Raises InputError."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: write it as 2026-11-30T02:00Z ({error})") from error
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if time < _EARLIEST:
        raise InputError(f"{option} {text}: no GPU was profiled then; write it as 2026-11-30T02:00Z")
    return int(time.timestamp()) * 10**9 + time.microsecond * 1000


def _changed_ns(run: Run) -> int | None:
    local = local_of(run.place)
    status = status_of(local) if local else None
    return status.st_mtime_ns if status else None


def _now_ns() -> int:
    return int(datetime.now(UTC).timestamp()) * 10**9
