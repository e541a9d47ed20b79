"""Generated Chrome traces: one with every kind of event that is read, and random ones of a PyTorch run."""

from __future__ import annotations

import random
from typing import Any

from tests.support.kineto import KinetoTrace

AROUND = {"schemaVersion": 1, "distributedInfo": {"rank": 1, "world_size": 4}, "baseTimeNanoseconds": 10**18}
_NAMES = (
    ("process_name", 1, 0, "/device:GPU:0"),
    ("thread_name", 1, 7, "Stream #7(Compute)"),
    ("thread_name", 1, 8, "XLA Modules"),
    ("process_name", 2, 0, "/host:CPU"),
    ("thread_name", 2, 5, "python"),
)


def every_kind() -> list[dict[str, Any]]:
    """Events of all phases and categories, and some that only the names of their tracks explain."""
    events = [{"ph": "M", "name": n, "pid": p, "tid": t, "args": {"name": text}} for n, p, t, text in _NAMES]
    for n in range(12):
        events += _round(n, 100 * n)
    return events


def _round(n: int, t: int) -> list[dict[str, Any]]:
    stream, host = {"ph": "X", "pid": 1, "tid": 7}, {"pid": 2, "tid": 5}
    link = {"context_id": "$$1", "correlation_id": str(n)}
    kernel = {"kernel_details": "regs:28 static_shared:0 dynamic_shared:64 grid:8,1,1 block:128,1,1 occ_pct:50"}
    copy = {"memcpy_details": "kind_src:pinned kind_dst:device size:4096 dest:0 async:1"}
    collective = {"Collective name": "allreduce", "In msg nelems": 4096, "dtype": "BFloat16", "Group size": 8, "Seq": n}
    torch = {"device": 0, "stream": 9, "correlation": n + 1, "Process Group Ranks": "[0, 1]", **collective}
    memory = {"Addr": 1 << 47 | n, "Bytes": 512, "Total Allocated": 512 * n, "Device Type": 1, "Device Id": 0}
    return [
        {**stream, "name": "fusion", "ts": t + 20, "dur": 30.5, "args": link | kernel},
        {**stream, "name": "MemcpyH2D", "ts": t + 60, "dur": 9, "args": link | copy},
        {**stream, "tid": 8, "name": "jit_f", "ts": t, "dur": 90},
        {"ph": "X", **host, "name": "fusion", "ts": t + 1, "dur": 4, "args": link},
        {"ph": "X", **host, "name": "$a.py:3 f", "ts": t, "dur": 99, "args": {}},
        {"ph": "B", **host, "name": "step", "ts": t},
        {"ph": "E", **host, "name": "step", "ts": t + 98},
        {"ph": "b", **host, "cat": "rpc", "name": "send", "ts": t, "id": f"0x{n:x}", "scope": "s"},
        {"ph": "e", **host, "cat": "rpc", "name": "send", "ts": t + 9, "id": f"0x{n:x}", "scope": "s"},
        {"ph": "C", "pid": 2, "name": "memory (MiB)", "ts": t, "args": {"used": n * 1.5, "free": "7", "device": 0}},
        {"ph": "i", **host, "name": "[memory]", "ts": t, "s": "t", "args": memory},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 9, "ts": t, "dur": 50, "args": torch},
        {"ph": "X", **host, "cat": "cuda_runtime", "name": "cudaLaunchKernelExC_v11060", "ts": t + 7, "dur": 3,
         "args": {"correlation": n + 1, "External id": n}},
        {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": t, "dur": 2},
        {"ph": "X", **host, "cat": "xpu_runtime", "name": "urEnqueue", "ts": t, "dur": 2},
        {"ph": "s", **host, "cat": "ac2g", "name": "ac2g", "ts": t, "id": n},
    ]  # fmt: skip


def random_run(seed: int) -> KinetoTrace:
    """Steps with nested ranges on two threads, launches, copies and waits, on two GPUs; times with three decimals."""
    chance, trace = random.Random(seed), KinetoTrace()
    now = 0.0
    for step in range(4):
        begin = now
        for _ in range(chance.randint(3, 12)):
            thread, start = chance.choice((100, 101)), round(now + chance.uniform(0, 40), 3)
            end = round(start + chance.uniform(1, 30), 3)
            trace.range(chance.choice(("aten::mm", "aten::add")), start, end, category="cpu_op", thread=thread)
            trace.range("f.py(3): f", start, round(end + 2, 3), category="python_function", thread=thread)
            gpu, category = chance.randrange(2), chance.choice(("kernel", "kernel", "gpu_memcpy", "gpu_memset"))
            api = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync"}.get(category, "cudaMemsetAsync")
            name = {"kernel": f"gemm_{chance.randrange(5)}", "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)"}
            trace.op(
                round(end + chance.uniform(0, 50), 3),
                round(end + chance.uniform(51, 90), 3),
                launch=(round(start + 0.1, 3), round(start + 0.5, 3)),
                api=api,
                thread=thread,
                name=name.get(category, "Memset (Device)"),
                category=category,
                stream=chance.choice((7, 13)),
                device=gpu,
            )
            if chance.random() < 0.3:
                trace.call("cudaStreamSynchronize", round(end + 1, 3), round(end + 60, 3), thread=thread)
            now = end
        trace.range(f"ProfilerStep#{step}", begin, now)
    return trace
