"""Events whose category says nothing: what they are is told by the names of their process and thread.

XLA (JAX, TensorFlow) writes one process "/device:GPU:0" for each GPU with one thread "Stream #14(Compute)" for each stream. Other
threads of that process ("XLA Modules", "Steps", "Framework Name Scope", ...) show the same time once more and are no work.
Everything else is on the host. The names may come after the events; events wait until theirs are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest import classify
from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.kineto import columns as col
from traceanalyzer.ingest.kineto import lanes
from traceanalyzer.ingest.kineto.categories import API_CATEGORIES, GPU_KINDS, HOST_CATEGORIES, NO_WORK
from traceanalyzer.ingest.kineto.decode import Event, Number
from traceanalyzer.ingest.kineto.extras import Extra
from traceanalyzer.ingest.kineto.lanes import Lane
from traceanalyzer.ingest.kineto.notes import Notes
from traceanalyzer.ingest.kineto.processes import Processes
from traceanalyzer.ingest.kineto.vendors import Vendors
from traceanalyzer.model.schema import NAME

NONE = np.iinfo(np.int64).min
# Kinds of ranges beside those of lanes, told by their category.
CALL, LEFT_OUT = "call", "left out"
Kinds = npt.NDArray[np.object_]
Rows = npt.NDArray[np.int64]


class _XlaArgs(msgspec.Struct, gc=False):
    """Arguments of XLA's events on streams, and of the calls on the host that started them; `step_num` of JAX's step annotations.

    A context is written "$$1".
    """

    correlation_id: Number = None
    context_id: Number = None
    kernel_details: str | None = None
    memcpy_details: str | None = None
    memset_details: str | None = None
    step_num: Number = None


_xla_decoder = msgspec.json.Decoder(_XlaArgs)
_NO_XLA_ARGS = _XlaArgs()


class Tracks:
    """Sorts ranges into tables by their names and the names of their tracks."""

    def __init__(self, sink: Sink, ids: col.Integers, processes: Processes, vendors: Vendors, notes: Notes) -> None:
        self._sink, self._ids, self._processes, self._vendors, self._notes = sink, ids, processes, vendors, notes
        self._held: list[pa.Table] = []

    def take(self, events: Sequence[Event], times: dict[str, pa.Array], extra: Sequence[Extra] | None) -> None:
        """Complete events; `extra` where their arguments may be XLA's."""
        args = [_xla_args(x) for x in extra] if extra is not None else [_NO_XLA_ARGS] * len(events)
        contexts = [c.removeprefix("$$") if isinstance(c, str) else c for c in (a.context_id for a in args)]
        self.add(
            pa.table(
                {
                    **times,
                    "process": self._ids.identities([e.pid for e in events]),
                    "thread": self._ids.identities([e.tid for e in events]),
                    "name": col.texts(_name(e, a) for e, a in zip(events, args, strict=True)),
                    "category": col.texts(e.cat for e in events),
                    "correlation": self._ids.column([a.correlation_id for a in args]),
                    "context": self._ids.column(contexts),
                    "details": col.texts(a.kernel_details or a.memcpy_details or a.memset_details for a in args),
                }
            )
        )

    def add(self, ranges: pa.Table) -> None:
        """Ranges with process, thread, name and category, and with what XLA says of them as far as they have it."""
        for name, type_ in (("correlation", pa.int64()), ("context", pa.int64()), ("details", NAME)):
            if name not in ranges.column_names:
                ranges = ranges.append_column(name, pa.nulls(ranges.num_rows, type_))
        tracks, track = _tracks(ranges)
        waits = np.array([self._waits(*one) for one in tracks], bool)[track]
        if waits.any():
            self._held.append(ranges.filter(pa.array(waits)))
            ranges = ranges.filter(pa.array(~waits))
        self._sort(ranges)

    def finish(self) -> None:
        """Sort what waited for a name; what got none is on the host."""
        for ranges in self._held:
            self._sort(ranges)
        self._held = []

    def _waits(self, process: int, thread: int) -> bool:
        name = self._processes.name(process)
        if process == NONE or name is None:
            return process != NONE
        return lanes.is_gpu(name) and thread != NONE and (process, thread) not in self._processes.threads

    def _sort(self, ranges: pa.Table) -> None:
        if not ranges.num_rows:
            return
        tracks, track = _tracks(ranges)
        found = [lanes.lane_of(self._processes.name(p), self._processes.threads.get((p, t))) for p, t in tracks]
        kind = _kinds(ranges, [lane.kind for lane in found], track)
        started = pc.and_(pc.is_valid(ranges["correlation"]), pc.is_valid(ranges["context"]))
        known = classify.map_names(ranges["name"], _known_call).is_valid()
        on_gpu, host = kind == lanes.GPU, kind == lanes.HOST
        calls = (kind == CALL) | (host & pc.or_(started, known).to_numpy())
        self._gpu_ops(ranges.filter(pa.array(on_gpu)), [found[code] for code in track[on_gpu].tolist()])
        self._api_calls(ranges.filter(pa.array(calls)))
        self._host_ranges(ranges.filter(pa.array(host & ~calls)))
        self._not_work(ranges, kind, [lane.device for lane in found], track)

    def _gpu_ops(self, ops: pa.Table, on: Sequence[Lane]) -> None:
        """Operations and the lane of each. One that only its category tells lies on its process and thread, as in Kineto's traces."""
        if not ops.num_rows:
            return
        named = [lane.kind == lanes.GPU for lane in on]
        device = pc.if_else(pa.array(named), self._ids.column([lane.gpu for lane in on]), ops["process"])
        stream = pc.if_else(pa.array(named), self._ids.column([lane.stream for lane in on]), ops["thread"])
        details = ops["details"].combine_chunks()
        by_value = [lanes.details_of(text) for text in [*details.dictionary.to_pylist(), None]]
        said = [by_value[code] for code in pc.fill_null(details.indices, -1).to_pylist()]
        names = ops["name"]
        copied = classify.map_names(names, lanes.operation_copy)
        memory = {
            side: pc.if_else(
                pc.is_valid(copied), col.texts(getattr(d, side) or "unknown" for d in said).cast(pa.string()), None
            )
            for side in ("src_memory", "dst_memory")
        }
        self._sink.add(
            "gpu_ops",
            pa.table(
                {
                    **{column: ops[column] for column in ("start_ns", "end_ns", "name", "correlation", "context")},
                    "device": self._ids.column(device.to_pylist(), pa.int32()),
                    "stream": stream,
                    "kind": classify.map_names(names, lanes.operation_kind),
                    "class": classify.map_names(names, lanes.operation_class),
                    "copy_kind": copied,
                    **{side: values.dictionary_encode() for side, values in memory.items()},
                    "bytes": self._ids.column([d.bytes for d in said]),
                    "grid": col.triples([d.grid for d in said]),
                    "block": col.triples([d.block for d in said]),
                    "registers": self._ids.column([d.registers for d in said], pa.int32()),
                    "shared_memory": self._ids.column([d.shared_memory for d in said]),
                }
            ),
        )

    def _api_calls(self, calls: pa.Table) -> None:
        if not calls.num_rows:
            return
        data = {
            **{column: calls[column] for column in ("start_ns", "end_ns", "process", "thread", "correlation")},
            "raw_name": calls["name"],
            "name": classify.map_names(calls["name"], classify.plain_api_name),
            "class": classify.map_names(calls["name"], lanes.call_class),
        }
        self._processes.call(calls["process"].combine_chunks())
        self._sink.add("api_calls", pa.table(data))

    def _host_ranges(self, ranges: pa.Table) -> None:
        if not ranges.num_rows:
            return
        by_name = classify.map_names(ranges["name"], lanes.range_category).cast(pa.string())
        by_name = pc.fill_null(by_name, "annotation")
        told = classify.map_names(ranges["category"], HOST_CATEGORIES.get).cast(pa.string())
        data = {
            **{column: ranges[column] for column in ("start_ns", "end_ns", "process", "thread", "name")},
            "category": pc.coalesce(told, by_name).dictionary_encode(),
        }
        self._processes.work(ranges["process"].combine_chunks())
        self._sink.add("host_ranges", pa.table(data))

    def _not_work(self, ranges: pa.Table, kind: Kinds, devices: list[str], track: Rows) -> None:
        repeated = np.flatnonzero(kind == lanes.REPEATED)
        if len(repeated):
            message = "events of GPU tracks that are no streams, such as modules and steps, were left out"
            self._notes.say("info", message, len(repeated), ranges["name"][int(repeated[0])].as_py())
        for code in np.unique(track[kind == lanes.FOREIGN]).tolist():
            here = (track == code) & (kind == lanes.FOREIGN)
            self._vendors.met(devices[code], int(here.sum()))


