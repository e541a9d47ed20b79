"""The commands that record with Nsight Systems, and what they need in the program."""

from __future__ import annotations

from collections.abc import Set

from traceanalyzer.ingest.formats.nsys.advice.marking import Marking, marking_of
from traceanalyzer.result.recording.diagnosis import Contents, Snippet
from traceanalyzer.vocabulary.traced import TRACEABLE


def snippets(contents: Contents, missing: Set[str]) -> list[Snippet]:
    """The command lines and, where steps or records are missing, what marks steps in the program and bounds the recording."""
    marking = marking_of(contents.program)
    bounded = bool(missing & {"steps", "lost_records"})
    wanted = {"cuda", "nvtx", *contents.traced} | {kind for kind in ("osrt", "mpi", "openacc") if kind in missing}
    options = [f"--trace={','.join(kind for kind in TRACEABLE if kind in wanted)}"]
    sampled = "samples" in contents.traced or "samples" in missing
    options.append("--sample=process-tree" if sampled else "--sample=none")
    switches = "switches" in contents.traced or "switches" in missing
    options.append("--cpuctxsw=process-tree" if switches else "--cpuctxsw=none")
    options += ["--pytorch=autograd-shapes-nvtx"] if missing & {"operators", "shapes"} else []
    options += ["--cuda-graph-trace=node"] if contents.graphs or contents.graph_kernels else []
    options += ["--cuda-memory-usage=true"] if contents.memory_events or "memory" in missing else []
    faults = contents.page_faults or "page_faults" in missing
    options += ["--cuda-um-cpu-page-faults=true", "--cuda-um-gpu-page-faults=true"] if faults else []
    options += ["--gpu-metrics-devices=cuda-visible"] if contents.counters or "counters" in missing else []
    options += marking.bounds if bounded else []
    launcher, rank = _launcher(contents, marking)
    name = f"run.rank%q{{{rank}}}" if rank else "run"
    record = [f"{launcher}nsys profile", *options, f"-o {name}", marking.command]
    exporting = f"nsys export --type sqlite{' --include-blobs=true' if 'collectives' in missing else ''}"
    export = (
        f'for report in run.rank*.nsys-rep; do {exporting} "$report"; done'
        if rank
        else f"{exporting} --output run.sqlite run.nsys-rep"
    )
    command = Snippet("With Nsight Systems", "shell", " \\\n    ".join(record) + "\n" + export)
    return [marking.snippet("steps" in missing), command] if bounded else [command]


def _launcher(contents: Contents, marking: Marking) -> tuple[str, str | None]:
    """What starts the ranks, and the variable that tells each its number; nothing where there is but one."""
    if "MPI" in contents.program.frameworks or (contents.processes > 1 and not marking.torchrun):
        ranks = contents.processes if contents.processes > 1 else "$RANKS"
        return f"mpirun -n {ranks} ", "OMPI_COMM_WORLD_RANK"
    if contents.processes > 1:
        return f"torchrun --nproc-per-node={max(len(contents.gpus), 1)} --no-python ", "RANK"
    return "", None
