"""Makes tables as PyTorch's profiler prints them, and execution traces as its observer writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.operator_tables import KIND
from traceanalyzer.ingest.bytes.source import source_of

HOST = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg")


def device(word: str) -> tuple[str, ...]:
    return (f"Self {word}", f"Self {word} %", f"{word} total", f"{word} time avg")


COLUMNS = ("Name", *HOST, *device("CUDA"), "# of Calls")
MATMUL = (
    "aten::mm",
    "20.00%",
    "200.000us",
    "50.00%",
    "500.000us",
    "50.000us",
    "400.000us",
    "80.00%",
    "400.000us",
    "40.000us",
    "10",
)
KERNEL = (
    "sgemm_128x64_nn",
    "0.00%",
    "0.000us",
    "0.00%",
    "0.000us",
    "0.000us",
    "400.000us",
    "80.00%",
    "400.000us",
    "40.000us",
    "10",
)
COPY = ("Memcpy HtoD (Pageable -> Device)", *KERNEL[1:6], "100.000us", "20.00%", "100.000us", "50.000us", "2")
LAUNCH = (
    "cudaLaunchKernel",
    "30.00%",
    "300.000us",
    "30.00%",
    "300.000us",
    "30.000us",
    "0.000us",
    "0.00%",
    "0.000us",
    "0.000us",
    "10",
)
SYNC = ("cudaDeviceSynchronize", "50.00%", "500.000us", "50.00%", "500.000us", "500.000us", *LAUNCH[6:10], "1")
ROWS = (MATMUL, KERNEL, COPY, LAUNCH, SYNC)
TOTALS = ("Self CPU time total: 1.000ms", "Self CUDA time total: 500.000us")


def table(
    rows: Sequence[Sequence[str]] = ROWS,
    columns: Sequence[str] = COLUMNS,
    totals: Sequence[str] = TOTALS,
    prefix: str = "",
) -> str:
    """The text of a table: its cells to the right, two spaces between columns, lines of dashes around."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    widths = [max(width, 12) for width in widths]

    def line(cells: Sequence[str]) -> str:
        return "".join(f"{cell:>{width}}  " for cell, width in zip(cells, widths, strict=True))

    rule = line(["-" * width for width in widths])
    lines = [rule, line(columns), rule, *map(line, rows), rule, *totals]
    return "".join(f"{prefix}{one}\n" for one in lines)


def node(number: int, name: str, shapes: Any, types: Any, parent: int = 1, rf: int = 0, **more: Any) -> dict[str, Any]:
    values = [[0, 0, 0, 1, 4, "cuda:0"] if one.startswith("Tensor(") else 0 for one in types]
    attributes = {"rf_id": rf, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": ""} | more
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": {"values": values, "shapes": shapes, "types": types},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": key, "type": "string", "value": value} for key, value in attributes.items()],
    }


def old_node(new: dict[str, Any]) -> dict[str, Any]:
    """The same as schema 1.0.1 has it."""
    attributes = {one["name"]: one["value"] for one in new["attrs"]}
    kept = {key: attributes[key] for key in ("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema")}
    inputs = {
        "inputs": new["inputs"]["values"],
        "input_shapes": new["inputs"]["shapes"],
        "input_types": new["inputs"]["types"],
    }
    outputs = {"outputs": [], "output_shapes": [], "output_types": []}
    return {"name": new["name"], "id": new["id"], "parent": new["ctrl_deps"], **kept, **inputs, **outputs}


def product(number: int, rf: int, parent: int = 2, name: str = "aten::mm", **more: Any) -> dict[str, Any]:
    types = ["Tensor(float)", "Tensor(float)"]
    return node(number, name, [[8, 16], [16, 4]], types, parent, rf, **more)


def execution(nodes: Sequence[dict[str, Any]], schema: str = "1.1.0-chakra.0.0.4", pid: int = 100) -> dict[str, Any]:
    return {
        "schema": schema,
        "pid": pid,
        "time": "2026-01-02 03:04:05",
        "start_ts": 1,
        "nodes": list(nodes),
        "finish_ts": 9,
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


class Kept:
    """What was read."""

    def __init__(self) -> None:
        self.batches: dict[str, list[pa.Table]] = {}
        self.notes: list[tuple[str, str, str, int]] = []

    def add(self, name: str, batch: pa.Table) -> None:
        spec = next(spec for spec in KIND.tables if spec.name == name)
        assert batch.schema.equals(pa.schema([field for field in spec.schema if field.name != "rank"])), name
        self.batches.setdefault(name, []).append(batch)

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message, count))

    def table(self, name: str) -> pa.Table:
        spec = next(spec for spec in KIND.tables if spec.name == name)
        if name not in self.batches:
            return spec.empty()
        found = pa.concat_tables(self.batches[name])
        return found.add_column(0, "rank", pa.repeat(pa.scalar(0, pa.int32()), found.num_rows))

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.table(name).to_pylist()


def read(path: Path) -> tuple[Kept, Marks]:
    sink = Kept()
    return sink, KIND.read(source_of(path, path, None), sink, lambda size: None)
