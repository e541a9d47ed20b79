"""What records what with Nsight Systems."""

from __future__ import annotations

from traceanalyzer.ingest.formats.nsys.advice.commands import snippets
from traceanalyzer.result.recording.diagnosis import Contents
from traceanalyzer.result.recording.ways import Way, Ways

_OLD = "where nsys does not know the option: torch.autograd.profiler.emit_nvtx(record_shapes=True) around the loop"
_KNOWN = {
    "gpu": Way("--trace=cuda,nvtx"),
    "launches": Way("--trace=cuda,nvtx"),
    "whole_file": Way("let nsys end by itself, and export the report again"),
    "lost_records": Way("a shorter stretch: --capture-range=cudaProfilerApi around a few steps"),
    "replay": Way(
        "--capture-range=cudaProfilerApi, with cudaProfilerStart() after the capture, around some launches of the graph",
        mind="--cuda-graph-trace=node shows the kernels inside",
    ),
    "iterations": Way(
        "--capture-range=cudaProfilerApi around several iterations after the warm-up",
        mind="without a capture range, record until the program ends",
    ),
    "all_tables": Way("nsys export without --tables", "nothing: the report has them"),
    "operators": Way("--pytorch=autograd-shapes-nvtx", "some host time for each operator", _OLD),
    "mpi": Way("mpi in --trace", "little", "tells Open MPI and MPICH apart by itself, or by --mpi-impl"),
    "openacc": Way("openacc in --trace"),
    "osrt": Way("osrt in --trace", "some host time for each call that blocks"),
    "samples": Way(
        "--sample=process-tree",
        "some host time, a thousand times a second",
        "--backtrace=dwarf follows code without frame pointers",
    ),
    "switches": Way(
        "--cpuctxsw=process-tree", mind="needs permission to trace the scheduler (perf_event_paranoid at most 1)"
    ),
    "page_faults": Way(
        "--cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true",
        "can be considerable: each fault takes longer",
    ),
    "steps": Way("an NVTX range named step_N around each iteration"),
    "graph_kernels": Way("--cuda-graph-trace=node", "can be considerable: each kernel of a graph is timed by itself"),
    "rank": Way("one report a rank: start nsys under torchrun, not around it", "nothing"),
    "collectives": Way(
        "--trace=cuda,nvtx, and nsys export --include-blobs=true",
        "little",
        "NCCL writes sizes and groups into NVTX payloads, which an export leaves out unless asked",
    ),
    "shapes": Way("--pytorch=autograd-shapes-nvtx", "some host time for each operator", _OLD),
    "memory": Way("--cuda-memory-usage=true", "can be considerable where memory is allocated all the time"),
    "counters": Way(
        "--gpu-metrics-devices=cuda-visible",
        mind="needs permission to read GPU counters, and counts whatever else runs on the GPU; older nsys calls it "
        "--gpu-metrics-device=all",
    ),
}
# What only PyTorch has of it, and what others do in its place.
_OF_PYTORCH = ("operators", "shapes")
_RANK_OF_MPI = Way("one report a rank: start nsys under mpirun or srun, not around it", "nothing")


def ways(held: Contents) -> Ways:
    """How it records the program of a recording."""
    if held.framework == "pytorch":
        return Ways(_KNOWN, snippets)
    others = {name: way for name, way in _KNOWN.items() if name not in _OF_PYTORCH}
    return Ways(others | {"rank": _RANK_OF_MPI}, snippets)
