"""How much more reading a large dump of the flight recorder costs than `pickle.load` of it, and lines of NCCL Inspector."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import measure, ratio

CALLS, LINES = 130_000, 260_000
LOAD = "import pickle, sys; content = pickle.load(open(sys.argv[1], 'rb'))"
READ = """
import sys
from pathlib import Path
from traceanalyzer.evidence.nccl_records import KIND
from traceanalyzer.ingest.bytes.source import source_of

class Sink:
    def add(self, table, batch): pass
    def health(self, *told): pass

path = Path(sys.argv[1])
KIND.read(source_of(path, path, None), Sink(), lambda size: None)
"""


def write(folder: str, calls: int, lines: int) -> None:
    """A dump of so many calls, each with nine frames, as PyTorch pickles it; and so many lines of Inspector 4.0."""
    from tests.evidence.nccl_records.made import dump, entry, frame, inspector, pickled

    library = [
        frame(100 + depth, f"f{depth}", "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py")
        for depth in range(8)
    ]
    entries = [entry(number, at=number / 10, sizes=(1024 * (number % 997 + 1),)) for number in range(1, calls + 1)]
    for number, one in enumerate(entries):
        one["frames"] = [*library, frame(number % 400)]
    (Path(folder) / "dump.pickle").write_bytes(pickled(dump(entries)))
    calls_of_lines = [(number, 1 << 20, 50 + number % 9) for number in range(1, lines + 1)]
    (Path(folder) / "inspector.log").write_bytes(inspector("v4.0", calls_of_lines))


def nccl_records(folder: Path) -> None:
    # In a process of its own: the peak of a command counts what its parent holds when it starts.
    make = f"import sys; from benchmarks.nccl_records import write; write(sys.argv[1], {CALLS}, {LINES})"
    subprocess.run([sys.executable, "-c", make, str(folder)], check=True)
    path, lines = folder / "dump.pickle", folder / "inspector.log"
    print(f"Flight recorder, {path.stat().st_size / 1e6:,.0f} MB, {CALLS:,} calls")
    load = measure("pickle.load", sys.executable, "-c", LOAD, str(path))
    read = measure("read", sys.executable, "-c", READ, str(path))
    ratio("CPU of reading to pickle.load", read.cpu / load.cpu, 5)
    ratio("peak memory of reading to pickle.load", read.memory / load.memory, 2)
    print(f"NCCL Inspector, {lines.stat().st_size / 1e6:,.0f} MB, {LINES:,} lines")
    measure("read", sys.executable, "-c", READ, str(lines))
    path.unlink()
    lines.unlink()
