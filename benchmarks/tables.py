"""How long 100 MB of PyTorch's own tables take: sums of the profiler, and an execution trace."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from benchmarks.measure import measure, milliseconds

FIXTURES = Path("tests/fixtures/evidence/operator_tables")
MEGABYTES = 100
TOOL = (sys.executable, "-m", "traceanalyzer", "analyze")


def write_averages(path: Path, megabytes: int) -> None:
    """The fixture again and again, each with another total."""
    text = (FIXTURES / "key_averages.txt").read_text()
    with path.open("w") as stream:
        number = 0
        while stream.tell() < megabytes * 1_000_000:
            stream.write(text.replace("128.333ms", f"{100 + number / 1000:.3f}ms"))
            number += 1


def write_one_table(path: Path, megabytes: int) -> None:
    """One table with as many rows, each with a name of its own."""
    lines = (FIXTURES / "key_averages.txt").read_text().splitlines(keepends=True)
    with path.open("w") as stream:
        stream.writelines(lines[:3])
        number = 0
        while stream.tell() < megabytes * 1_000_000:
            stream.write(lines[6].replace("aten::copy_".rjust(60), f"aten::op{number}".rjust(60)))
            number += 1
        stream.writelines(lines[-3:])


def write_nodes(path: Path, megabytes: int) -> None:
    """The nodes of the fixture again and again, with ids of their own."""
    content = json.loads(gzip.decompress((FIXTURES / "execution_trace.json.gz").read_bytes()))
    nodes = content.pop("nodes")
    step = 1 + max(node["id"] for node in nodes)
    with path.open("w") as stream:
        stream.write(json.dumps(content)[:-1] + ', "nodes": [')
        turn = 0
        while stream.tell() < megabytes * 1_000_000:
            for node in nodes:
                node["id"] += step
                node["ctrl_deps"] += step
                node["attrs"][0]["value"] += step
            stream.write(",\n" * bool(turn) + ",\n".join(map(json.dumps, nodes)))
            turn += 1
        stream.write("]}")


def tables(folder: Path) -> None:
    for name, write in (("averages", write_averages), ("one table", write_one_table), ("execution trace", write_nodes)):
        path = folder / f"{name.replace(' ', '_')}.txt"
        write(path, MEGABYTES)
        print(f"PyTorch's {name}, {path.stat().st_size / 1e6:,.0f} MB")
        cost = measure("analyze", *TOOL, str(path))
        milliseconds("wall time", cost.wall * 1000, 10_000)
        path.unlink()
