"""The table in docs/formats.md of what every file of others gave is what the tool gives now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.cli.common import exit_code

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
COUNTED = ("gpu_ops", "api_calls", "host_ranges", "counters", "memory_events")
HEAD = (
    "file",
    "what it is",
    "exit",
    "read as",
    *(name.replace("_", " ") for name in COUNTED),
    "health",
    "what the user is told",
)
LONGEST = 130
# What the files are, by how their paths begin; the longest that fits counts.
WHAT = {
    "extras/execution_trace": "execution trace of PyTorch (operators, no times)",
    "extras/gpu_metrics": "NVML samples, one JSON object a line",
    "extras/jax_vm": "JAX profile: XLA's tracks named by metadata",
    "extras/key_averages": "table of the profiler's sums",
    "extras/memory_snapshot": "memory snapshot of PyTorch",
    "extras/ncu_details": "Nsight Compute, details page",
    "extras/ncu_raw": "Nsight Compute, raw page",
    "extras/nvml_dataloader": "PyTorch trace recorded beside the NVML samples",
    "extras/stack_memory": "PyTorch trace with stacks and memory events",
    "public/chrome/chrome_devtools": "timeline of Chrome's DevTools",
    "public/chrome/speedscope_trace_event": "Chrome trace without GPU work; a corner of the format",
    "public/cpu_profile/linux_perf": "output of perf script",
    "public/cpu_profile/pprof": "pprof profile (a gzipped protocol buffer)",
    "public/cpu_profile/speedscope": "speedscope profile",
    "public/cpu_profile/stackcollapse": "collapsed stacks",
    "public/gpu_metrics/nvidia_smi": "nvidia-smi --query-gpu",
    "public/gpu_metrics/prometheus": "metrics of nvidia-smi for Prometheus",
    "public/kineto/hta/cpu_only": "PyTorch trace of a rank without GPU",
    "public/kineto/hta/nccl": "PyTorch trace of a rank with NCCL, 2023",
    "public/kineto/kineto_tb_plugin": "ResNet-50 with a slow loader, PyTorch 1.8, 2021",
    "public/kineto/tracelens": "PyTorch trace of a B200 with stacks, 2025",
    "public/kineto_multirank/param_dlrm_8rank": "one of eight ranks of DLRM, 2023",
    "public/malformed/lfs_pointer": "Git LFS pointer called .sqlite",
    "public/malformed/pipit": "SQLite that is no export",
    "public/memory_timeline": "memory timeline of PyTorch",
    "public/nsys": "export of Nsight Systems 2022 on Windows",
    "public/reference": "summary of collectives as CSV",
}


def files() -> list[Path]:
    """Every file of others and every extra, and the ranks of one job together."""
    found = [p for kind in ("extras", "public") for p in sorted((CORPUS / kind).rglob("*")) if p.is_file()]
    return [*(p for p in found if p.name != "MANIFEST.tsv"), *sorted((CORPUS / "public/kineto_multirank").iterdir())]


def row(path: Path) -> tuple[str, ...]:
    name = str(path.relative_to(CORPUS))
    what = "the eight ranks together" if path.is_dir() else WHAT[max((w for w in WHAT if name.startswith(w)), key=len)]
    try:
        trace = ta.load(path)
    except ta.InputError as error:
        what_is_wrong = str(error).removeprefix(f"{path}: ").split("; ")[0]
        return (f"`{name}`", what, str(error.exit_code), *[""] * (len(COUNTED) + 2), shortened(what_is_wrong))
    result = ta.analyze(trace)
    first = trace.inputs[0]
    ranks = [i.rank for i in trace.inputs if i.rank is not None]
    job = f", {rank_list(ranks)} of {first.world_size}" if ranks else ""
    counts = [f"{trace.table(table).num_rows:,}" for table in COUNTED]
    health = ", ".join(f"{h.code} {h.severity} {h.count:,}" for h in result.health)
    code = str(exit_code(result, None))
    return (f"`{name}`", what, code, first.producer + job, *counts, health, shortened(result.verdict.headline))


def rank_list(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."


def table() -> str:
    rows = [HEAD, ["---"] * len(HEAD), *map(row, files())]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n" for cells in rows)


@pytest.mark.corpus
@needs_corpus
def test_the_table_is_current():
    """After an intended change run: python -m tests.ingest.test_formats_table"""
    committed = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert committed.splitlines() == table().splitlines()


def test_the_table_names_no_place_on_a_machine():
    assert not re.search(r"/(?:home|root|work|tmp|mnt|Users)/", PAGE.read_text())


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])
