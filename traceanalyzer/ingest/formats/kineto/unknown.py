"""Events on a stream of a GPU whose category is not known: rows of `gpu_ops` as far as they say what they are."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto import copies, lanes
from traceanalyzer.ingest.formats.kineto.categories import is_no_work, kind_of_work
from traceanalyzer.ingest.formats.kineto.gpu_tracks import Stream
from traceanalyzer.ingest.formats.kineto.text.decode import Event
from traceanalyzer.ingest.rows import classify


def on_a_stream(events: Sequence[Event], ids: col.Integers) -> dict[str, pa.Array]:
    """The arguments that operations on streams have, as columns."""
    args = col.arguments(events)
    return {
        "device": ids.column([a.device for a in args], pa.int32()),
        "stream": ids.streams([a.stream for a in args]),
        "launch": ids.column([a.correlation for a in args]),
        "bytes": ids.column([a.bytes for a in args]),
        "gpu_context": ids.column([a.context for a in args]),
        "external_id": ids.column(col.patch_values([a.external_id for a in args], (a.external_id_old for a in args))),
        "graph_id": ids.nonzero([a.graph_id for a in args]),
        "graph_node_id": ids.nonzero([a.graph_node_id for a in args]),
    }


def candidates(ranges: pa.Table, where: Sequence[Stream | None], ids: col.Integers) -> pa.Table:
    """Rows for `Sink.candidates` of ranges with their arguments; `where` says on which stream the track of each is."""
    device = pc.coalesce(
        ranges["device"].cast(pa.int64()), ids.column([None if w is None else w.device for w in where])
    )
    stream = pc.coalesce(
        ranges["stream"], ids.column([None if w is None else w.stream for w in where]), ranges["thread"]
    )
    names, categories = ranges["name"], ranges["category"]
    by_category = classify.map_names(categories, kind_of_work).cast(pa.string())
    by_name = classify.map_names(names, _kind_by_name).cast(pa.string())
    moved = pc.if_else(pc.is_valid(ranges["bytes"]), pa.scalar("memcpy"), pa.scalar(None, pa.string()))
    told = pc.coalesce(by_category, by_name, moved)
    no_work = pc.and_(pc.is_valid(classify.map_names(categories, _no_work)), pc.is_null(told))
    kind = pc.fill_null(told, "kernel")
    is_copy, is_kernel = pc.equal(kind, "memcpy"), pc.equal(kind, "kernel")
    return pa.table(
        {
            **{column: ranges[column] for column in _AS_THEY_ARE},
            "context": ranges["gpu_context"],
            "device": device.cast(pa.int32(), safe=False),
            "stream": stream,
            "correlation": pc.coalesce(ranges["launch"], ranges["correlation"]),
            "kind": kind.dictionary_encode(),
            "class": _where(is_kernel, classify.map_names(names, classify.kernel_class), classify.COMPUTE),
            "copy_kind": _where(is_copy, classify.map_names(names, copies.copy_kind)),
            "src_memory": _where(is_copy, classify.map_names(names, copies.source_memory)),
            "dst_memory": _where(is_copy, classify.map_names(names, copies.target_memory)),
            "told": pc.if_else(no_work, "nothing", pc.if_else(pc.is_valid(told), "work", None)),
        }
    )


_AS_THEY_ARE = ("start_ns", "end_ns", "name", "category", "bytes", "external_id", "graph_id", "graph_node_id")


def _kind_by_name(name: str) -> str | None:
    """memcpy or memset where an event is called so; all else may be anything."""
    kind = lanes.operation_kind(name)
    return None if kind == "kernel" else kind


def _no_work(category: str) -> str | None:
    return category if is_no_work(category) else None


def _where(rows: pa.ChunkedArray, names: pa.DictionaryArray, other: str | None = None) -> pa.Array:
    """The names in these rows, `other` elsewhere."""
    return pc.if_else(rows, names.cast(pa.string()), pa.scalar(other, pa.string())).dictionary_encode()
