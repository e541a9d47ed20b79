"""From what was found in a capture to its entry in a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from traceanalyzer.model.trace import Input
from traceanalyzer.result.captures.capture import Capture
from traceanalyzer.result.document import Device, Result
from traceanalyzer.result.history.entry import Entry, entry_of
from traceanalyzer.version import VERSION

EPOCH_NS = 10**18
"""Times in the tables beyond this are of the epoch."""


def id_of(capture: Capture, result: Result | None) -> str:
    """What stands for the content of a capture: the files that were read, evidence too, else what a baseline says of it."""
    digests = [one.sha256 for one in result.inputs] + [one.sha256 for one in result.evidence] if result else []
    if digests:
        content = "\n".join(sorted(digests)).encode()
    else:
        content = msgspec.json.encode(capture)
    return sha256(content).hexdigest()[:32]


def recorded_ns(result: Result, inputs: Iterable[Input]) -> int | None:
    """When the recording of the first input that tells it began, in ns since 1970; None where none does."""
    starts = {one.rank: one.start_ns for one in result.recordings}
    for given in inputs:
        start = starts.get(given.rank)
        if start is None and len(starts) == 1:
            start = next(iter(starts.values()))
        if start is not None and (given.clock_base_ns is not None or start > EPOCH_NS):
            return start + (given.clock_base_ns or 0)
    return None


def history_entry(
    capture: Capture,
    result: Result | None,
    *,
    time_ns: int,
    labels: Mapping[str, str],
    report: str | None = None,
) -> Entry:
    """The entry of a capture; without a result, as of a baseline file, it is not known how much GPU time was recorded."""
    return entry_of(
        capture,
        id=id_of(capture, result),
        time_ns=time_ns,
        labels=labels,
        tool=result.tool["version"] if result else VERSION,
        gpu_ns=sum(device.window_ns for device in _devices(result)),
        report=report,
    )


def _devices(result: Result | None) -> list[Device]:
    return result.devices if result else []
