"""Sorts the events of a Chrome trace into event tables by their category."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest import classify
from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.kineto import columns as col
from traceanalyzer.ingest.kineto import copies
from traceanalyzer.ingest.kineto.decode import Event, Events, Number

# Categories by what their events are; names of older releases beside the current ones. Annotations on the GPU's tracks, stream
# and event synchronisation records and whole-window spans are no work and stay out.
GPU_KINDS = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
}
API_CATEGORIES = frozenset({"cuda_runtime", "cuda_driver", "Runtime"})
HOST_CATEGORIES = {
    "cpu_op": "operator",
    "Operator": "operator",
    "user_annotation": "annotation",
    "python_function": "python",
}
OVERHEAD = "overhead"
MEMORY_INSTANT = "[memory]"
METADATA_NAMES = frozenset({"process_name", "thread_name"})
DTYPE_BYTES = {
    "byte": 1, "char": 1, "bool": 1, "int8": 1, "uint8": 1,
    "half": 2, "bfloat16": 2, "float16": 2, "short": 2, "int16": 2,
    "float": 4, "float32": 4, "int": 4, "int32": 4,
    "double": 8, "float64": 8, "long": 8, "int64": 8,
}  # fmt: skip


class Reader:
    """Sorts the events of each chunk into tables."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._calls_by_process: Counter[int] = Counter()
        self._process_names: dict[int, str] = {}
        self.misfits = self.bad_bytes = 0

    def take(self, events: Events) -> None:
        self.misfits += events.misfits
        self.bad_bytes += events.bad_bytes
        groups: dict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(events.events):
            if event.ph == "X":
                if event.cat is not None and events.timed[row]:
                    groups[event.cat].append(row)
            elif (event.ph == "M" and event.name in METADATA_NAMES) or (
                event.ph == "i" and event.name == MEMORY_INSTANT
            ):
                groups[event.name].append(row)
        for category, rows in groups.items():
            found = [events.events[row] for row in rows]
            if category in METADATA_NAMES:
                self._names(category, found)
                continue
            times = col.span(col.pick(events.start, rows), col.pick(events.duration, rows))
            if category in GPU_KINDS:
                self._gpu_ops(GPU_KINDS[category], found, times)
            elif category in API_CATEGORIES:
                self._api_calls(found, times)
            elif category in HOST_CATEGORIES:
                self._host_ranges(HOST_CATEGORIES[category], found, times)
            elif category == OVERHEAD:
                self._overheads(found, times)
            elif category == MEMORY_INSTANT:
                self._memory_events(found, times)

    def _gpu_ops(self, kind: str, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        names = col.texts(e.name for e in events)
        data = {
            **times,
            "device": col.integers((_first(a.device, e.pid) for a, e in zip(args, events, strict=True)), pa.int32()),
            "context": col.integers(a.context for a in args),
            "stream": col.integers(_first(a.stream, e.tid) for a, e in zip(args, events, strict=True)),
            "kind": pa.repeat(kind, len(events)).dictionary_encode(),
            "name": names,
            "class": classify.map_names(
                names, classify.kernel_class if kind == "kernel" else lambda _: classify.COMPUTE
            ),
            "correlation": col.integers(a.correlation for a in args),
            "external_id": col.integers(_first(a.external_id, a.external_id_old) for a in args),
            "graph_id": col.integers(a.graph_id or None for a in args),
            "graph_node_id": col.integers(a.graph_node_id or None for a in args),
            "bytes": col.integers(a.bytes for a in args),
        }
        if kind == "kernel":
            data |= {
                "grid": col.triples(a.grid for a in args),
                "block": col.triples(a.block for a in args),
                "registers": col.integers((a.registers for a in args), pa.int32()),
                "shared_memory": col.integers(a.shared_memory for a in args),
                "occupancy": col.shares(a.occupancy for a in args),
            }
            collective = pa.array([a.collective is not None for a in args], pa.bool_())
            if pc.any(collective).as_py():
                known = data["class"].dictionary_decode()
                data["class"] = pc.if_else(collective, classify.COMMUNICATION, known).dictionary_encode()
                self._collectives(pa.table(data).filter(collective), [a for a in args if a.collective is not None])
        elif kind == "memcpy":
            data |= {
                "copy_kind": classify.map_names(names, copies.copy_kind),
                "src_memory": classify.map_names(names, copies.source_memory),
                "dst_memory": classify.map_names(names, copies.target_memory),
            }
        self._sink.add("gpu_ops", pa.table(data))

    def _collectives(self, ops: pa.Table, args: list[Any]) -> None:
        elements = [max(_integer(a.elements_in), _integer(a.elements_out)) for a in args]
        sizes = [DTYPE_BYTES.get((a.dtype or "").lower()) for a in args]
        described = {
            "group": col.texts(a.group_name for a in args),
            "sequence": col.integers(a.collective_sequence for a in args),
            "name": col.texts(a.collective for a in args),
            "elements": pa.array(elements, pa.int64()),
            "dtype": col.texts(a.dtype for a in args),
            "bytes": pa.array([n * s if s else None for n, s in zip(elements, sizes, strict=True)], pa.int64()),
            "group_size": col.integers((a.group_size for a in args), pa.int32()),
            "group_ranks": col.json_texts(a.group_ranks for a in args),
        }
        kept = ops.select(["start_ns", "end_ns", "device", "stream", "correlation"])
        self._sink.add("collectives", pa.table({**{n: kept[n] for n in kept.column_names}, **described}))

    def _api_calls(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        raw = col.texts(e.name for e in events)
        plain = classify.map_names(raw, classify.plain_api_name)
        process = col.integers(e.pid for e in events)
        self._calls_by_process.update(process.drop_null().to_pylist())
        self._sink.add(
            "api_calls",
            pa.table(
                {
                    **times,
                    "process": process,
                    "thread": col.integers(e.tid for e in events),
                    "name": plain,
                    "raw_name": raw,
                    "class": classify.map_names(plain, classify.api_class),
                    "correlation": col.integers(a.correlation for a in args),
                    "external_id": col.integers(_first(a.external_id, a.external_id_old) for a in args),
                }
            ),
        )

    def _host_ranges(self, category: str, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        names = col.texts(e.name for e in events)
        process, thread = col.integers(e.pid for e in events), col.integers(e.tid for e in events)
        data = {
            **times,
            "process": process,
            "thread": thread,
            "name": names,
            "category": classify.map_names(
                names,
                lambda name: "annotation" if category == "operator" and classify.is_annotation(name) else category,
            ),
            "external_id": col.integers(_first(a.external_id, a.external_id_old) for a in args),
        }
        if category == "operator":
            data |= {
                "shapes": col.raw_texts(a.input_dims for a in args),
                "dtypes": col.raw_texts(a.input_types for a in args),
                "sequence": col.integers(a.sequence_number for a in args),
            }
        self._sink.add("host_ranges", pa.table(data))

    def _overheads(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        # Kineto writes -1 for the process and 0 for the thread when it does not know them.
        threads = [e.tid if e.pid != -1 else None for e in events]
        self._sink.add(
            "overheads", pa.table({**times, "thread": col.integers(threads), "name": col.texts(e.name for e in events)})
        )

    def _memory_events(self, events: list[Event], times: dict[str, pa.Array]) -> None:
        args = col.arguments(events)
        on_gpu = [a.device_type == 1 for a in args]
        self._sink.add(
            "memory_events",
            pa.table(
                {
                    "time_ns": times["start_ns"],
                    "process": col.integers(e.pid for e in events),
                    "thread": col.integers(e.tid for e in events),
                    "device": col.integers(
                        (a.device_id if g else None for a, g in zip(args, on_gpu, strict=True)), pa.int32()
                    ),
                    "address": col.integers((a.address for a in args), pa.uint64()),
                    "bytes": col.integers(a.memory_bytes for a in args),
                    "total_allocated": col.integers(a.total_allocated for a in args),
                    "total_reserved": col.integers(a.total_reserved for a in args),
                }
            ),
        )

    def _names(self, category: str, events: list[Event]) -> None:
        for event in events:
            name = event.args.name if event.args else None
            if not isinstance(event.pid, int) or not isinstance(name, str):
                continue
            if category == "process_name":
                self._process_names[event.pid] = name
            elif isinstance(event.tid, int):
                row = {"process": [event.pid], "thread": [event.tid], "name": [name]}
                self._sink.add("threads", pa.table(row))

    def finish(self) -> int | None:
        """Hand on the processes, once all events are in; return the one with most API calls, which the GPU rows belong to."""
        processes = sorted(self._calls_by_process)
        if not processes:
            return None
        names = [self._process_names.get(p) for p in processes]
        self._sink.add("processes", pa.table({"process": processes, "pid": processes, "name": names}))
        return self._calls_by_process.most_common(1)[0][0]


def _first(value: Number, fallback: Number) -> Number:
    return fallback if value is None else value


def _integer(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0
