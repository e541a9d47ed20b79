"""Sorts the events of a Chrome trace into event tables, by phase and category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto import copies
from traceanalyzer.ingest.formats.kineto.categories import (
    API_CATEGORIES,
    GPU_KINDS,
    HOST_CATEGORIES,
    NO_WORK,
    OVERHEAD,
    STREAM_WAITS,
    usual,
)
from traceanalyzer.ingest.formats.kineto.counters import Counters
from traceanalyzer.ingest.formats.kineto.extras import Extra, extras
from traceanalyzer.ingest.formats.kineto.group_ranks import GroupRanks
from traceanalyzer.ingest.formats.kineto.notes import Notes
from traceanalyzer.ingest.formats.kineto.phases import BeginEnd
from traceanalyzer.ingest.formats.kineto.processes import Processes
from traceanalyzer.ingest.formats.kineto.text.decode import Args, Event, Events, Number, Times
from traceanalyzer.ingest.formats.kineto.tracks import Tracks
from traceanalyzer.ingest.formats.kineto.vendors import Vendors, by_category
from traceanalyzer.ingest.rows import classify

MEMORY_INSTANT = "[memory]"
SPAN = "Trace"
"""The category of the profiler's own span; when its window ends, it has also stopped, which takes long after a long recording."""
# Instants that bound the recording and say nothing of the work in it.
BOUNDS = ("Iteration Start", "Record Window End")
# Arrows between events; correlation ids say the same.
FLOWS = frozenset("stf")
# What the operators of sends and receives note: their kernel may hold several, and then says nothing.
POINT_TO_POINT = frozenset({"send", "recv"})
DTYPE_BYTES = {
    "byte": 1, "char": 1, "bool": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "half": 2, "bfloat16": 2, "float16": 2, "short": 2, "int16": 2,
    "float": 4, "float32": 4, "int": 4, "int32": 4,
    "double": 8, "float64": 8, "long": 8, "int64": 8,
}  # fmt: skip

# The ranks of a job run the same kernels.
_class_of_kernel = lru_cache(maxsize=1 << 16)(classify.kernel_class)


