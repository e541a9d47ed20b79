"""How much more reading a large memory snapshot costs than `pickle.load` of the same file."""

from __future__ import annotations

import lzma
import pickle
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import measure, ratio

FIXTURE = Path("tests/fixtures/evidence/memory/leak_activations.slow.snapshot.pickle.xz")
ENTRIES = 1_000_000
LOAD = "import pickle, sys; content = pickle.load(open(sys.argv[1], 'rb'))"
READ = """
import sys
from pathlib import Path
from traceanalyzer.evidence.memory_snapshot import KIND
from traceanalyzer.ingest.bytes.source import source_of

class Sink:
    def add(self, table, batch): pass
    def health(self, *told): pass

path = Path(sys.argv[1])
KIND.read(source_of(path, path, None), Sink(), lambda size: None)
"""


def grown(entries: int) -> dict[str, Any]:
    """The fixture with the blocks that came and went repeated until the history has so many entries, each with stacks of its own."""
    with lzma.open(FIXTURE) as stream:
        content = pickle.load(stream)
    trace = content["device_traces"][0]
    lasting = {
        block["address"] for one in content["segments"] for block in one["blocks"] if block["state"] != "inactive"
    }
    gone = [entry for entry in trace if not entry["action"].startswith("segment") and entry["addr"] not in lasting]
    took = trace[-1]["time_us"] - trace[0]["time_us"] + 1
    for turn in range(1, 1 + (entries - len(trace)) // len(gone)):
        trace += [
            entry | {"time_us": entry["time_us"] + turn * took, "frames": [dict(frame) for frame in entry["frames"]]}
            for entry in gone
        ]
    return content


def snapshots(folder: Path) -> None:
    path = folder / "snapshot.pickle"
    with path.open("wb") as stream:
        pickle.dump(grown(ENTRIES), stream)
    print(f"Memory snapshot, {path.stat().st_size / 1e6:,.0f} MB, {ENTRIES:,} entries")
    load = measure("pickle.load", sys.executable, "-c", LOAD, str(path))
    read = measure("read", sys.executable, "-c", READ, str(path))
    ratio("CPU of reading to pickle.load", read.cpu / load.cpu, 1.5)
    ratio("peak memory of reading to pickle.load", read.memory / load.memory, 1.3)
    path.unlink()
