"""Which tracks of a trace are streams of a GPU, as far as its names and its known operations tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property

import pyarrow as pa

from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto.text.decode import Event
from traceanalyzer.records import dataclass

PROCESS_LABELS = "process_labels"
MOST_TRACKS = 1 << 16
_LABEL = re.compile(r"\s*GPU:? ?(\d{1,9})\s*", re.IGNORECASE)
_STREAM = re.compile(r"\s*stream\s*#?(-?\d{1,18})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Stream:
    """A stream of a GPU; None where the track does not say which."""

    device: int | None
    stream: int | None

    def merged(self, other: Stream) -> Stream:
        """What both say."""
        return Stream(
            self.device if self.device == other.device else None, self.stream if self.stream == other.stream else None
        )


class GpuTracks:
    """Takes known operations and labels of processes in any order; says of a track which stream it is, once all have come."""

    def __init__(self) -> None:
        self._seen: dict[tuple[object, object], Stream] = {}
        self._labels: dict[int, int] = {}

    def see(self, events: Sequence[Event], device: pa.Array, stream: pa.Array) -> None:
        """Known operations and where they ran."""
        # Arrow itself makes a Python object of each number in several steps.
        places = (one.to_pylist() if one.null_count else one.to_numpy().tolist() for one in (device, stream))
        tracks = [e.pid for e in events], [e.tid for e in events]
        for process, thread, *where in dict.fromkeys(zip(*tracks, *places, strict=True)):
            track = process, thread
            if track in self._seen or len(self._seen) < MOST_TRACKS:
                here = Stream(*where)
                self._seen[track] = here.merged(self._seen.get(track, here))

    def label(self, process: int, label: object) -> None:
        """What a process is called beside its name: Kineto says "GPU 0" and "CPU"."""
        if isinstance(label, str) and (found := _LABEL.fullmatch(label)):
            self._labels[process] = int(found[1])

    def any(self) -> bool:
        """Whether there are known operations."""
        return bool(self._seen)

    def known(self, process: int, thread: int | None) -> bool:
        """Whether known operations lie on this track."""
        return (process, thread) in self._tracks

    def of(self, process: int, thread: int | None, name: str | None, hosts: Collection[int]) -> Stream | None:
        """The stream that a thread of this name is; None when it is one of the host. `hosts` are processes that ran on the host.

        A process of the host may have the number of a GPU, as in containers; then only a thread's name makes it a stream.
        """
        named = _STREAM.fullmatch(name or "")
        if process in hosts and not named:
            return None
        if (process, thread) in self._tracks:
            return self._tracks[process, thread]
        device = self._labels.get(process, self._devices.get(process, -1))
        if device == -1:
            return None
        return Stream(device, int(named[1]) if named else thread)

    @cached_property
    def _tracks(self) -> dict[tuple[int | None, int | None], Stream]:
        ids = col.Integers()
        process = ids.identities([pid for pid, _ in self._seen]).to_pylist()  # type: ignore[misc]
        thread = ids.identities([tid for _, tid in self._seen]).to_pylist()  # type: ignore[misc]
        found: dict[tuple[int | None, int | None], Stream] = {}
        for track, stream in zip(zip(process, thread, strict=True), self._seen.values(), strict=True):
            found[track] = stream.merged(found.get(track, stream))
        return found

    @cached_property
    def _devices(self) -> dict[int | None, int | None]:
        """The device of each process whose known operations ran on one; None where they ran on several."""
        found = defaultdict(set)
        for (process, _), stream in self._tracks.items():
            found[process].add(stream.device)
        return {process: next(iter(devices)) if len(devices) == 1 else None for process, devices in found.items()}
