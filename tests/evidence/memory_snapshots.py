"""Made-up memory snapshots, and a sink that keeps what is read of one."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.memory_snapshot import KIND
from traceanalyzer.ingest.bytes.source import Source, source_of

MIB = 1 << 20
START_US = 1_790_000_000_000_000
FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence" / "memory"


class Kept:
    """As `ingest.contract.Sink`."""

    def __init__(self) -> None:
        self.batches: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self.notes: list[tuple[str, str, str]] = []

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        self.batches[table].append(batch)

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.batches[table] for row in batch.to_pylist()]

    def totals(self) -> dict[str, Any]:
        (row,) = self.rows("snapshot_totals")
        return row

    def said(self, words: str) -> bool:
        return any(words in message for _, _, message in self.notes)


def source(path: Path) -> Source:
    return source_of(path, path, None)


def read(path: Path) -> tuple[Kept, Marks]:
    sink = Kept()
    marks = KIND.read(source(path), sink, lambda size: None)
    for name, batches in sink.batches.items():
        for batch in batches:
            batch.validate(full=True)
            spec = next(spec for spec in KIND.tables if spec.name == name)
            assert batch.schema.equals(pa.schema([field for field in spec.schema if field.name != "rank"])), name
    return sink, marks


def frame(line: int, file: str = "/home/me/train.py", name: str = "step") -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line}


def block(address: int, size: int, state: str = "active_allocated", **more: Any) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": []} | more


def segment(address: int, blocks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    sums = {
        "total_size": sum(one["size"] for one in blocks),
        "allocated_size": sum(one["size"] for one in blocks if one["state"] == "active_allocated"),
        "active_size": sum(one["size"] for one in blocks if one["state"] != "inactive"),
    }
    return {
        "device": 0,
        "address": address,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    } | sums | more  # fmt: skip


def entry(action: str, at: int, address: int, size: int, **more: Any) -> dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": START_US + at,
        "frames": [],
    } | more  # fmt: skip


def snapshot(segments: list[dict[str, Any]], *traces: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"segments": segments, "device_traces": list(traces), "allocator_settings": {}, **more}


def write(folder: Path, content: Any, dump: Callable[[Any], bytes] = pickle.dumps) -> Path:
    path = folder / "snapshot.pickle"
    path.write_bytes(dump(content))
    return path
