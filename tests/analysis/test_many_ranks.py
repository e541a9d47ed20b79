"""A job of many ranks: those of a recorded one again and again, analysed in one process and in several."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from benchmarks.ranks import renumber
from tests.cli.test_cli import run
from tests.support.places import FIXTURES
from traceanalyzer.ingest.storing import ingest_to_store

STRAGGLER = FIXTURES / "multirank" / "gpu_straggler.slow"
RANKS = 24


def thinned(job: Path, folder: Path) -> Path:
    """The traces without operators, which are most of their events."""
    folder.mkdir()
    for path in job.iterdir():
        trace = json.loads(lzma.decompress(path.read_bytes()))
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("cat") != "cpu_op"]
        (folder / path.name).write_bytes(lzma.compress(json.dumps(trace).encode(), preset=0))
    return folder


def test_many_ranks_in_memory_and_in_two_processes_give_the_same(tmp_path, capsysbinary):
    job, store = tmp_path / "job", tmp_path / "store"
    renumber(thinned(STRAGGLER, tmp_path / "thin"), job, RANKS)
    ingest_to_store([job], store, "test")
    code, alone = run(capsysbinary, "analyze", store, "-f", "json", "--jobs", 1)[:2]
    assert (code, alone) == run(capsysbinary, "analyze", store, "-f", "json", "--jobs", 2)[:2]
    result = json.loads(alone)
    assert (code, len(result["devices"]), len(result["job"]["clocks"])) == (0, RANKS, RANKS)
    assert result["job"]["matched_share"] > 0.9
    assert {late["rank"] % 4 for late in result["job"]["late_ranks"]} == {2}
