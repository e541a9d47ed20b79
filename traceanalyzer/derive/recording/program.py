"""What kind of program was recorded: its languages, frameworks and the vendor of its GPU, told by names.

It chooses the words of every piece of advice, so a sign is a name that nothing else has: a C++ program that is told to call Python
is worse off than one that is told nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.recording.program_tables import PROGRAM
from traceanalyzer.intervals import total, union
from traceanalyzer.model.programs import COMPILED, FRAMEWORKS, LANGUAGES, TRAITS, VENDORS, told_by_files, with_implied
from traceanalyzer.model.trace import Input
from traceanalyzer.result.document import Program

LEAST_COMPILED = 0.05
"""From this share of kernels, or of the host's time inside compiled regions, on a program counts as compiled: a compiled norm or a
compiled attention in a model that runs operator by operator does not make it that."""

_INDUCTOR = r"^triton_(?:poi|red|per|tem|for|mm|bmm|unk|split)_"
_REGION = (
    r"^Torch-Compiled Region|^(?:## )?(?:Call )?CompiledF(?:unction|xGraph)|torchinductor_|^TorchDynamo Cache Lookup"
)
# By names of host ranges, kernels, API calls and process groups.
_SIGNS = {
    "pytorch": rf"^aten::|\bat::native\b|^autograd::|^c10d::|\bc10::|ProfilerStep#|^torch/|^nn\.Module: |{_INDUCTOR}|{_REGION}",
    "jax": r"^jit[(_]|hlo_module=jit_|^TfrtCpu|^PjitFunction|^PjRt|^jax/",
    "tensorflow": r"\btensorflow::|^tensorflow/",
    "cupy": r"^cupy_|^cupyx_|\bcupy::|^cupy/",
    "numba": r"\bcudapy::|_ZN6cudapy|^numba/",
    "vllm": r"\bvllm::|^vllm[/.:]|VLLM::",
    "deepspeed": r"(?:^|/)deepspeed/|^DeepSpeed|\bDeepSpeedEngine\b|\bPartitionedParameterCoordinator\b",
    "megatron": r"(?:^|/)megatron/|^[Mm]egatron|\b(?:TENSOR|PIPELINE)_MODEL_PARALLEL_GROUP\b",
    "fsdp": r"^FSDP::|\bFullyShardedDataParallel\b|torch/distributed/fsdp/|torch/distributed/_composable/fsdp/",
    "ddp": r"\bDistributedDataParallel\b",
    "tensorrt": r"^trt_|^TensorRT\b|\bnvinfer1::|^__my[el]l|ExecutionContext::(?:enqueue|execute)",
    "julia": r"\bCu(?:KernelContext|DeviceArray)\b|\bROCDeviceArray\b|\bCompilerMetadata\b|^julia_|^CUDA\.jl\b|\bKernelAbstractions\b",
    "fortran": r"_QM\w+P\w|_QQmain|\b__\w+_MOD_\w",
    "kokkos": r"\bKokkos::",
    "raja": r"\bRAJA::",
    "alpaka": r"\balpaka::",
    "sycl": r"\bsycl::|^_ZTS|^typeinfo name for ",
    "thrust": r"\bthrust::",
    "cub": r"\bcub::",
    "openacc": r"_\d+_gpu(?:__red)?$|^(?:Compute Construct|Enter Data|Exit Data|Enqueue (?:Upload|Download|Launch))(?:@|: )",
    "openmp": r"__omp_offloading_|^nvkernel_\w+_F\d+L\d+|(?:\x24|_)omp_fn",
    "mpi": r"^MPI_[A-Z]\w+$",
    "amd": r"^hip[A-Z]\w+$|^Cijk_|__amd_rocclr|\brocblas|^rccl|\bmiopen",
}
# XLA's own names: JAX's, unless something else tells of TensorFlow or PyTorch.
_XLA = re.compile(r"^XlaModule|^Thunk:#|\bxla::|^(?:loop|input)_\w*fusion(?:_\d+)?$|^gemm_fusion_\w+$")
_BY_NAME = {trait: re.compile(sign) for trait, sign in _SIGNS.items()}
# Whatever has a sign matches this too, in Arrow's expressions, which know no other letters and digits than those of ASCII.
_ANY_SIGN = "|".join(
    sign.replace(r"\b", "").replace(r"\w", ".").replace(r"\d", ".").replace("$", r"\n?$")
    for sign in (*_SIGNS.values(), _XLA.pattern)
)
_GPU_NAMES = {
    "nvidia": re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN|\b[AVHBL]\d{2,3}\b", re.I),
    "amd": re.compile(r"AMD|Radeon|Instinct|\bMI\d{2,3}|gfx\d", re.I),
}
# Of kernels alone, where nothing else tells the language: compilers of Fortran end names in an underscore, C++ writes the arguments.
_BY_KERNEL = {"fortran": re.compile(r"^[a-z]\w*_$"), "cpp": re.compile(r"\)(?:\s*\[clone.*\])?$|::")}


def program(
    inputs: Sequence[Input],
    gpu_ops: pa.Table,
    api_calls: pa.Table,
    host_ranges: pa.Table,
    collectives: pa.Table,
    processes: pa.Table,
    devices: pa.Table,
) -> pa.Table:
    """What is known of the program, once for each rank and name."""
    traits = with_implied(
        {
            *(trait for one in inputs for trait in one.traits),
            *told_by_files(name for name in processes["name"].to_pylist() if name),
            *_by_names(gpu_ops, api_calls, host_ranges, collectives),
            *({"pytorch"} if any(one.producer.startswith("PyTorch") for one in inputs) else ()),
            *({"python"} & _names(host_ranges, "category")),
        }
    )
    if not traits & LANGUAGES.keys():
        kernels = _names(gpu_ops.filter(pa.array(frames.equals(gpu_ops, "kind", "kernel"))), "name")
        traits |= {language for language, sign in _BY_KERNEL.items() if any(map(sign.search, kernels))}
    if traits & {"pytorch", "cupy", "tensorflow", "jax"}:
        # Their own kernels are made with Thrust and CUB, and use none of their calls.
        traits -= {"thrust", "cub", *({"cpp"} if not traits & {"kokkos", "raja", "alpaka", "sycl"} else ())}
    if "thrust" in traits:
        traits -= {"cub"}  # which it is made of
    traits |= _vendors(traits, inputs, devices)
    # Its names are among the signs of PyTorch.
    if "pytorch" in traits and _compiled(gpu_ops, host_ranges):
        traits |= {COMPILED}
    ranks = sorted({one.ordinal for one in inputs})
    names = [trait for trait in TRAITS if trait in traits]
    rows = [{"rank": rank, "name": name} for rank in ranks for name in names]
    return pa.Table.from_pylist(rows, schema=PROGRAM.schema)


def program_of(table: pa.Table) -> Program:
    """For the result, of the rows of any number of ranks."""
    names = set(table["name"].to_pylist())
    vendors = [title for name, title in VENDORS.items() if name in names]
    return Program(
        languages=[title for name, title in LANGUAGES.items() if name in names],
        frameworks=[title for name, title in FRAMEWORKS.items() if name in names],
        compiled=COMPILED in names,
        vendor=vendors[0] if len(vendors) == 1 else None,
    )


def _by_names(*tables: pa.Table) -> frozenset[str]:
    names = {name for table in tables for name in _names(table, "name")}
    names |= _names(tables[-1], "description") | _names(tables[-1], "group")
    return _told(frozenset(names))


@lru_cache
def _told(every: frozenset[str]) -> frozenset[str]:
    """What these names tell; the ranks of a job have the same ones."""
    names = _with_signs(every)
    told = {trait for trait, sign in _BY_NAME.items() if any(map(sign.search, names))}
    if not told & {"jax", "tensorflow", "pytorch"} and any(map(_XLA.search, names)):
        told.add("jax")
    return frozenset(told)


def _with_signs(names: Iterable[str]) -> set[str]:
    """Those that may have any sign, found in one quick pass over all letters: a trace may have many names that are long."""
    every = pa.array(names, pa.large_string())
    found: set[str] = set(every.filter(pc.match_substring_regex(every, f"(?s){_ANY_SIGN}")).to_pylist())
    return found


def _names(table: pa.Table, column: str) -> set[str]:
    """The names that rows have; a dictionary may hold others."""
    return {name for name in pc.unique(table[column]).to_pylist() if name}


def _vendors(traits: Iterable[str], inputs: Sequence[Input], devices: pa.Table) -> set[str]:
    """Whose GPU it is, by its name; without one by what recorded it and by the names of its calls."""
    names = [name for name in devices["name"].to_pylist() if name]
    found = {vendor for vendor, sign in _GPU_NAMES.items() if any(map(sign.search, names))}
    if "amd" in traits or any("roctracer" in one.producer for one in inputs):
        return {"amd"}
    if not found and any(one.format == "nsys" or "CUPTI" in one.producer for one in inputs):
        return {"nvidia"}
    return found


def _compiled(gpu_ops: pa.Table, host_ranges: pa.Table) -> bool:
    """Whether much of the work comes from torch.compile: by its kernels, or by the time inside its regions."""
    if any(re.search(_INDUCTOR, name) for name in _names(gpu_ops, "name")):
        kernels = frames.equals(gpu_ops, "kind", "kernel") & frames.equals(gpu_ops, "class", "compute")
        fused = kernels & frames.where(gpu_ops, "name", lambda name: re.search(_INDUCTOR, name) is not None)
        if fused.sum() >= max(LEAST_COMPILED * kernels.sum(), 1):
            return True
    if not any(re.search(_REGION, name) for name in _names(host_ranges, "name")):
        return False
    regions = frames.where(host_ranges, "name", lambda name: re.search(_REGION, name) is not None)
    start, end = frames.ints(host_ranges, "start_ns"), frames.ints(host_ranges, "end_ns")
    spent = total(union(start[regions], end[regions]))
    return bool(spent >= LEAST_COMPILED * (np.max(end) - np.min(start)))
