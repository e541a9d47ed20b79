"""What to record next time: which settings would add what a recording lacks, in the words of the profiler that made it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from traceanalyzer.result.recording.diagnosis import Contents, FileFacts, NextTime, Setting
from traceanalyzer.result.recording.snippets import snippets
from traceanalyzer.vocabulary.health import (
    GPU_WORK_MISSING,
    GRAPHS_HIDDEN,
    NOT_ALL_READ,
    NOT_RECORDED,
    PROFILER_ERRORS,
    TOO_LITTLE,
)


@dataclass(frozen=True)
class Way:
    """How one profiler records something: what to write, what it costs, and what to mind."""

    option: str
    cost: str = "little"
    mind: str | None = None


# What each setting gives, in the order in which they are listed. The first ones are what any verdict rests on.
GIVES = {
    "whole_file": "what could not be read of this file; Health says what it was",
    "gpu": "the kernels and copies, without which nothing can be judged",
    "launches": "the CUDA or HIP calls, which say when the host asked for each operation and why the GPU was idle before it",
    "lost_records": "the GPU operations that the profiler lost",
    "replay": "what the CUDA graph runs: this recording holds its capture and no launch of it",
    "iterations": "the GPU's work of whole iterations, of which this recording holds a handful of operations",
    "all_tables": "the tables that this export left out",
    "operators": "the operators, which name what the host did while the GPU waited",
    "mpi": "the calls of MPI, which say when a rank waits for others",
    "openacc": "the constructs of OpenACC, which name what the host did while the GPU waited",
    "osrt": "calls of the operating system that block: reading files, locks, sleeping",
    "steps": "steps, so that times are per iteration and start-up can be told from steady state",
    "graph_kernels": "the kernels inside CUDA graphs, which were recorded as a whole here",
    "rank": "which rank this file is, so that the ranks of a job can stand side by side",
    "collectives": "name, size and group of each collective",
    "samples": "samples of the host's stacks, which name the function that ran while the GPU was idle",
    "switches": "when the system ran each thread, which tells waiting from working where nothing else was recorded",
    "page_faults": "faults on managed memory, which say who touched the pages that move",
    "python_stacks": "Python frames, which lead from an idle GPU to a line of code",
    "shapes": "input shapes and types of operators",
    "memory": "allocations, with how much was allocated and reserved",
    "counters": "how busy the parts of the GPU were (SMs, tensor cores, memory, PCIe, NVLink), 10,000 times a second",
}
_OLD_NSYS = "where nsys does not know the option: torch.autograd.profiler.emit_nvtx(record_shapes=True) around the loop"
WAYS: dict[str, dict[str, Way]] = {
    "pytorch": {
        "gpu": Way(
            "ProfilerActivity.CUDA in activities",
            mind="called CUDA in ROCm builds of PyTorch too, while work of other accelerators is not read; only one tool at a time can "
            "trace a process: no nsys or ncu around it",
        ),
        "launches": Way("both ProfilerActivity.CPU and ProfilerActivity.CUDA in activities"),
        "whole_file": Way(
            "let the process leave the profiler's `with` block, and copy the file when it is complete",
            mind="names of code that broke the JSON are written correctly by newer PyTorch",
        ),
        "lost_records": Way(
            "fewer steps, after at least two of warm-up: schedule(wait=1, warmup=2, active=3, repeat=1)"
        ),
        "replay": Way(
            "let the profiler start after the capture: schedule(wait=..., warmup=2, active=3) with prof.step() around the replays",
            mind="torch.compile with CUDA graphs captures in its first three calls, serving engines while they start",
        ),
        "iterations": Way("schedule(wait=5, warmup=2, active=5) with prof.step() after each iteration"),
        "operators": Way("ProfilerActivity.CPU in activities", "some host time for each operator"),
        "steps": Way("schedule=..., and prof.step() after each iteration", mind="only both together mark steps"),
        "rank": Way("call torch.distributed.init_process_group before the profiler starts", "nothing"),
        "collectives": Way(
            "PyTorch of 2024 or later", "nothing", "it adds them by itself, for collectives of torch.distributed"
        ),
        "python_stacks": Way("with_stack=True", "slows the host on every Python call and makes the file much larger"),
        "shapes": Way("record_shapes=True", "some host time for each operator; holds on to inputs meanwhile"),
        "memory": Way("profile_memory=True", "some host time for each allocation"),
    },
    "nsys": {
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
        "operators": Way("--pytorch=autograd-shapes-nvtx", "some host time for each operator", _OLD_NSYS),
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
        "graph_kernels": Way(
            "--cuda-graph-trace=node", "can be considerable: each kernel of a graph is timed by itself"
        ),
        "rank": Way("one report a rank: start nsys under torchrun, not around it", "nothing"),
        "collectives": Way(
            "--trace=cuda,nvtx, and nsys export --include-blobs=true",
            "little",
            "NCCL writes sizes and groups into NVTX payloads, which an export leaves out unless asked",
        ),
        "shapes": Way("--pytorch=autograd-shapes-nvtx", "some host time for each operator", _OLD_NSYS),
        "memory": Way("--cuda-memory-usage=true", "can be considerable where memory is allocated all the time"),
        "counters": Way(
            "--gpu-metrics-devices=cuda-visible",
            mind="needs permission to read GPU counters, and counts whatever else runs on the GPU; older nsys calls it "
            "--gpu-metrics-device=all",
        ),
    },
    "jax": {
        "gpu": Way("jax.profiler.trace where jax.devices() lists the GPU, or nsys"),
        "launches": Way("nsys profile --trace=cuda,nvtx"),
        "whole_file": Way("fewer steps", mind="the JSON of jax.profiler ends after about a million events"),
        "iterations": Way("jax.profiler.start_trace after the first iterations, and stop_trace some iterations later"),
        "steps": Way('jax.profiler.StepTraceAnnotation("train_step", step_num=step) around each step'),
    },
    "other": {
        "gpu": Way("torch.profiler, or nsys for any program on an NVIDIA GPU"),
        "launches": Way("torch.profiler, or nsys for any program on an NVIDIA GPU"),
        "replay": Way("record some launches of the graph, after its capture"),
        "iterations": Way("record several iterations, after the warm-up"),
        "whole_file": Way("let the program end its recording, and copy the file when it is complete"),
    },
}
# What only PyTorch has of what nsys records, and what others do in its place.
_OF_PYTORCH = ("operators", "shapes")
_RANK_OF_MPI = Way("one report a rank: start nsys under mpirun or srun, not around it", "nothing")
# Health code that stops a rule -> the settings that would help; what stops one for want of a table is said where that is declared.
REMEDIES = {
    NOT_ALL_READ: ("whole_file",),
    GPU_WORK_MISSING: ("lost_records",),
    PROFILER_ERRORS: ("lost_records",),
    GRAPHS_HIDDEN: ("graph_kernels",),
    NOT_RECORDED: ("all_tables",),
    TOO_LITTLE: ("replay", "iterations"),
}


def profiler_of(file: FileFacts, contents: Contents) -> str:
    """Which profiler's words to use: pytorch, nsys, jax or other (a key of WAYS)."""
    if file.format == "nsys":
        return "nsys"
    if file.producer.startswith("PyTorch"):
        return "pytorch"
    return contents.framework or "other"


