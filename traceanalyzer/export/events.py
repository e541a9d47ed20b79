"""Rows of the tables as events of the Chrome trace format: what stands in one event besides its place and time.

Categories and arguments have the names that PyTorch's profiler gives them, so that whoever reads its traces reads these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.export.text import as_json, integers_text, join_fragments, member, quote_texts

Fragment = Callable[[pa.Table], pa.Array]
"""From rows of a table to `,"cat":…,"name":…,"args":{…}`."""

GPU_CATEGORIES = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "graph": "graph"}
HOST_CATEGORIES = {
    **{"operator": "cpu_op", "annotation": "user_annotation", "nvtx": "nvtx", "python": "python_function"},
    **{"openacc": "openacc", "openmp": "openmp", "callback": "callback", "mpi": "mpi_call", "os": "os_call"},
}
LINK = "link"
"""A column that is added to API calls and GPU operations: the number of the launching call, null without one."""


def gpu_op(rows: pa.Table) -> pa.Array:
    return _event(
        _category(rows["kind"], GPU_CATEGORIES),
        rows["name"],
        {
            **_whole(rows, device="device", context="context", stream="stream", correlation="correlation"),
            **_whole(rows, **{"External id": "external_id", "graph id": "graph_id", "graph node id": "graph_node_id"}),
            **_whole(rows, **{"bytes": "bytes", "registers per thread": "registers", "shared memory": "shared_memory"}),
            "grid": _triple(rows["grid"]),
            "block": _triple(rows["block"]),
        },
        _flow(rows, "flow_in"),
    )


def api_call(rows: pa.Table) -> pa.Array:
    name = pc.coalesce(rows["raw_name"].cast(pa.string()), rows["name"].cast(pa.string()))
    args = _whole(rows, **{"correlation": "correlation", "External id": "external_id"})
    return _event(_constant("cuda_runtime", rows), name, args, _flow(rows, "flow_out"))


def host_range(rows: pa.Table) -> pa.Array:
    args = {
        **_whole(rows, **{"External id": "external_id", "Sequence number": "sequence"}),
        **_whole(rows, **{"Record function id": "record_function"}),
        "Input Dims": as_json(rows["shapes"]),
        "Input type": as_json(rows["dtypes"]),
    }
    return _event(_category(rows["category"], HOST_CATEGORIES), rows["name"], args)


def overhead(rows: pa.Table) -> pa.Array:
    return _event(_constant("overhead", rows), rows["name"], {})


def step(rows: pa.Table) -> pa.Array:
    numbered = join_fragments("step ", integers_text(rows["index"]))
    name = pc.coalesce(rows["name"].cast(pa.string()).combine_chunks(), numbered)
    return _event(_constant("traceanalyzer.step", rows), name, _whole(rows, operations="gpu_op_count"))


def busy_line(rows: pa.Table) -> pa.Array:
    """Stretches of the ledger in which the GPU worked."""
    return _event(
        _constant("traceanalyzer.ledger", rows), pc.replace_substring(rows["line"].cast(pa.string()), "_", " "), {}
    )


def gap(rows: pa.Table) -> pa.Array:
    """Parts of idle stretches: why, and what the host did."""
    cause = pc.replace_substring(rows["cause"].cast(pa.string()), "_", " ")
    args = {"the host was in": "place", "range": "range_name", "ended by": "next_op_name", "waited in": "wait_name"}
    return _event(
        _constant("traceanalyzer.ledger", rows),
        join_fragments("idle: ", cause),
        {key: quote_texts(rows[name]) for key, name in args.items()},
    )


def _event(
    category: pa.Array, name: pa.Array | pa.ChunkedArray, args: Mapping[str, pa.Array], more: pa.Array | str = ""
) -> pa.Array:
    members = join_fragments(*(member(key, value) for key, value in args.items())) if args else None
    shown = ',"args":{}' if members is None else join_fragments(',"args":{', pc.utf8_slice_codeunits(members, 1), "}")
    named = pc.fill_null(quote_texts(name), '"(unnamed)"')
    return join_fragments(',"cat":', category, ',"name":', named, more, shown)


def _whole(rows: pa.Table, **columns: str) -> dict[str, pa.Array]:
    return {key: integers_text(rows[name]) for key, name in columns.items()}


def _category(kinds: pa.ChunkedArray, words: Mapping[str, str]) -> pa.Array:
    array = kinds.combine_chunks()
    known = pa.array([f'"{words.get(kind, kind)}"' for kind in array.dictionary.to_pylist()], pa.string())
    return pc.fill_null(known.take(array.indices), '"other"')


def _constant(category: str, rows: pa.Table) -> pa.Array:
    return pa.repeat(f'"{category}"', rows.num_rows)


def _flow(rows: pa.Table, direction: str) -> pa.Array:
    """An arrow from a call to each operation that it launched."""
    return pc.fill_null(join_fragments(',"bind_id":', integers_text(rows[LINK]), f',"{direction}":true'), "")


def _triple(sizes: pa.ChunkedArray) -> pa.Array:
    array = sizes.combine_chunks()
    x, y, z = (pc.list_element(array, at).cast(pa.string()) for at in range(3))
    return join_fragments("[", x, ",", y, ",", z, "]")
