"""Captures of torch.profiler that land whole: written under a hidden name, and renamed when the last rank is done."""

from collections.abc import Callable
from pathlib import Path

import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule


def landing_in(folder: str, name: str) -> Callable[[profile], None]:
    """What `on_trace_ready` takes: each capture becomes a folder `<name>-step<N>` in `folder`, with a file a rank. `name` is the same
    on all ranks and another one in each run, such as the job's with its number."""
    rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0

    def ready(prof: profile) -> None:
        capture = f"{name}-step{prof.step_num}"
        unfinished = Path(folder, f".{capture}")
        unfinished.mkdir(parents=True, exist_ok=True)
        prof.export_chrome_trace(str(unfinished / f"rank{rank}.pt.trace.json.gz"))
        if dist.is_available() and dist.is_initialized():
            dist.barrier()  # all ranks have written theirs
        if rank == 0:
            unfinished.rename(Path(folder, capture))

    return ready


def profiled(folder: str, name: str) -> profile:
    """Ten steps out of every two thousand, after two that are not kept. Call `step()` of it once a step."""
    return profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(skip_first=10, wait=1988, warmup=2, active=10, repeat=0),
        on_trace_ready=landing_in(folder, name),
        record_shapes=True,
    )
