"""What records what, for each profiler that writes Chrome's trace events."""

from __future__ import annotations

from traceanalyzer.ingest.formats.kineto.advice import snippets
from traceanalyzer.result.recording.diagnosis import Contents
from traceanalyzer.result.recording.ways import Way, Ways

_PYTORCH = {
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
    "lost_records": Way("fewer steps, after at least two of warm-up: schedule(wait=1, warmup=2, active=3, repeat=1)"),
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
}
_JAX = {
    "gpu": Way("jax.profiler.trace where jax.devices() lists the GPU, or nsys"),
    "launches": Way("nsys profile --trace=cuda,nvtx"),
    "whole_file": Way("fewer steps", mind="the JSON of jax.profiler ends after about a million events"),
    "iterations": Way("jax.profiler.start_trace after the first iterations, and stop_trace some iterations later"),
    "steps": Way('jax.profiler.StepTraceAnnotation("train_step", step_num=step) around each step'),
}
_OTHERS = {
    "gpu": Way("torch.profiler, or nsys for any program on an NVIDIA GPU"),
    "launches": Way("torch.profiler, or nsys for any program on an NVIDIA GPU"),
    "replay": Way("record some launches of the graph, after its capture"),
    "iterations": Way("record several iterations, after the warm-up"),
    "whole_file": Way("let the program end its recording, and copy the file when it is complete"),
}


def ways(held: Contents, producer: str) -> Ways:
    """How the profiler that wrote a recording records: those of PyTorch and JAX are told by name, or by the program."""
    if producer.startswith("PyTorch") or held.framework == "pytorch":
        return Ways(_PYTORCH, snippets.of_torch)
    if held.framework == "jax":
        return Ways(_JAX, snippets.of_jax, elsewhere=("gpu", "launches"))
    return Ways(_OTHERS, snippets.of_others, elsewhere=tuple(_OTHERS))
