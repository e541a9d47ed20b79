"""What a recorded name means: what an API call does and whether a kernel communicates.

Pure functions over single names. A trace has millions of events but only thousands of names, so importers call them on
the values of a dictionary (`map_names`), never per event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from traceanalyzer.names import function_path

_API_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+$")
_API_VENDOR = re.compile(r"^(?:cuda|cu|hip)(?=[A-Z])")

# Read from the top; the first pattern that matches the name behind its vendor prefix decides.
_API_CLASSES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        # Host functions run on a host thread: not a launch.
        (r"LaunchHostFunc", "other"),
        (r"(?:Ext|Hcc|Drv)?(?:Module)?Launch(?:Kernel|Cooperative|MultiKernel|Grid|ByPtr|$)", "launch"),
        (r"GraphLaunch", "launch"),
        (r"(?:Device|Stream|Event|Ctx|Thread)Synchronize", "sync"),
        # `Memset` moves bytes, `MemSetAccess` changes a mapping.
        (r"Memcpy|Memset|MemPrefetch", "copy"),
        (r"Mem[A-Z]|Malloc|Free|Host(?:Alloc|Malloc|Free|Register|Unregister|Get)", "memory"),
        (r"Array(?:3D)?(?:Create|Destroy)|MipmappedArray(?:Create|Destroy)|Ipc\w*MemHandle", "memory"),
        (r"Event|StreamWaitEvent", "event"),
    )
)


def plain_api_name(raw: str) -> str:
    """The function name without the suffixes that name an ABI version or a default-stream flavour."""
    return _API_SUFFIX.sub("", raw) or raw


def api_class(name: str) -> str:
    """launch, sync, copy, memory, event or other, for a CUDA or HIP runtime or driver function."""
    rest, found = _API_VENDOR.subn("", plain_api_name(name))
    if found:
        for pattern, result in _API_CLASSES:
            if pattern.match(rest):
                return result
    return "other"


COMPUTE, COMMUNICATION = "compute", "communication"

# (pattern, class), read from the top, matched at the start of the function's own name or of one of its namespaces.
# Words that ordinary kernels use too (reduce, combine, dispatch) count only behind a library's name:
# `at::native::reduce_kernel` and the combine kernels of attention are compute.
KERNEL_NAMES: tuple[tuple[str, str], ...] = (
    (r"deep_ep::layout::", COMPUTE),
    # ncclKernel_*, ncclDevKernel_*, ncclSymDevKernel_*, ncclSymkRun_* and, before 2.10, ncclAllReduceRingLLKernel_*.
    (r"nccl[A-Z]\w*", COMMUNICATION),
    (r"rccl\w*", COMMUNICATION),
    # On Ascend, hcom_allReduce__503_1_1 and HcclAllreduce.
    (r"hccl\w*|Hccl\w+|hcom_\w+", COMMUNICATION),
    (r"mscclpp|msccl\w*", COMMUNICATION),
    (r"(?:deep_ep::)?(?:intranode|internode|internode_ll)::\w+", COMMUNICATION),
    (r"(?:deep_ep|hybrid_ep)::", COMMUNICATION),
    (r"(?:nv|roc)shmem\w*", COMMUNICATION),
    (r"[mM]oe_?(?:A2A|AllToAll|all_?to_?all)\w*", COMMUNICATION),
    (r"symmetric_memory::(?:barrier|put_signal|wait_signal|all_to_all|nvshmem)\w*", COMMUNICATION),
    # Transformer Engine's exchange that overlaps its matrix products.
    (r"k?userbuffers_\w+", COMMUNICATION),
    (r"cross_device_reduce_\w+", COMMUNICATION),
    (r"(?:multimem_)?(?:one|two)_shot_(?:all_reduce|reduce_scatter|all_gather)\w*", COMMUNICATION),
    (r"multimem_(?:all_reduce|all_gather|reduce_scatter)\w*", COMMUNICATION),
    (r"(?:one|two)[sS]hotAll[rR]educe\w*", COMMUNICATION),
    (r"(?:trtllm_)?(?:moe_)?all_?reduce_fusion\w*", COMMUNICATION),
    (r"quick_?reduce(?:::\w+|\w*)|quick_all_reduce\w*", COMMUNICATION),
    (r"reduce_scatter_cross_device\w*|all_?gather_cross_device\w*", COMMUNICATION),
    (r"(?:cuda|hip)_?ipc_all_?(?:reduce|gather)\w*", COMMUNICATION),
)


def _compile(rules: Iterable[tuple[str, str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(rf"(?:^|(?<=::))(?:{pattern})"), name) for pattern, name in rules)


_KERNEL_RULES = _compile(KERNEL_NAMES)
# What every rule above needs somewhere in the name: spares most names the parse. Extend it with the table.
_KERNEL_HINT = re.compile(
    r"ccl|hcom_|deep_ep|hybrid_ep|ntranode|nternode|shmem|symmetric_memory|moe_?(?:a2a|all)|userbuffers|cross_device|multimem|shot|fusion"
    r"|quick|ipc_?all",
    re.IGNORECASE,
)


def kernel_class(name: str, extra: Iterable[tuple[str, str]] = ()) -> str:
    """The class of a demangled kernel name, compute or communication; `extra` rows go before `KERNEL_NAMES`."""
    rules = _compile(extra)
    if not rules and not _KERNEL_HINT.search(name):
        return COMPUTE
    path = function_path(name)
    return next((result for pattern, result in rules + _KERNEL_RULES if pattern.search(path)), COMPUTE)


_PYTORCH_ANNOTATION = re.compile(r"ProfilerStep\*?#\d|enumerate\(DataLoader\)#|Optimizer\.(?:step|zero_grad)#")


def is_annotation(name: str) -> bool:
    """Whether PyTorch marks a phase, not an operator, by this name. Traces of 2021 list both as operators."""
    return _PYTORCH_ANNOTATION.match(name) is not None


def map_names(names: pa.Array | pa.ChunkedArray, function: Callable[[str], str | None]) -> pa.DictionaryArray:
    """Apply `function` to each distinct name once. Takes plain or dictionary-encoded strings; null stays null."""
    if isinstance(names, pa.ChunkedArray):
        names = names.unify_dictionaries().combine_chunks()
    if not isinstance(names, pa.DictionaryArray):
        names = names.dictionary_encode()
    values: list[Any] = names.dictionary.to_pylist()
    mapped = [None if value is None else function(value) for value in values]
    results = pa.array(mapped, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(results.indices.take(names.indices), results.dictionary)
