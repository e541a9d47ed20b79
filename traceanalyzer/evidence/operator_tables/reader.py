"""Reads a file into its tables: the form that it has, its rows, and what was met into health."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.operator_tables.reading import kineto_inputs
from traceanalyzer.evidence.operator_tables.reading.averages import averages_of, device_of, time_of
from traceanalyzer.evidence.operator_tables.reading.content import form_of
from traceanalyzer.evidence.operator_tables.reading.lines import Lines, tables_in
from traceanalyzer.evidence.operator_tables.reading.nodes import NO_RAW, Node, Nodes, Values, nodes_of
from traceanalyzer.evidence.operator_tables.tables import AVERAGES, NODES, OP_SCOPES, TOTALS, TRACES
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

AVERAGES_PRODUCER = "PyTorch profiler table"
NODES_PRODUCER = "PyTorch execution trace"
_ROOT = "[pytorch|profiler|execution_"
_BATCH = 1 << 14
_MOST_NAME = 4096
_LARGEST = 1 << 62


def read_tables(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError for a file that has neither a row nor a node."""
    if form_of(source) == "nodes":
        return _read_nodes(source, sink, progress)
    return _read_averages(source, sink, progress)


def _read_averages(source: Source, sink: Sink, progress: Progress) -> Marks:
    written = _Written(sink)
    with source.open(progress) as stream:
        text = io.TextIOWrapper(io.BufferedReader(_Raw(stream)), encoding="utf-8-sig", errors="replace", newline=None)
        for table, lines in enumerate(tables_in(text)):
            written.take(table, lines)
        if stream.damage:
            sink.health(NOT_ALL_READ, MEDIUM, f"the text that holds the profiler's table: {stream.damage}")
    if not written.finish():
        raise InputError(f"{source.path}: a table of PyTorch's profiler without a row; print it again")
    return Marks(producer=AVERAGES_PRODUCER)


class _Raw(io.RawIOBase):
    """What `Source.open` gives as a raw stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Written:
    """Rows on their way. The number of the file is a checksum of its tables and known at its end only, so they wait for it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._sum = 0
        self._averages: list[pa.Table] = []
        self._totals: list[dict[str, Any]] = []
        self._columns: list[str] = []
        self._rows: list[list[str]] = []
        self._tables: list[int] = []

    def take(self, table: int, lines: Lines) -> None:
        if lines.strange:
            message = "lines within a table of PyTorch's profiler are no rows of it"
            self._sink.health(NOT_ALL_READ, LOW, message, lines.strange, lines.first_strange)
        if not lines.ended:
            message = "a table of PyTorch's profiler breaks off: rows or totals may be missing"
            self._sink.health(NOT_ALL_READ, MEDIUM, message)
        if not lines.rows:
            return
        if lines.columns != self._columns or len(self._rows) >= _BATCH:
            self._turn()
            self._columns = lines.columns
        self._rows += lines.rows
        self._tables += [table] * len(lines.rows)
        total = {word: time_of(text) for word, text in lines.totals.items()}
        columns = {name.lower() for name in lines.columns}
        device = device_of(lines.columns)
        self._totals.append(
            {
                "table": table,
                "device": device,
                "rows": len(lines.rows),
                "host_total": total.get("CPU"),
                "device_total": total.get(device) if device else None,
                "by_shape": "input shapes" in columns,
                "by_place": "source location" in columns,
            }
        )
        self._sum = zlib.crc32(repr((lines.totals, lines.rows[:64])).encode("utf-8", "replace"), self._sum)

    def _turn(self) -> None:
        """The rows so far as columns."""
        if not self._rows:
            return
        averages = averages_of(self._columns, self._rows, self._tables)
        if averages.cells:
            message = "values in a table of PyTorch's profiler could not be read, and count as absent"
            self._sink.health(NOT_ALL_READ, LOW, message, averages.cells, averages.first)
        self._averages.append(averages.rows)
        self._rows, self._tables = [], []

    def finish(self) -> bool:
        """Hand all on; whether there was any row."""
        self._turn()
        for rows in self._averages:
            _add(self._sink, AVERAGES, rows, self._sum)
        schema = pa.schema([one for one in TOTALS.schema if one.name not in ("rank", "file")])
        for at in range(0, len(self._totals), _BATCH):
            _add(self._sink, TOTALS, pa.Table.from_pylist(self._totals[at : at + _BATCH], schema), self._sum)
        return bool(self._totals)


