"""Events whose category says nothing: what they are is told by the names of their process and thread, and by their neighbours.

XLA (JAX, TensorFlow) writes one process "/device:GPU:0" for each GPU with one thread "Stream #14(Compute)" for each stream. Other
threads of that process ("XLA Modules", "Steps", "Framework Name Scope", ...) show the same time once more and are no work.

A category that is not known may be that of a later profiler. On a stream of a GPU its events may be work: what they are is judged when
all known operations are there (`ingest.candidates`). Everything else is on the host. The names, and known operations on the same track,
may come after the events; events wait until then.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import NULL, ints
from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto import lanes
from traceanalyzer.ingest.formats.kineto.extras import Extra
from traceanalyzer.ingest.formats.kineto.lanes import Lane
from traceanalyzer.ingest.formats.kineto.lookalikes import Lookalikes, is_gpu_track
from traceanalyzer.ingest.formats.kineto.notes import Notes
from traceanalyzer.ingest.formats.kineto.processes import Processes
from traceanalyzer.ingest.formats.kineto.text.decode import Event, Number
from traceanalyzer.ingest.formats.kineto.unknown import candidates, on_a_stream
from traceanalyzer.ingest.formats.kineto.vendors import Vendors
from traceanalyzer.ingest.rows import classify
from traceanalyzer.ingest.rows.external_sort import conform
from traceanalyzer.vocabulary.levels import INFO

# A range that lies on a stream and may be work.
MAYBE = "maybe"
Kinds = npt.NDArray[np.object_]
Flags = npt.NDArray[np.bool_]
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
        self._held: list[tuple[pa.Schema, pa.Table]] = []
        self._lookalikes = Lookalikes()
        self._work = False

    def take(self, events: Sequence[Event], times: dict[str, pa.Array], extra: Sequence[Extra] | None) -> None:
        """Complete events of one category, or of none; `extra` where their arguments may be XLA's."""
        args = [_xla_args(x) for x in extra] if extra is not None else [_NO_XLA_ARGS] * len(events)
        contexts = [c.removeprefix("$$") if isinstance(c, str) else c for c in (a.context_id for a in args)]
        ranges = {
            **times,
            "process": self._ids.identities([e.pid for e in events]),
            "thread": self._ids.identities([e.tid for e in events]),
            "name": col.texts(_name(e, a) for e, a in zip(events, args, strict=True)),
            "category": col.texts(e.cat for e in events),
            "correlation": self._ids.column([a.correlation_id for a in args]),
            "context": self._ids.column(contexts),
            "details": col.texts(a.kernel_details or a.memcpy_details or a.memset_details for a in args),
        }
        known = pa.table(ranges | on_a_stream(events, self._ids))
        waits = self._waiting(known, events[0].cat is not None)
        self._sort(known.filter(pa.array(~waits)))
        if waits.any():
            self._held.append((known.schema, _packed(known.filter(pa.array(waits)))))

    def finish(self) -> None:
        """Sort what waited; what has no name is on the host."""
        for schema, ranges in self._held:
            self._sort(conform(ranges, schema))
        self._held = []
        if not self.gpu_work:
            self._lookalikes.report(self._sink)

    @property
    def gpu_work(self) -> bool:
        """Whether anything so far was work of a GPU, or may turn out to be."""
        return self._work or self._processes.gpu_tracks.any()

    def _waiting(self, ranges: pa.Table, unknown: bool) -> Flags:
        """Which ranges only the whole file can tell: without a name yet, or perhaps on a stream though nothing is called so."""
        tracks, track = _tracks(ranges)
        nameless = np.array([self._nameless(*one) for one in tracks], bool)[track]
        on_host = np.array([self._lane(*one).kind == lanes.HOST for one in tracks], bool)[track]
        maybe: Flags = on_host & (unknown | ranges["stream"].is_valid().to_numpy())
        return nameless | maybe

    def _nameless(self, process: int, thread: int) -> bool:
        name = self._processes.name(process)
        if process == NULL or name is None:
            return process != NULL
        return lanes.is_gpu(name) and thread != NULL and (process, thread) not in self._processes.threads

    def _lane(self, process: int, thread: int) -> Lane:
        return lanes.lane_of(self._processes.name(process), self._processes.threads.get((process, thread)))

    def _sort(self, ranges: pa.Table) -> None:
        if not ranges.num_rows:
            return
        tracks, track = _tracks(ranges)
        found = [self._lane(*one) for one in tracks]
        kind = np.array([lane.kind for lane in found], object)[track]
        maybe = self._on_streams(ranges, kind, tracks, track)
        kind[maybe] = MAYBE
        started = pc.and_(pc.is_valid(ranges["correlation"]), pc.is_valid(ranges["context"]))
        known = classify.map_names(ranges["name"], _known_call).is_valid()
        on_gpu, host = kind == lanes.GPU, kind == lanes.HOST
        calls = host & pc.or_(started, known).to_numpy()
        self._gpu_ops(ranges.filter(pa.array(on_gpu)), [found[code] for code in track[on_gpu].tolist()])
        self._api_calls(ranges.filter(pa.array(calls)))
        others = ranges.filter(pa.array(host & ~calls))
        if not self.gpu_work and others.num_rows:
            named = [is_gpu_track(self._processes.name(p), self._processes.threads.get((p, t))) for p, t in tracks]
            self._lookalikes.take(others, np.array(named, bool)[track][host & ~calls])
        self._host_ranges(others)
        self._not_work(ranges, kind, [lane.device for lane in found], track)

    def _on_streams(self, ranges: pa.Table, kind: Kinds, tracks: list[tuple[int, int]], track: Rows) -> Flags:
        """Which ranges of the host lie on a stream after all; hand those on. Without a category only their arguments say so."""
        on_host, unknown = kind == lanes.HOST, ranges["category"].is_valid().to_numpy()
        device, stream = (ints(ranges, name) for name in ("device", "stream"))
        told = (device != NULL) & (stream != NULL)
        if not (on_host & (unknown | told)).any():
            return np.zeros(len(kind), bool)
        gpus, hosts, threads = self._processes.gpu_tracks, self._processes.hosts, self._processes.threads
        # A thread that has a name for an id goes by that.
        named = [threads.get((p, t), self._ids.names.get(t)) for p, t in tracks]
        streams = [
            gpus.of(p, None if t == NULL else t, name, hosts) for (p, t), name in zip(tracks, named, strict=True)
        ]
        # A thread of the host may say for which stream it works; the process of a GPU has the GPU's number.
        elsewhere = np.array([p in hosts and not gpus.known(p, t) for p, t in tracks], bool)[track]
        pairs = np.array(tracks, np.int64)[track]
        told &= ~elsewhere | ((pairs[:, 0] == device) & (pairs[:, 1] == stream))
        marked = np.array([one is not None for one in streams], bool)[track]
        maybe: Flags = on_host & (told | (marked & unknown))
        if maybe.any():
            where = [streams[code] for code in track[maybe].tolist()]
            self._work = True
            self._sink.candidates(candidates(ranges.filter(pa.array(maybe)), where, self._ids))
        self._unknown(ranges.filter(pa.array(on_host & ~maybe & unknown)))
        return maybe

    def _unknown(self, ranges: pa.Table) -> None:
        """Say that ranges of categories that are not known are taken for the host's, in a trace of a GPU."""
        if ranges.num_rows and self._processes.gpu_tracks.any():
            message = "events of categories that are not known, on no track of a GPU, were read as ranges of the host"
            self._notes.say(INFO, message, ranges.num_rows, ranges["category"][0].as_py())

    def _gpu_ops(self, ops: pa.Table, on: Sequence[Lane]) -> None:
        """Operations and the lane of each."""
        if not ops.num_rows:
            return
        self._work = True
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
                    "device": self._ids.column([lane.gpu for lane in on], pa.int32()),
                    "stream": self._ids.column([lane.stream for lane in on]),
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
        self._processes.call(calls["process"].combine_chunks(), told=False)
        self._sink.add("api_calls", pa.table(data))

    def _host_ranges(self, ranges: pa.Table) -> None:
        if not ranges.num_rows:
            return
        by_name = classify.map_names(ranges["name"], lanes.range_category).cast(pa.string())
        data = {
            **{column: ranges[column] for column in ("start_ns", "end_ns", "process", "thread", "name")},
            "category": pc.fill_null(by_name, "annotation").dictionary_encode(),
        }
        self._processes.work(ranges["process"].combine_chunks(), told=False)
        self._sink.add("host_ranges", pa.table(data))

    def _not_work(self, ranges: pa.Table, kind: Kinds, devices: list[str], track: Rows) -> None:
        repeated = np.flatnonzero(kind == lanes.REPEATED)
        if len(repeated):
            message = "events of GPU tracks that are no streams, such as modules and steps, were left out"
            self._notes.say(INFO, message, len(repeated), ranges["name"][int(repeated[0])].as_py())
        for code in np.unique(track[kind == lanes.FOREIGN]).tolist():
            here = (track == code) & (kind == lanes.FOREIGN)
            self._vendors.met(devices[code], int(here.sum()))


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
    pairs = np.stack([ints(ranges, "process"), ints(ranges, "thread")], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    return [(int(p), int(t)) for p, t in distinct], which.reshape(-1)


def _packed(ranges: pa.Table) -> pa.Table:
    """The ranges without columns that say nothing: what waits may be many."""
    empty = [name for name in ranges.column_names if ranges[name].null_count == ranges.num_rows]
    return ranges.drop_columns(empty)
