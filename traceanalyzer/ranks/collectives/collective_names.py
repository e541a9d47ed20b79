"""What a recorded name says about a collective: its kind, how large it is, and how fast the links between GPUs could carry it.

Pure functions over single names; tables call them on the values of a dictionary.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import prod

# Read from the top, in the letters of the name alone: allreduce, _allgather_base, nccl:all_to_all, ncclDevKernel_ReduceScatter_Sum_f32.
_KINDS = (
    ("barrier", "barrier"),
    ("allreduce", "all-reduce"),
    ("crossdevicereduce", "all-reduce"),
    ("quickreduce", "all-reduce"),
    ("allgather", "all-gather"),
    ("reducescatter", "reduce-scatter"),
    ("alltoall", "all-to-all"),
    ("sendrecv", "send-receive"),
    ("broadcast", "broadcast"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("recv", "receive"),
    ("send", "send"),
    ("dispatch", "all-to-all"),
    ("combine", "all-to-all"),
    ("reduce", "reduce"),
)
SYNCHRONIZING = frozenset({"barrier", "all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
"""Kinds that no rank can leave before every rank has arrived. A broadcast or a send may end where others have not begun."""
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
"""Kinds with a root. Ranks may leave them before others arrive; those whose parts end together waited for the last one all the same."""
SAME_SIZE = frozenset({"all-reduce", "all-gather", "reduce-scatter"})
"""Kinds for which all ranks give the same size."""

_DTYPES = (
    (re.compile(r"float8|e4m3|e5m2|bool|byte|char|u?int8"), 1),
    (re.compile(r"b?float16|half|short|int16"), 2),
    (re.compile(r"double|float64|long|int64"), 8),
    (re.compile(r"float|int"), 4),
)

# Nominal NVLink bandwidth of one GPU in one direction, in GB/s (NVIDIA's data sheets give both directions together), by the part of the
# name that only boards on a full NVLink fabric have. PCIe and bridged boards are left out: what joins them is not in a trace.
_NVLINK = (
    (re.compile(r"NVL\b|PCIe|MIG"), None),
    (re.compile(r"\bG?B[23]00\b"), 900.0),
    (re.compile(r"\bH200\b|\bH100\b.*HBM3|\bH20\b"), 450.0),
    (re.compile(r"\b[AH]800\b.*(?:SXM|HBM)"), 200.0),
    (re.compile(r"\bA100-SXM"), 300.0),
    (re.compile(r"\bV100-SXM"), 150.0),
)


@lru_cache(maxsize=1 << 16)
def kind_of(name: str) -> str | None:
    """all-reduce, all-gather, reduce-scatter, ..., from the name of a collective, an operator or a kernel; None when it says none."""
    own = re.split(r"[(<]", name.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    letters = re.sub(r"[^a-z]", "", own.lower())
    return next((kind for part, kind in _KINDS if part in letters), None)


def bus_factor(kind: str | None, ranks: int) -> float | None:
    """Bytes over the busiest link for each byte of the message: bus bandwidth = factor x size / time.

    Source: NCCL tests, doc/PERFORMANCE.md. None for kinds whose traffic the size does not tell.
    """
    if kind is None or ranks < 2:
        return None
    if kind == "all-reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all-gather", "reduce-scatter", "all-to-all"):
        return (ranks - 1) / ranks
    return 1.0 if kind in ("broadcast", "reduce") else None


def nvlink(gpu: str | None) -> float | None:
    """Nominal NVLink bandwidth of a GPU in one direction, GB/s; None where the name does not promise any."""
    return next((rate for pattern, rate in _NVLINK if pattern.search(gpu or "")), None)


def dtype_bytes(dtype: str) -> int | None:
    """Size of one element of a type as PyTorch names it ("float", "c10::BFloat16", "long int"); None for an unknown one."""
    return next((size for pattern, size in _DTYPES if pattern.search(dtype.lower())), None)


def message_bytes(shapes: str, dtypes: str) -> int | None:
    """Size of the first argument of an operator, a tensor or a list of them, from its recorded shapes and types (JSON)."""
    try:
        shape, dtype = json.loads(shapes)[0], json.loads(dtypes)[0]
        tensors = [shape] if shape and isinstance(shape[0], int) else shape
        elements = sum(prod(tensor) for tensor in tensors)
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    size = dtype_bytes(str(dtype))
    return elements * size if size and tensors else None


def in_one_machine(group_ranks: str | None, gpus: int) -> bool | None:
    """Whether the ranks of a group (JSON) share a machine of so many GPUs, ranks being dealt out machine by machine.

    None when the ranks are not told.
    """
    try:
        ranks = [int(rank) for rank in json.loads(group_ranks or "")]
    except (ValueError, TypeError):
        return None
    return len({rank // max(gpus, 1) for rank in ranks}) == 1 if ranks else None
