"""`make bench`: time, CPU and peak memory of each command on a large tiled trace. Prints figures, asserts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tile import tile

FIXTURE = Path("tests/fixtures/kineto/dataloader.slow.pt.trace.json.gz")
MEGABYTES = int(os.environ.get("BENCH_MB", "340"))


def measure(label: str, *command: str) -> None:
    """Run one command and print its wall seconds, CPU seconds and peak resident memory."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    failed = "" if os.waitstatus_to_exitcode(status) in (0, 1) else "  FAILED"
    cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(f"{label:<28}{wall:8.1f} s wall{cpu:8.1f} s CPU{memory:10.0f} MiB{failed}", flush=True)


def main() -> None:
    tool = (sys.executable, "-m", "traceanalyzer")
    with tempfile.TemporaryDirectory() as folder:
        trace, store = Path(folder) / "trace.json", Path(folder) / "store"
        events = tile(FIXTURE, trace, MEGABYTES)
        print(f"{events:,} events, {trace.stat().st_size / 1e6:,.0f} MB")
        measure("json.load (stdlib)", sys.executable, "-c", f"import json; json.load(open({str(trace)!r}))")
        measure("ingest", *tool, "ingest", str(trace), "-o", str(store))
        measure("analyze the store", *tool, "analyze", str(store), "-f", "json")
        measure("report from the trace", *tool, "report", str(trace), "-o", str(Path(folder) / "report.html"))


if __name__ == "__main__":
    main()