def _kinds(ranges: pa.Table, by_track: list[str], track: Rows) -> Kinds:
    """What each range is: what its category says, else what its track says."""
    category = ranges["category"].combine_chunks()
    told = [*map(_told, category.dictionary.to_pylist()), None]
    code = pc.fill_null(category.indices, -1).to_numpy()
    by_category, known = np.array(told, object)[code], np.array([kind is not None for kind in told])[code]
    return np.where(known, by_category, np.array(by_track, object)[track])


def _told(category: str | None) -> str | None:
    """What the category alone says; None when it says nothing."""
    if category in NO_WORK:
        return LEFT_OUT
    if category in GPU_KINDS:
        return lanes.GPU
    if category in API_CATEGORIES:
        return CALL
    return lanes.HOST if category in HOST_CATEGORIES else None


def _known_call(name: str) -> str | None:
    return "call" if classify.api_class(name) != "other" else None


def _name(event: Event, args: _XlaArgs) -> str | None:
    """The event's name; the annotation of a step gets its number, by which it is known as one (`model.markers`)."""
    return event.name if args.step_num is None else f"{event.name or 'step'} step_num={args.step_num}"


def _xla_args(extra: Extra) -> _XlaArgs:
    try:
        return _xla_decoder.decode(extra.args) if extra.args else _NO_XLA_ARGS
    except msgspec.ValidationError:
        return _NO_XLA_ARGS


def _tracks(ranges: pa.Table) -> tuple[list[tuple[int, int]], Rows]:
    """The distinct (process, thread) of the ranges, and which of them each has."""
    pairs = np.stack([_ints(ranges, "process"), _ints(ranges, "thread")], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    return [(int(p), int(t)) for p, t in distinct], which.reshape(-1)


def _ints(table: pa.Table, name: str) -> Rows:
    return pc.fill_null(table[name], NONE).to_numpy()  # type: ignore[no-any-return]
