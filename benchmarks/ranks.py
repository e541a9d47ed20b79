"""Whole jobs of many ranks, made by renumbering the ranks of a real one: time and memory by rank, beside Holistic Trace Analysis.

BENCH_RANKS says how many, such as 8,64,512; with 2048 it takes most of an hour.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, measure, ratio

JOB = Path("tests/fixtures/multirank/gpu_straggler.slow")
COUNTS = [int(text) for text in os.environ.get("BENCH_RANKS", "8,64,512").split(",")]
SMALLER = 512
"""Up to so many ranks take 2 GB at most, more of them 4 GB."""
TOOL = (sys.executable, "-m", "traceanalyzer")
# Parsing all ranks and breaking their time down: what Holistic Trace Analysis does first.
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files=dict(enumerate(sys.argv[1:])), trace_dir="")
trace.get_temporal_breakdown(visualize=False)
trace.get_gpu_kernel_breakdown(visualize=False)
"""
# PyTorch names so many ranks of a group, and leaves out the others.
_MOST_NAMED = 30
_RANK, _SIZE, _RANKS, _ALL_RANKS = "@rank@", "@size@", "@ranks@", "@all ranks@"


def ranks(folder: Path) -> None:
    """Run `ingest` and `report` on each number of ranks. Prints what they cost; `folder` needs room for 1 MB a rank."""
    costs: dict[int, Cost] = {}
    for count in COUNTS:
        job, store, page = folder / f"ranks-{count}", folder / f"store-{count}", folder / f"report-{count}.html"
        renumber(JOB, job, count)
        print(f"A job of {count} ranks, {sum(path.stat().st_size for path in job.iterdir()) / 1e6:,.0f} MB packed")
        runs = {
            "ingest": measure("ingest", *TOOL, "ingest", str(job), "-o", str(store)),
            "report from the store": measure("report from the store", *TOOL, "report", str(store), "-o", str(page)),
            "the same, one process": measure(
                "the same, one process", *TOOL, "report", str(store), "-j1", "-o", str(page)
            ),
            "report": measure("report from the traces", *TOOL, "report", str(job), "-o", str(page)),
        }
        costs[count] = runs["report"]
        for label, cost in runs.items():
            print(f"  {label}, a rank: {1e3 * cost.cpu / count:,.0f} ms CPU, {1e3 * cost.wall / count:,.0f} ms wall")
        size = page.stat().st_size if page.exists() else 0
        ratio("size of the report to 10 MB", size / 10e6, 1.0)
        most = 2 if count <= SMALLER else 4
        ratio(f"peak memory to {most} GB", max(cost.memory for cost in runs.values()) * 2**20 / (most * 1e9), 1.0)
        if count == COUNTS[0] and find_spec("hta"):
            files = [str(job / _file(rank)) for rank in range(count)]
            hta = measure("HTA: parse and break down", sys.executable, "-c", HTA, *files)
            ratio("CPU of report to HTA", costs[count].cpu / hta.cpu, 0.5)
    first, last = COUNTS[0], COUNTS[-1]
    ratio(f"CPU a rank of {last} to {first}", costs[last].cpu / last / (costs[first].cpu / first), 1.2)


def renumber(job: Path, folder: Path, count: int) -> None:
    """Write a job of `count` ranks: those of `job` again and again, all in one group. Late ranks are as late as they were."""
    folder.mkdir()
    templates = [_template(path) for path in sorted(job.iterdir())]
    named = ", ".join(str(rank) for rank in range(min(count, _MOST_NAMED))) + (", ..." if count > _MOST_NAMED else "")
    everyone = json.dumps(list(range(count)))
    for rank in range(count):
        text = templates[rank % len(templates)].replace(json.dumps(_RANK), str(rank))
        text = text.replace(json.dumps(_SIZE), str(count)).replace(json.dumps(_ALL_RANKS), everyone)
        with gzip.open(folder / _file(rank), "wb", compresslevel=1) as target:
            target.write(text.replace(_RANKS, f"[{named}]").encode())


def _file(rank: int) -> str:
    return f"rank{rank}.pt.trace.json.gz"


def _template(path: Path) -> str:
    """The trace with marks where a rank, the size of the job or its ranks stand."""
    trace = json.loads(lzma.decompress(path.read_bytes()))
    about = trace["distributedInfo"]
    about |= {"rank": _RANK, "world_size": _SIZE}
    for group in about["pg_config"]:
        group |= {"pg_size": _SIZE, "ranks": _ALL_RANKS}
    marks = {"Rank": _RANK, "Group size": _SIZE, "Process Group Ranks": _RANKS}
    for event in trace["traceEvents"]:
        args: dict[str, Any] = event.get("args", {})
        args |= {name: mark for name, mark in marks.items() if name in args}
    return json.dumps(trace)
