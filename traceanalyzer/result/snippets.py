"""What to paste to record a better trace: complete, for each profiler, with what the last recording lacked called out."""

from __future__ import annotations

from collections.abc import Set

from traceanalyzer.result.diagnosis import Contents, Snippet

NEW = "  # missing so far"


def snippets(profiler: str, contents: Contents, missing: Set[str]) -> list[Snippet]:
    """Code and commands for `profiler` (pytorch, nsys, jax or other). What the recording has is kept, what is missing is added."""
    if profiler == "pytorch":
        return [_torch(missing)]
    if profiler == "nsys":
        return _nsys(contents, missing)
    if profiler == "jax":
        return [_jax(missing), *(_nsys(contents, frozenset()) if missing & {"gpu", "launches"} else [])]
    return [_torch(frozenset()), *_nsys(contents, frozenset())]


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
    bounded = bool(missing & {"steps", "lost_records"})
    several = contents.processes > 1
    options = ["--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"]
    options += ["--pytorch=autograd-shapes-nvtx"] if missing & {"operators", "shapes"} else []
    options += ["--cuda-graph-trace=node"] if contents.graphs or contents.graph_kernels else []
    options += ["--cuda-memory-usage=true"] if contents.memory_events or "memory" in missing else []
    options += ["--gpu-metrics-devices=cuda-visible"] if contents.counters or "counters" in missing else []
    options += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"] if bounded else []
    name = "run.rank%q{RANK}" if several else "run"
    launcher = f"torchrun --nproc-per-node={max(len(contents.gpus), 1)} --no-python " if several else ""
    record = [f"{launcher}nsys profile", *options, f"-o {name}", "python train.py"]
    export = (
        'for report in run.rank*.nsys-rep; do nsys export --type sqlite "$report"; done'
        if several
        else "nsys export --type sqlite --output run.sqlite run.nsys-rep"
    )
    command = Snippet("With Nsight Systems", "shell", " \\\n    ".join(record) + "\n" + export)
    return [_marks(NEW if "steps" in missing else ""), command] if bounded else [command]


def _marks(new: str) -> Snippet:
    lines = [
        "for step, batch in enumerate(loader):",
        "    if step == 10:",
        "        torch.cuda.profiler.start()  # cudaProfilerStart(): recording begins after the warm-up",
        f'    torch.cuda.nvtx.range_push(f"step_{{step}}"){new}',
        "    train_step(batch)",
        "    torch.cuda.nvtx.range_pop()",
        "    if step == 15:",
        "        torch.cuda.synchronize()",
        "        torch.cuda.profiler.stop()",
    ]
    return Snippet(
        "In the program, for Nsight Systems (here PyTorch; any NVTX and CUDA binding does)", "python", "\n".join(lines)
    )


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
