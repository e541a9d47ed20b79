"""What the reader met and could not take as it was. Said in health once, at the end of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto.columns import Integers
from traceanalyzer.ingest.formats.kineto.text.decode import Event
from traceanalyzer.vocabulary.health import GRAPHS_HIDDEN, NOT_ALL_READ
from traceanalyzer.vocabulary.levels import INFO, LOW, Severity

_BUILTIN = "<built-in"
_ROUNDING_NS = 1000


class Notes:
    """Counts, with a first example where one helps. `negative` and `no_duration` count durations, `whole_graphs` CUDA
    graphs that stand for the kernels inside."""

    def __init__(self, sink: Sink, ids: Integers) -> None:
        self._sink, self._ids = sink, ids
        self.negative = self.no_duration = self.whole_graphs = 0
        self._unread = self._untimed = 0
        self._first_unread: str | None = None
        self._first_untimed: str | None = None
        self._last_python_end = int(np.iinfo(np.int64).min)
        self._open_frames: list[tuple[int, int | None]] = []

    def unread(self, events: Sequence[Event], why: str = "") -> None:
        """Events that no table has a place for."""
        self._unread += len(events)
        if events and self._first_unread is None:
            self._first_unread = f"{_described(events[0])} {why}".strip()[:200]

    def untimed(self, events: Sequence[Event]) -> None:
        """Events of kinds that are read, and without the time that they need."""
        self._untimed += len(events)
        self._first_untimed = self._first_untimed or _described(events[0])[:200]

    def python_frames(self, end: pa.Array, names: Sequence[str | None], thread: pa.Array) -> None:
        """Look for calls of built-in functions that end with the recording: the profiler closed them when it stopped."""
        ends = end.to_numpy()
        last = max(int(ends.max()), self._last_python_end)
        if last > self._last_python_end:
            self._last_python_end = last
            self._open_frames = [(ended, where) for ended, where in self._open_frames if ended >= last - _ROUNDING_NS]
        for row in np.flatnonzero(ends >= last - _ROUNDING_NS).tolist():
            if (names[row] or "").startswith(_BUILTIN):
                self._open_frames.append((int(ends[row]), thread[row].as_py()))

    def say(self, severity: Severity, message: str, count: int, example: str | None = None) -> None:
        self._sink.health(NOT_ALL_READ, severity, message, count, example)

    def report(self) -> None:
        if self._unread:
            self.say(INFO, "events of kinds that are not read", self._unread, self._first_unread)
        if self._untimed:
            self.say(LOW, "events without a time were left out", self._untimed, self._first_untimed)
        if self.negative:
            self.say(LOW, "negative durations were read as 0", self.negative)
        if self.no_duration:
            self.say(LOW, "complete events without a duration were read as instants", self.no_duration)
        if self.whole_graphs:
            message = "CUDA graphs were recorded as a whole: the kernels inside are hidden, and rules about kernels do not see them"
            self._sink.health(GRAPHS_HIDDEN, LOW, message, self.whole_graphs)
        if self._ids.lost:
            message = "values that should be whole numbers and are not, or are too large, were left out"
            self.say(LOW, message, self._ids.lost, self._ids.first_lost)
        # A thread calls one function at a time: all but one of each thread were over long before.
        if open_frames := len(self._open_frames) - len({thread for _, thread in self._open_frames}):
            message = "Python frames that the profiler closed only when it stopped look longer than they were"
            self.say(INFO, message, open_frames)


def _described(event: Event) -> str:
    said = [("phase", event.ph or None), ("category", event.cat), ("name", event.name)]
    return ", ".join(f"{what} {value}" for what, value in said if value is not None)
