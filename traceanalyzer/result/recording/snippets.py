"""What to paste to record a better trace: complete, for each profiler, with what the last recording lacked called out."""

from __future__ import annotations

from collections.abc import Set

from traceanalyzer.result.recording.diagnosis import Contents, Snippet
from traceanalyzer.result.recording.marking import NEW, Marking, marking_of

TRACEABLE = (
    "cuda",
    "nvtx",
    "osrt",
    "mpi",
    "ucx",
    "openacc",
    "openmp",
    "cublas",
    "cudnn",
    "cusparse",
    "vulkan",
    "opengl",
)
"""What nsys --trace takes, in the order in which it is written."""


def snippets(profiler: str, contents: Contents, missing: Set[str]) -> list[Snippet]:
    """Code and commands for `profiler` (pytorch, nsys, jax or other). What the recording has is kept, what is missing is added."""
    if profiler == "pytorch":
        return [_torch(missing)]
    if profiler == "nsys":
        return _nsys(contents, missing)
    if profiler == "jax":
        return [_jax(missing), *(_nsys(contents, frozenset()) if missing & {"gpu", "launches"} else [])]
    nsys = _nsys(contents, frozenset())
    return nsys if contents.program.languages else [_torch(frozenset()), *nsys]


def _torch(missing: Set[str]) -> Snippet:
    def new(*names: str) -> str:
        return NEW if missing & set(names) else ""

    active = 3 if "lost_records" in missing else 5
    lines = [
        "from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler",
        "",
        "with profile(",
        f"    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],{new('gpu', 'launches', 'operators')}",
        f"    schedule=schedule(wait=1, warmup=2, active={active}, repeat=1),{new('steps', 'lost_records')}",
        '    on_trace_ready=tensorboard_trace_handler("traces", use_gzip=True),  # one file a rank',
        f"    record_shapes=True,{new('shapes')}",
        f"    with_stack=True,{new('python_stacks')}",
        f"    profile_memory=True,{new('memory')}",
        ") as prof:",
        "    for batch in loader:",
        "        train_step(batch)",
        f"        prof.step(){new('steps')}",
    ]
    return Snippet("With torch.profiler", "python", "\n".join(lines))


def _nsys(contents: Contents, missing: Set[str]) -> list[Snippet]:
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


def _jax(missing: Set[str]) -> Snippet:
    mark = NEW if "steps" in missing else ""
    lines = [
        "import jax",
        "",
        'with jax.profiler.trace("traces"):  # writes traces/plugins/profile/*/*.trace.json.gz',
        "    for step in range(5):  # after a few steps of warm-up",
        f'        with jax.profiler.StepTraceAnnotation("train_step", step_num=step):{mark}',
        "            state = train_step(state, next(batches))",
        "    jax.block_until_ready(state)",
    ]
    return Snippet("With jax.profiler", "python", "\n".join(lines))
