"""A folder as users have it: one trace, and beside it a file of every kind of evidence, from the fixtures of each."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

from tests.support.places import FIXTURES

_HERE = FIXTURES / "evidence"
TRACE = _HERE / "operator_tables" / "without_shapes.pt.trace.json.gz"
FILES: dict[str, tuple[str, ...]] = {
    "kernel_counters": ("kernel_counters/gemv.slow.details.csv.gz",),
    "cpu_profile": ("cpu_profile/tokenizer.speedscope.json.gz",),
    "gpu_log": ("gpu_log/gemm_sustained.smi.csv",),
    "memory_snapshot": ("memory/leak_activations.slow.snapshot.pickle.xz",),
    "nccl_records": (
        "nccl_records/fr_straggler/nccl_fr.rank0.pkl.xz",
        "nccl_records/fr_straggler/nccl_fr.rank1.pkl.xz",
    ),
    "deepspeed_log": ("deepspeed_log/zero1.log.txt",),
    "operator_tables": ("operator_tables/execution_trace.json.gz", "operator_tables/key_averages.txt"),
}
"""By kind, in the order in which a reader expects their sections: kernels, host, GPU, memory, ranks, frameworks."""


def files_of(kind: str) -> list[Path]:
    return [_HERE / name for name in FILES[kind]]


def content_of(path: Path) -> bytes:
    """What is in a fixture, unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else lzma.decompress(data) if path.suffix == ".xz" else data


def assemble(folder: Path, *kinds: str) -> Path:
    """Write the trace and the files of these kinds into a new folder, as they lie in the fixtures."""
    folder.mkdir()
    for path in (TRACE, *(path for kind in kinds for path in files_of(kind))):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder
