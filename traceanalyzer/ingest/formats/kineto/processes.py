"""Who is who in a Chrome trace: names of processes and threads, and the process that the GPU's rows belong to."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto.gpu_tracks import PROCESS_LABELS, GpuTracks
from traceanalyzer.ingest.formats.kineto.text.decode import Event, plain

PROCESS_NAME, THREAD_NAME = "process_name", "thread_name"


class Processes:
    """Names as far as they came: `threads` holds those of threads by (process, thread).

    `calls` counts API calls of CUDA and HIP, `gpu_tracks` knows which tracks are streams, `hosts` are
    processes that ran on the host by the categories of their events.
    """

    def __init__(self, sink: Sink, ids: col.Integers) -> None:
        self._sink, self._ids = sink, ids
        self._names: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.calls = 0
        self.gpu_tracks = GpuTracks()
        self._calls: Counter[int] = Counter()
        self._ranges: set[int] = set()
        self.hosts: set[int] = set()

    def take(self, events: list[Event]) -> None:
        """Metadata events, of which only names and labels say something."""
        labelled = [e for e in events if e.name == PROCESS_LABELS and e.args]
        for event, pid in zip(labelled, self._ids.identities([e.pid for e in labelled]).to_pylist(), strict=True):
            assert event.args is not None
            if pid is not None:
                self.gpu_tracks.label(pid, plain(event.args.labels))
        told = ((e, plain(e.args.name)) for e in events if e.name in (PROCESS_NAME, THREAD_NAME) and e.args)
        named = [(event, name) for event, name in told if isinstance(name, str)]
        process = self._ids.identities([e.pid for e, _ in named]).to_pylist()
        thread = self._ids.identities([e.tid for e, _ in named]).to_pylist()
        for (event, name), pid, tid in zip(named, process, thread, strict=True):
            if pid is not None and event.name == PROCESS_NAME:
                self._names[pid] = name
            elif pid is not None and tid is not None:
                self.threads[pid, tid] = name

    def name(self, process: int) -> str | None:
        """The name of a process; one that has a name for an id goes by that."""
        return self._names.get(process, self._ids.names.get(process))

    def call(self, process: pa.Array, told: bool = True) -> None:
        """Note the processes of API calls, one value a call; `told` says that their category tells it."""
        self.calls += len(process)
        for found, count in _counted(process):
            self._calls[found] += count
            if told:
                self.hosts.add(found)

    def work(self, process: pa.Array, told: bool = True) -> None:
        """Note the processes of host ranges; `told` says that their category tells it."""
        found = [one for one, _ in _counted(process)]
        self._ranges.update(found)
        if told:
            self.hosts.update(found)

    def finish(self) -> int | None:
        """Hand on processes and threads; return the process with most API calls, which the GPU rows belong to."""
        if self.threads:
            process, thread = zip(*self.threads, strict=True)
            names = list(self.threads.values())
            self._sink.add("threads", pa.table({"process": list(process), "thread": list(thread), "name": names}))
        if found := sorted({*self._calls, *self._ranges}):
            self._sink.add(
                "processes",
                pa.table(
                    {
                        "process": pa.array(found, pa.int64()),
                        "pid": pa.array([None if p in self._ids.names else p for p in found], pa.int64()),
                        "name": pa.array([self.name(p) for p in found], pa.string()),
                    }
                ),
            )
        return min(self._calls, key=lambda p: (-self._calls[p], p)) if self._calls else None


def _counted(process: pa.Array) -> list[tuple[int, int]]:
    """The distinct ids and how often each occurs; mostly there is one."""
    if len(process) and not process.null_count and ((ids := process.to_numpy()) == ids[0]).all():
        return [(int(ids[0]), len(ids))]
    return [(found["values"], found["counts"]) for found in pc.value_counts(process.drop_null()).to_pylist()]