def _ways(profiler: str, contents: Contents) -> dict[str, Way]:
    """How this profiler records what, for this program."""
    ways = WAYS[profiler]
    if profiler != "nsys" or contents.framework == "pytorch":
        return ways
    return {name: way for name, way in ways.items() if name not in _OF_PYTORCH} | {"rank": _RANK_OF_MPI}


def missing(file: FileFacts, contents: Contents, codes: Set[str], grave: Set[str] = frozenset()) -> list[str]:
    """The names of the settings, in the order of GIVES, that would add what the recording lacks and its profiler can record.

    `codes` are the codes of the health notes that are more than information, `grave` of those that make judging impossible.
    """
    profiler = profiler_of(file, contents)
    ways = _ways(profiler, contents)
    built_on = contents.program.frameworks
    native = "Python" not in contents.program.languages
    operators = contents.host_ranges.get("operator", 0)
    has_gpu = bool(contents.gpu_operations)
    only_captured = contents.captured_launches > 0 and not (contents.graph_kernels or contents.graphs)
    lacks = {
        "gpu": not has_gpu,
        "launches": has_gpu and not contents.launch_recorded,
        "whole_file": NOT_ALL_READ in codes,
        "lost_records": has_gpu and bool(codes & {GPU_WORK_MISSING, PROFILER_ERRORS}),
        "replay": only_captured and TOO_LITTLE in codes,
        "iterations": not only_captured and TOO_LITTLE in grave,
        "all_tables": NOT_RECORDED in codes,
        "operators": not operators,
        "mpi": "MPI" in built_on and "mpi" not in contents.traced,
        "openacc": "OpenACC" in built_on and "openacc" not in contents.traced,
        "osrt": native and has_gpu and "osrt" not in contents.traced,
        "samples": native and has_gpu and "samples" not in contents.traced,
        "switches": native and has_gpu and "switches" not in contents.traced,
        "page_faults": contents.migrations > 0 and not contents.page_faults,
        "steps": not contents.steps,
        "graph_kernels": bool(contents.graphs),
        "rank": file.rank is None and (bool(contents.communication) or contents.processes > 1),
        "collectives": contents.communication > 0 and not contents.collectives,
        "python_stacks": not contents.host_ranges.get("python"),
        "shapes": operators > 0 and not contents.shapes,
        "memory": not contents.memory_events,
        # Several ranks with nsys each would compete for the counters of one GPU.
        "counters": has_gpu and not contents.counters and contents.processes <= 1,
    }
    return [name for name in GIVES if lacks[name] and name in ways]


def next_time(file: FileFacts, contents: Contents, names: list[str], needed_by: dict[str, list[str]]) -> NextTime:
    """The settings of `names` and what to paste. `needed_by` is {setting: rules that could not judge without it}."""
    profiler = profiler_of(file, contents)
    known = _ways(profiler, contents)
    ways = {name: known[name] for name in names}
    settings = [
        Setting(name, way.option, GIVES[name], way.cost, way.mind, needed_by.get(name, []))
        for name, way in ways.items()
    ]
    return NextTime(settings, snippets(profiler, contents, set(names)) if settings else [])
