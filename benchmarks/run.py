"""`make bench`: time, CPU and peak memory of each command on large tiled traces, beside other ways to read them, how both grow
with the input dimension by dimension, what a history of 10,000 captures costs, and how fast a page of a million slices, and call
stacks of 100,000 nodes, are in a browser.

Prints figures and asserts nothing. BENCH_MB is the size of the main trace; BENCH_TMP a folder with room for eight times that;
BENCH_STRAGGLERS a checkout or git directory of github.com/ByteDance-Seed/StragglerAnalysis, beside which the job replay is held then.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.counters import counters
from benchmarks.cpu_profiles import cpu_profiles
from benchmarks.deepspeed_logs import deepspeed_logs
from benchmarks.gpu_logs import gpu_logs
from benchmarks.growth import growth
from benchmarks.history import history
from benchmarks.job_replay import job_replay
from benchmarks.judging import judging
from benchmarks.measure import Cost, measure, ratio
from benchmarks.nccl_records import nccl_records
from benchmarks.nsys import nsys
from benchmarks.page import page
from benchmarks.ranks import ranks
from benchmarks.snapshots import snapshots
from benchmarks.stacks import stacks
from benchmarks.stragglers import stragglers
from benchmarks.tables import tables
from benchmarks.tile import tile

FIXTURE = Path("tests/fixtures/kineto/dataloader.slow.pt.trace.json.gz")
STACKS = Path("tests/fixtures/kineto/gc_stack.slow.pt.trace.json.gz")
MEGABYTES = int(os.environ.get("BENCH_MB", "340"))
TOOL = (sys.executable, "-m", "traceanalyzer")
# Parsing one rank and breaking its time down: what Holistic Trace Analysis does first.
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
trace.get_temporal_breakdown(visualize=False)
trace.get_gpu_kernel_breakdown(visualize=False)
"""
ORJSON = "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())"


def kineto(folder: Path) -> None:
    trace, packed, store = folder / "trace.json", folder / "trace.json.gz", folder / "store"
    events = tile(FIXTURE, trace, MEGABYTES)
    with trace.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(plain, target, 1 << 20)
    print(f"Kineto, {trace.stat().st_size / 1e6:,.0f} MB, {events:,} events")
    orjson = measure("orjson.loads", sys.executable, "-c", ORJSON, str(trace)) if find_spec("orjson") else None
    hta = measure("HTA: parse and break down", sys.executable, "-c", HTA, str(trace)) if find_spec("hta") else None
    ingest = measure("ingest", *TOOL, "ingest", str(trace), "-o", str(store))
    unpacked = measure("ingest, from .gz", *TOOL, "ingest", str(packed), "-o", str(store))
    analyze = measure("analyze the store", *TOOL, "analyze", str(store), "-f", "json")
    report = measure("report from the trace", *TOOL, "report", str(trace), "-o", str(folder / "report.html"))
    if orjson:
        ratio("CPU of ingest to orjson.loads", ingest.cpu / orjson.cpu, 0.8)
        ratio("peak memory of ingest to orjson.loads", ingest.memory / orjson.memory, 0.12)
    if hta:
        ratio("CPU of ingest to HTA", ingest.cpu / hta.cpu, 0.17)
        ratio("CPU of report to HTA", report.cpu / hta.cpu, 0.3)
    ratio("CPU of .gz to plain", unpacked.cpu / ingest.cpu, 1.15)
    ratio("CPU of analyze to ingest", analyze.cpu / ingest.cpu, 1.0)
    tile(STACKS, trace, MEGABYTES)
    ingest = measure("ingest, with Python stacks", *TOOL, "ingest", str(trace), "-o", str(store))
    analyze = measure("analyze the store", *TOOL, "analyze", str(store), "-f", "json")
    ratio("CPU of analyze to ingest, with Python stacks", analyze.cpu / ingest.cpu, 1.0)
    trace.unlink()
    packed.unlink()
    small, large = (_ingest_of(folder, int(MEGABYTES * factor)) for factor in (0.25, 3.5))
    ratio("peak memory of the largest to the smallest", large.memory / small.memory, 1.15)


def _ingest_of(folder: Path, megabytes: int) -> Cost:
    trace = folder / f"trace-{megabytes}.json"
    tile(FIXTURE, trace, megabytes)
    cost = measure(f"ingest, {megabytes:,} MB", *TOOL, "ingest", str(trace), "-o", str(folder / "store"))
    trace.unlink()
    return cost


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        kineto(Path(folder))
        nsys(Path(folder))
        judging(Path(folder))
        ranks(Path(folder))
        job_replay()
        snapshots(Path(folder))
        nccl_records(Path(folder))
        deepspeed_logs(Path(folder))
        counters(Path(folder))
        gpu_logs(Path(folder))
        cpu_profiles(Path(folder))
        tables(Path(folder))
        growth(Path(folder))
        history(Path(folder))
        page(Path(folder))
        stacks(Path(folder))
    if "BENCH_STRAGGLERS" in os.environ:
        stragglers(Path(os.environ["BENCH_STRAGGLERS"]))


if __name__ == "__main__":
    main()
