"""Entries as rows of Parquet: what people ask of many captures in columns of its own, and the whole entry as JSON in one more."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from traceanalyzer.result.history.entry import LABELS, Entry

_NS_BY_NAME = pa.map_(pa.string(), pa.int64())
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("time", pa.timestamp("ns", "UTC")),
        ("name", pa.string()),
        *((label, pa.string()) for label in LABELS),
        ("gpus", pa.list_(pa.string())),
        ("gpu_count", pa.int32()),
        ("unit", pa.string()),
        ("unit_ns", pa.int64()),
        ("deviation_ns", pa.int64()),
        ("gpu_ns", pa.int64()),
        ("lines_ns", _NS_BY_NAME),
        ("families_ns", _NS_BY_NAME),
        ("findings_ns", _NS_BY_NAME),
        ("entry", pa.binary()),
    ]
)
"""Times in ns per unit, but for `gpu_ns`, the GPU time that was recorded."""


def encoded(entries: Sequence[Entry]) -> bytes:
    """A Parquet file with a row an entry."""
    columns = [pa.array([_cells(entry)[name] for entry in entries], SCHEMA.field(name).type) for name in SCHEMA.names]
    file = BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), file, compression="zstd", use_dictionary=False)
    return file.getvalue()


def _cells(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "time": entry.time_ns,
        "name": entry.name,
        **{label: entry.labels.get(label) for label in LABELS},
        "gpus": entry.gpus,
        "gpu_count": entry.gpu_count,
        "unit": entry.unit,
        "unit_ns": entry.unit_ns,
        "deviation_ns": entry.deviation_ns,
        "gpu_ns": entry.gpu_ns,
        "lines_ns": list(entry.lines.items()),
        "families_ns": [(one.name, one.ns) for one in entry.families],
        "findings_ns": [(one.rule, one.ns) for one in entry.findings],
        "entry": msgspec.json.encode(entry),
    }


def decoded(content: bytes) -> list[Entry]:
    """The entries of a Parquet file. Raises ValueError where it is none, or damaged."""
    try:
        column = pq.ParquetFile(BytesIO(content)).read(["entry"], use_threads=False).column(0)
        read = msgspec.json.Decoder(Entry).decode
        return [read(one.as_buffer()) for one in column]
    except (pa.ArrowException, OSError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error