def _read_nodes(source: Source, sink: Sink, progress: Progress) -> Marks:
    found = nodes_of(source, progress)
    _say(sink, found)
    nodes = [node for node in found.nodes if not node.name.startswith(_ROOT)]
    number = zlib.crc32(
        f"{found.schema} {found.pid} {len(nodes)} {[n.name for n in nodes[:64]]}".encode("utf-8", "replace")
    )
    threads: set[int | None] = set()
    for at in range(0, len(nodes), _BATCH):
        rows = [_row(node) for node in nodes[at : at + _BATCH]]
        threads |= {row["thread"] for row in rows}
        schema = pa.schema([one for one in NODES.schema if one.name not in ("rank", "file")])
        _add(sink, NODES, pa.Table.from_pylist(rows, schema), number)
    whole = {
        "schema": found.schema,
        "pid": found.pid,
        "nodes": len(nodes),
        "threads": len(threads - {None}),
    }
    schema = pa.schema([one for one in TRACES.schema if one.name in whole])
    _add(sink, TRACES, pa.Table.from_pylist([whole], schema), number)
    return Marks(producer=NODES_PRODUCER, pids=() if found.pid is None else (found.pid,))


def _say(sink: Sink, found: Nodes) -> None:
    if found.cut:
        message = "the execution trace breaks off: its observer was not stopped, or the file was cut; later operators are missing"
        sink.health(NOT_ALL_READ, MEDIUM, message)
    if found.lost:
        sink.health(NOT_ALL_READ, LOW, "nodes of the execution trace are damaged, and left out", found.lost)
    if found.more:
        message = "the file holds several execution traces, one after the other: only the first is read"
        sink.health(NOT_ALL_READ, MEDIUM, message)
    if found.mended:
        message = "numbers of the execution trace are no JSON (nan, inf), and count as absent"
        sink.health(NOT_ALL_READ, LOW, message, found.mended)
    if any(node.exclusive_dur is not None for node in found.nodes[:1000]):
        message = "the execution trace was linked with a Kineto trace: of its times nothing is read; give that trace beside it"
        sink.health(NOT_ALL_READ, LOW, message)


def _row(node: Node) -> dict[str, Any]:
    attributes = {one.name: one.value for one in node.attrs or ()}
    told = node.inputs if isinstance(node.inputs, Values) else None
    shapes, types = (told.shapes, told.types) if told else (node.input_shapes, node.input_types)
    dims, dtypes = kineto_inputs.shapes_and_types(bytes(shapes), bytes(types))
    scope = _integer(attributes.get("scope", node.scope))
    values = told.values if told else NO_RAW
    wanted = kineto_inputs.WITH_ARGUMENTS.search(node.name)
    return {
        "node": _integer(node.id),
        "parent": _integer(node.parent if node.ctrl_deps is None else node.ctrl_deps),
        "record_function": _integer(attributes.get("rf_id", node.rf_id)) or None,
        "name": node.name[:_MOST_NAME],
        "operator": scope is None or scope in OP_SCOPES,
        "thread": _integer(attributes.get("tid", node.tid)),
        "shapes": dims,
        "dtypes": dtypes,
        "arguments": kineto_inputs.arguments(bytes(values), bytes(types)) if wanted else None,
        "collective": _text(attributes.get("collective_name")),
        "group": _text(attributes.get("pg_name")),
        "elements": _integer(attributes.get("in_msg_nelems")),
        "dtype": _text(attributes.get("dtype")),
        "group_size": _small(attributes.get("pg_size")),
    }


def _integer(value: Any) -> int | None:
    try:
        number = int(value) if value is not None and not isinstance(value, (bool, list)) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and -_LARGEST < number < _LARGEST else None


def _small(value: Any) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 <= number < 1 << 31 else None


def _text(value: Any) -> str | None:
    return value[:_MOST_NAME] if isinstance(value, str) and value else None


def _add(sink: Sink, spec: TableSpec, rows: pa.Table, number: int) -> None:
    names: Sequence[str] = [one for one in spec.schema.names if one != "rank"]
    rows = rows.append_column("file", pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows))
    schema = pa.schema([spec.schema.field(name) for name in names])
    for at in range(0, rows.num_rows, _BATCH):
        sink.add(spec.name, rows.slice(at, _BATCH).select(names).cast(schema))
