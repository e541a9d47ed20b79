"""What to paste to record a better trace with the profilers of PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Sequence, Set

from traceanalyzer.result.recording.diagnosis import Contents, Snippet
from traceanalyzer.result.recording.ways import NEW


def of_torch(held: Contents, missing: Set[str]) -> Sequence[Snippet]:
    """`torch.profiler`."""
    return (_torch(missing),)


def of_jax(held: Contents, missing: Set[str]) -> Sequence[Snippet]:
    """`jax.profiler`."""
    return (_jax(missing),)


def of_others(held: Contents, missing: Set[str]) -> Sequence[Snippet]:
    """Where nobody knows what recorded: a program in a known language is not one of PyTorch."""
    return () if held.program.languages else (_torch(frozenset()),)


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