class Reader:
    """Takes the events chunk by chunk. What only the whole file can tell waits, in a compact form, for `finish`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.recorded_ns: tuple[int, int] | None = None
        """The profiler's own span, once all events have been taken."""
        self._ids = col.Integers()
        self._notes = Notes(sink, self._ids)
        self._vendors = Vendors()
        self._processes = Processes(sink, self._ids)
        self._tracks = Tracks(sink, self._ids, self._processes, self._vendors, self._notes)
        self._ranges = BeginEnd(self._ids, self._spans, self._notes)
        self._counters = Counters(sink, self._ids, self._notes)
        self._kernels = col.Vocabulary("name", **{"class": _class_of_kernel})
        self._copies = col.Vocabulary(
            "name", copy_kind=copies.copy_kind, src_memory=copies.source_memory, dst_memory=copies.target_memory
        )
        self._groups = GroupRanks()
        self._plain = col.Vocabulary("name")
        self._api = col.Vocabulary("raw_name", name=classify.plain_api_name, **{"class": classify.api_class})
        self._operators = col.Vocabulary("name", category=_category_of_operator, arguments=col.with_arguments)

    def take(self, events: Events) -> None:
        self._notes.negative += events.negative
        complete: defaultdict[str | None, list[int]] = defaultdict(list)
        others: defaultdict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(events.events):
            phase = event.ph
            if phase == "X":
                complete[event.cat].append(row)
            elif phase not in FLOWS:
                others["B" if phase in BeginEnd.PHASES else phase].append(row)
        for category, rows in complete.items():
            self._complete(category, events, rows)
        for phase, rows in others.items():
            self._other(phase, events, rows)

    def _complete(self, category: str | None, events: Events, rows: list[int]) -> None:
        """Events with a start and a duration."""
        rows = [] if usual(category) in NO_WORK and category != SPAN else self._timed(events, rows)
        if not rows:
            return
        found = list(map(events.events.__getitem__, rows))
        at = np.fromiter(rows, np.int64, len(rows))
        duration = events.duration[at]
        times = col.span(events.start[at], duration)
        self._notes.no_duration += sum(found[row].dur is None for row in np.flatnonzero(duration == 0).tolist())
        self._spans(category, found, times, extras(events, rows) if category is None else None)

    def _spans(
        self, category: str | None, events: list[Event], times: dict[str, pa.Array], extra: list[Extra] | None = None
    ) -> None:
        """Events of one category and their times, however they were written; `extra` where there is no category."""
        known = usual(category)
        if category == SPAN:
            low, high = pc.min(times["start_ns"]).as_py(), pc.max(times["end_ns"]).as_py()
            before = self.recorded_ns or (low, high)
            self.recorded_ns = min(before[0], low), max(before[1], high)
        if known in NO_WORK:
            return
        if known in GPU_KINDS:
            self._gpu_ops(GPU_KINDS[known], events, times)
        elif known in API_CATEGORIES:
            self._api_calls(events, times)
        elif known in HOST_CATEGORIES:
            self._host_ranges(HOST_CATEGORIES[known], events, times)
        elif known == OVERHEAD:
            self._overheads(events, times)
        elif known == STREAM_WAITS:
            self._stream_waits(events, times)
        elif device := by_category(known):
            self._vendors.met(device, len(events))
        else:
            self._tracks.take(events, times, extra)

    def _other(self, phase: str, events: Events, rows: list[int]) -> None:
        """Events of all other phases, none of which is frequent in a trace of PyTorch."""
        if phase == "M":
            self._processes.take([events.events[row] for row in rows])
            return
        # Some writers end their list with an empty event.
        rows = self._timed(events, [row for row in rows if events.events[row] != _EMPTY])
        if not rows:
            return
        found, start = [events.events[row] for row in rows], events.start[np.array(rows)]
        if phase == "C":
            self._counters.take(found, start, extras(events, rows))
        elif phase == "B":
            self._ranges.take(found, start, extras(events, rows))
        elif phase in ("i", "I"):
            self._instants(found, start)
        else:
            self._notes.unread(found)

    def _instants(self, events: list[Event], time: Times) -> None:
        memory = np.array([e.name == MEMORY_INSTANT for e in events])
        if memory.any():
            self._memory_events([e for e in events if e.name == MEMORY_INSTANT], time[memory])
        self._notes.unread([e for e in events if not (e.name or "").startswith((MEMORY_INSTANT, *BOUNDS))])

    def _timed(self, events: Events, rows: list[int]) -> list[int]:
        """Those of the events that have a time."""
        if events.timed.all() or events.timed[rows].all():
            return rows
        self._notes.untimed([events.events[row] for row in rows if not events.timed[row]])
        return [row for row in rows if events.timed[row]]

    def _gpu_ops(self, kind: str, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        vocabulary = {"kernel": self._kernels, "memcpy": self._copies}.get(kind, self._plain)
        data = {
            **times,
            **vocabulary.columns([e.name for e in events]),
            "kind": col.constant(kind, len(events)),
            "device": self._ids.column([a.device for a in args], col.INT32, lambda: [e.pid for e in events]),
            "context": self._ids.column([a.context for a in args]),
            "stream": self._ids.streams([a.stream for a in args], lambda: [e.tid for e in events]),
            "correlation": self._ids.column([a.correlation for a in args]),
            "external_id": self._external_ids(args),
        }
        if kind == "kernel":
            data |= {
                "graph_id": self._ids.nonzero([a.graph_id for a in args]),
                "graph_node_id": self._ids.nonzero([a.graph_node_id for a in args]),
                "grid": col.triples([a.grid for a in args]),
                "block": col.triples([a.block for a in args]),
                "registers": self._ids.column([a.registers for a in args], col.INT32),
                "shared_memory": self._ids.column([a.shared_memory for a in args]),
                "occupancy": col.shares([a.occupancy for a in args]),
            }
            if described := [a for a in args if a.collective is not None]:
                collective = np.array([a.collective is not None for a in args])
                data["class"] = _with_communication(data["class"], collective)
                where = pa.table(data).select(["start_ns", "end_ns", "device", "stream", "correlation"])
                self._collectives(where.filter(pa.array(collective)), described)
        else:
            self._notes.whole_graphs += len(events) if kind == "graph" else 0
            data |= {
                "class": col.constant(classify.COMPUTE, len(events)),
                "graph_id": self._ids.nonzero([a.graph_id for a in args]),
                "graph_node_id": self._ids.nonzero([a.graph_node_id for a in args]),
                "bytes": self._ids.column([a.bytes for a in args]),
            }
        self._processes.gpu_tracks.see(events, data["device"], data["stream"])
        self._sink.add("gpu_ops", pa.table(data))

    def _stream_waits(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        """Streams that were told to wait for another's event; the host's own waits are calls."""
        args = col.arguments(events)
        named = pa.array([a.wait_on_stream is not None and a.stream is not None for a in args])
        data = {
            "time_ns": times["start_ns"],
            "device": self._ids.column([a.device for a in args], col.INT32, lambda: [e.pid for e in events]),
            "stream": self._ids.streams([a.stream for a in args]),
            "kind": col.constant("wait", len(events)),
            "correlation": self._ids.column([a.correlation for a in args]),
            "on_stream": self._ids.streams([a.wait_on_stream for a in args]),
            "on_correlation": self._ids.column([a.wait_on_record for a in args]),
        }
        waits = pa.table(data).filter(named)
        # -1 stands for none.
        told = pc.and_(pc.greater_equal(waits["stream"], 0), pc.greater_equal(waits["on_stream"], 0))
        self._sink.add("stream_events", waits.filter(told))

    def _collectives(self, where: pa.Table, args: list[Args]) -> None:
        """What arguments tell of collectives; `where` they took place, or were asked for."""
        sizes = [DTYPE_BYTES.get((a.dtype or "").lower()) for a in args]
        put, got = [_integer(a.elements_in) for a in args], [_integer(a.elements_out) for a in args]
        # The larger of what goes in and what comes out.
        elements = [max((n for n in both if n is not None), default=None) for both in zip(put, got, strict=True)]
        described = {
            "group": col.texts(a.group_name for a in args),
            "sequence": self._ids.column([a.collective_sequence for a in args]),
            "name": col.texts(a.collective for a in args),
            "elements": self._ids.column(elements),
            "dtype": col.texts(a.dtype for a in args),
            **{
                column: self._ids.column(
                    [n * s if n is not None and s else None for n, s in zip(told, sizes, strict=True)]
                )
                for column, told in (("bytes", elements), ("in_bytes", put), ("out_bytes", got))
            },
            "group_size": self._ids.column([a.group_size for a in args], col.INT32),
            "group_ranks": col.group_ranks(args),
            "peer": self._ids.column([_peer(a) for a in args], col.INT32),
            "description": col.texts(a.group_description for a in args),
        }
        self._sink.add("collectives", pa.table({**{n: where[n] for n in where.column_names}, **described}))

    def _api_calls(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        data = {
            **times,
            **self._api.columns([e.name for e in events]),
            "process": self._ids.identities([e.pid for e in events]),
            "thread": self._ids.identities([e.tid for e in events]),
            "correlation": self._ids.column([a.correlation for a in args]),
            "external_id": self._external_ids(args),
        }
        self._processes.call(data["process"])
        self._sink.add("api_calls", pa.table(data))

    def _host_ranges(self, category: str, events: list[Event], times: dict[str, pa.Array]) -> None:
        data = {
            **times,
            "process": self._ids.identities([e.pid for e in events]),
            "thread": self._ids.identities([e.tid for e in events]),
        }
        names = [e.name for e in events]
        if category == "operator":
            args = col.arguments(events)
            if collectives := [row for row, a in enumerate(args) if a.collective]:
                self._groups.take([args[row] for row in collectives])
                if sends := [row for row in collectives if args[row].collective in POINT_TO_POINT]:
                    self._collectives(pa.table(data).take(pa.array(sends)), [args[row] for row in sends])
            named = self._operators.columns(names)
            data |= {
                **named,
                "external_id": self._external_ids(args),
                "shapes": col.raw_texts([a.input_dims for a in args]),
                "dtypes": col.raw_texts([a.input_types for a in args]),
                "arguments": col.operator_arguments(named["arguments"].is_valid(), args),
                "sequence": self._ids.column([a.sequence_number for a in args]),
                "record_function": self._ids.nonzero([a.record_function for a in args]),
            }
        else:
            data |= {**self._plain.columns(names), "category": col.constant(category, len(events))}
            if category == "annotation":
                data["external_id"] = self._external_ids(col.arguments(events))
            elif category == "python":
                self._notes.python_frames(times["end_ns"], names, data["thread"])
        self._processes.work(data["process"])
        self._sink.add("host_ranges", pa.table(data))

    def _overheads(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        # Kineto writes -1 for the process and 0 for the thread when it does not know them.
        threads = [e.tid if e.pid != -1 else None for e in events]
        names = self._plain.columns([e.name for e in events])
        self._sink.add("overheads", pa.table({**times, **names, "thread": self._ids.identities(threads)}))

    def _memory_events(self, events: list[Event], time: Times) -> None:
        args = col.arguments(events)
        data = {
            "time_ns": pa.array(time),
            "process": self._ids.identities([e.pid for e in events]),
            "thread": self._ids.identities([e.tid for e in events]),
            "device": self._ids.column([a.device_id if a.device_type == 1 else None for a in args], col.INT32),
            "address": self._ids.column([a.address for a in args], pa.uint64()),
            "bytes": self._ids.column([a.memory_bytes for a in args]),
            "total_allocated": self._ids.column([a.total_allocated for a in args]),
            "total_reserved": self._ids.column([a.total_reserved for a in args]),
        }
        self._sink.add("memory_events", pa.table(data))

    def _external_ids(self, args: Sequence[Args]) -> pa.Array:
        return self._ids.column([a.external_id for a in args], instead=lambda: [a.external_id_old for a in args])

    @property
    def rank(self) -> int | None:
        """The rank that the collectives tell, once all events have been taken."""
        return self._groups.rank

    @property
    def gpu_work(self) -> bool:
        """Whether anything was work of a GPU, once all events have been taken and handed on."""
        return self._tracks.gpu_work

    def finish(self) -> int | None:
        """Hand on what waited for the end of the file; return the process that the GPU rows belong to."""
        self._ranges.finish()
        self._tracks.finish()
        self._vendors.report(self._sink, self._processes.calls > 0)
        self._notes.report()
        return self._processes.finish()


_EMPTY = Event()


def _category_of_operator(name: str) -> str:
    return "annotation" if classify.is_annotation(name) else "operator"


def _with_communication(classes: pa.DictionaryArray, collective: Any) -> pa.DictionaryArray:
    """The classes, where the profiler itself describes a collective that of communication."""
    return pc.if_else(pa.array(collective), classify.COMMUNICATION, classes.dictionary_decode()).dictionary_encode()


def _peer(args: Args) -> int | None:
    """The rank of the job on the other side of a send or receive: PyTorch has looked it up among the group's ranks."""
    rank = _integer(args.target_rank if args.source_rank is None else args.source_rank)
    return rank if rank is not None and 0 <= rank < 1 << 31 else None


def _integer(value: Number) -> int | None:
    try:
        return None if value is None else int(value)
    except (ValueError, OverflowError):
        return None
