"""What executables, libraries and scripts tell of a recorded program, and what its profiler recorded: the names for both.

Command lines and paths hold names of people and machines, so what is kept of them is only what is listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LANGUAGES = {"python": "Python", "julia": "Julia", "fortran": "Fortran", "cpp": "C++"}
"""What a program may be written in, and how that is spelled."""
FRAMEWORKS = {
    "pytorch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "cupy": "CuPy",
    "numba": "Numba",
    "vllm": "vLLM",
    "deepspeed": "DeepSpeed",
    "megatron": "Megatron",
    "fsdp": "FSDP",
    "ddp": "DDP",
    "tensorrt": "TensorRT",
    "kokkos": "Kokkos",
    "raja": "RAJA",
    "alpaka": "alpaka",
    "sycl": "SYCL",
    "thrust": "Thrust",
    "cub": "CUB",
    "openacc": "OpenACC",
    "openmp": "OpenMP",
    "mpi": "MPI",
}
"""What a program may be built on."""
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD"}
"""Whose GPU a program runs on."""
COMPILED = "compiled"
"""Most of the work comes from a compiler of the framework: torch.compile, XLA."""
TRAITS = (*LANGUAGES, *FRAMEWORKS, *VENDORS, COMPILED)

_IMPLIED = {
    "jax": ("python",),
    "tensorflow": ("python",),
    "cupy": ("python",),
    "numba": ("python",),
    "vllm": ("pytorch", "python"),
    "deepspeed": ("pytorch", "python"),
    "megatron": ("pytorch", "python"),
    "fsdp": ("pytorch", "python"),
    "ddp": ("pytorch", "python"),
    "pytorch": ("python",),
    "kokkos": ("cpp",),
    "raja": ("cpp",),
    "alpaka": ("cpp",),
    "sycl": ("cpp",),
    "thrust": ("cpp",),
    "cub": ("cpp",),
}


def _program(*names: str) -> str:
    """Executables of these names (patterns), at the start of a text, behind a path or behind a blank."""
    return rf"(?:^|[\s/\\\"'=])(?:{'|'.join(names)})(?:\.exe)?(?=$|[\s\"':])"


def _library(*names: str) -> str:
    return rf"(?:^|[\s/\\])(?:{'|'.join(names)})[\w.+-]*\.(?:so|dll|dylib)\b"


_FILES = {
    "python": "|".join(
        (
            _program(
                r"python[\d.]*", r"pypy[\d.]*", "ipython", "jupyter[a-z-]*", "torchrun", "accelerate", "pt_main_thread"
            ),
            _library("libpython", "python3"),
            r"\.pyc?(?=$|[\s\"':])|^ray::|^VLLM::|^sglang::",
        )
    ),
    "julia": "|".join((_program("julia"), _library("libjulia"), r"\.jl(?=$|[\s\"':])")),
    "fortran": _library(
        "libgfortran", "libnvf", "libcudafor", "libpgf", "libifcore", "libflang", "libFortranRuntime", "libcraft?n"
    ),
    "pytorch": _library("libtorch", "libc10"),
    "jax": _library("xla_extension", "libjax", "xla_cuda_plugin"),
    "vllm": _program("vllm") + r"|^VLLM::",
    "deepspeed": _program("deepspeed"),
    "tensorrt": "|".join((_program("trtexec"), _library("libnvinfer"))),
    "kokkos": _library("libkokkoscore"),
    "sycl": _library("libsycl", "libacpp-rt"),
    "openacc": _library("libaccdevice", "libacchost", "libaccn"),
    "openmp": _library("libomptarget", r"libgomp-plugin-\w+"),
    "mpi": _library("libmpi", "libmpich", "libmpi_cray"),
}
_TOLD = {trait: re.compile(pattern, re.MULTILINE) for trait, pattern in _FILES.items()}


def told_by_files(texts: Iterable[str]) -> frozenset[str]:
    """The traits that names of processes, command lines and paths of libraries tell."""
    every = "\n".join(texts)
    return with_implied(trait for trait, pattern in _TOLD.items() if pattern.search(every))


def with_implied(traits: Iterable[str]) -> frozenset[str]:
    """These traits and what goes with them: PyTorch is called from Python, Kokkos from C++."""
    found = set(traits)
    return frozenset(found.union(*(_IMPLIED.get(trait, ()) for trait in found)))
