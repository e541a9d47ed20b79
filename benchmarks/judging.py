"""What judging costs beside reading: CPU and memory of `analyze` and `report` on traces of every shape, and on ten million operations.

python -m benchmarks.judging [SHAPE …]    only some of the shapes

BENCH_MILLIONS is the number of operations of the largest, in millions; with 50 it needs 9 GB of disk.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import nsys, ranks
from benchmarks.measure import Cost, measure, ratio
from benchmarks.tile import tile

TOOL = (sys.executable, "-m", "traceanalyzer")
KINETO = Path("tests/fixtures/kineto")
MILLIONS = float(os.environ.get("BENCH_MILLIONS", "10"))
MOST_US, MOST_BYTES, MOST_MORE_S = 4, 350, 2
MANY_US, MANY_BYTES = 4.5, 290
# Of an export of short kernels.
_BYTES_AN_OPERATION = 166


@dataclass(frozen=True)
class Shape:
    """A trace that is made to measure: `write(path, megabytes)` writes it, as a file or as a folder."""

    write: Callable[[Path, int], object]
    megabytes: int
    name: str


def exported(fixture: Path) -> Callable[[Path, int], object]:
    return lambda path, megabytes: nsys.tile(fixture, path, megabytes)


def kineto(fixture: str) -> Callable[[Path, int], object]:
    return lambda path, megabytes: tile(KINETO / fixture, path, megabytes)


def job(path: Path, count: int) -> None:
    ranks.renumber(ranks.JOB, path, count)


SHAPES = {
    "operators": Shape(kineto("dataloader.slow.pt.trace.json.gz"), 340, "trace.json"),
    "Python stacks": Shape(kineto("gc_stack.slow.pt.trace.json.gz"), 340, "trace.json"),
    "serving with graphs": Shape(kineto("decode_small_batch.fixed.pt.trace.json.gz"), 80, "trace.json"),
    "4 GPUs": Shape(exported(nsys.FOUR), 250, "export.sqlite"),
    "launch storm": Shape(exported(nsys.STORM), 250, "export.sqlite"),
    "NVTX of many texts": Shape(exported(nsys.OPERATORS), 250, "export.sqlite"),
    "graphs": Shape(exported(nsys.FIXTURES / "launch_storm.fixed.graph-node.sqlite"), 60, "export.sqlite"),
    "copies": Shape(exported(nsys.FIXTURES / "h2d_pageable.slow.sqlite"), 60, "export.sqlite"),
    "64 ranks": Shape(job, 64, "job"),
}


def judging(folder: Path, names: Sequence[str] = ()) -> None:
    """Print what each shape costs, all of them without `names`, and then the largest trace."""
    for name in names or SHAPES:
        shape = SHAPES[name]
        place = Path(tempfile.mkdtemp(dir=folder))
        shape.write(place / shape.name, shape.megabytes)
        ingest, analyze, report, operations = _costs(name, place, shape.name)
        ratio(f"CPU of analyze to ingest, {name}", analyze.cpu / ingest.cpu, 1.0)
        ratio(f"CPU of report less analyze to {MOST_MORE_S} s, {name}", (report.cpu - analyze.cpu) / MOST_MORE_S, 1.0)
        if operations > 1e6:
            _each(analyze, operations, MOST_US, MOST_BYTES)
    if not names:
        many(folder)


def many(folder: Path) -> None:
    """The largest trace: what an operation costs where there are millions of them."""
    nsys.tile(nsys.STORM, folder / "many.sqlite", round(MILLIONS * _BYTES_AN_OPERATION))
    _, analyze, _, operations = _costs(f"{MILLIONS:g} million operations", folder, "many.sqlite")
    _each(analyze, operations, MANY_US, MANY_BYTES)


def _costs(title: str, place: Path, name: str) -> tuple[Cost, Cost, Cost, int]:
    """What ingest, analyze and report cost, and the number of GPU operations."""
    store = place / "store"
    print(f"{title}, {_megabytes(place / name):,.0f} MB")
    ingest = measure("ingest", *TOOL, "ingest", str(place / name), "-o", str(store))
    operations = sum(pq.read_metadata(file).num_rows for file in (store / "gpu_ops").rglob("*.parquet"))
    (place / name).unlink() if (place / name).is_file() else None
    analyze = measure("analyze the store", *TOOL, "analyze", str(store), "-f", "json")
    report = measure("report from the store", *TOOL, "report", str(store), "-o", str(place / "report.html"))
    print(f"  {operations:,} GPU operations")
    return ingest, analyze, report, operations


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else path.iterdir()
    return sum(file.stat().st_size for file in files) / 1e6


def _each(cost: Cost, operations: int, most_us: float, most_bytes: int) -> None:
    ratio(f"CPU of analyze an operation to {most_us:g} us", 1e6 * cost.cpu / operations / most_us, 1.0)
    ratio(f"peak memory an operation to {most_bytes} bytes", cost.memory * 2**20 / operations / most_bytes, 1.0)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        judging(Path(folder), sys.argv[1:])


if __name__ == "__main__":
    main()
