"""Which advice of a rule fits the recorded program, in its own words.

Each entry of `recommend` says one thing for several kinds of program. A program hears it in the words of what it is built on; where an
entry has none of those, in those of what lies below: Julia's, else CUDA's, else those for anybody.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from traceanalyzer.vocabulary.traced import TRACEABLE

Advice = dict[str, str]

AUDIENCES = (
    *("pytorch", "jax", "cupy", "python", "julia", "fortran", "openacc", "openmp", "kokkos", "hip", "cuda", "any"),
)
"""For whom an entry of `recommend` may speak, narrow before wide."""
_ON_PYTHON = ("pytorch", "jax")
_NATIVE = ("cupy", "python", "julia", "openacc", "openmp", "kokkos", "fortran")

# CUDA's names that ROCm spells in another way than with `hip` in front.
_HIP = {
    "cudaHostAlloc": "hipHostMalloc",
    "cudaMallocHost": "hipHostMalloc",
    "cudaFreeHost": "hipHostFree",
    "cudaDevAttrMultiProcessorCount": "hipDeviceAttributeMultiprocessorCount",
    "cudaCpuDeviceId": "hipCpuDeviceId",
}
# What a user of an AMD GPU calls things; NCCL's environment variables and torch.cuda keep their names there.
_ON_AMD = (
    (re.compile("|".join(_HIP)), lambda found: _HIP[found[0]]),
    (re.compile(r"\bcuda(?=[A-Z])"), lambda found: "hip"),
    (re.compile(r"\bCUDA (?=graph|stream|event|kernel|context)"), lambda found: "HIP "),
    (re.compile(r"\bNCCL\b(?!_)"), lambda found: "RCCL"),
    (re.compile(r"\bnccl-tests\b"), lambda found: "rccl-tests"),
    (re.compile(r"\bNVTX\b"), lambda found: "roctx"),
    (re.compile(r"\bTensor cores\b"), lambda found: "Matrix cores"),
    (re.compile(r"\btensor cores\b"), lambda found: "matrix cores"),
    (re.compile(r"\bcuDNN\b"), lambda found: "MIOpen"),
    (re.compile(r"\bNVLink\b"), lambda found: "Infinity Fabric"),
)
_TRACE = re.compile(r"(--trace=)([a-z0-9_-]+(?:,[a-z0-9_-]+)*)")


def fitting(recommend: Iterable[Advice], traits: Collection[str], recorded: Collection[str] = ()) -> list[Advice]:
    """The advice for a program with these traits (`model.programs`), of which `recorded` is recorded already.

    Where none of it is for such a program, all of it: the author knew no better.
    """
    every = list(recommend)
    chains = _chains(traits)
    kept = [
        {key: entry[key] for key in AUDIENCES if key in {_first(chain, entry) for chain in chains}} for entry in every
    ]
    found = [entry for entry in kept if entry] or every
    return [
        {_audience(key, traits): _in_names_of(traits, with_recorded(text, recorded)) for key, text in entry.items()}
        for entry in found
    ]


def with_recorded(text: str, recorded: Collection[str]) -> str:
    """Advice to record, with all that was recorded already: what a recording has it should not lose."""

    def traced(found: re.Match[str]) -> str:
        named = found[2].split(",")
        more = [kind for kind in TRACEABLE if kind in recorded and kind not in named]
        return found[1] + ",".join([*named, *more])

    return _TRACE.sub(traced, text)


def _chains(traits: Collection[str]) -> list[tuple[str, ...]]:
    """For each thing that the program is built on, whose words it takes, the best first."""
    native = ("hip", "cuda", "any") if "amd" in traits else ("cuda", "any")
    on_python = [one for one in _ON_PYTHON if one in traits]
    if not on_python:
        return [(*(one for one in _NATIVE if one in traits), *native)]
    beside = ("hip", "any") if "amd" in traits else ("any",)
    return [(one, "python", *beside) for one in on_python]


def _first(chain: tuple[str, ...], entry: Advice) -> str | None:
    return next((key for key in chain if key in entry), None)


def _audience(key: str, traits: Collection[str]) -> str:
    return "hip" if key == "cuda" and "amd" in traits else key


def _in_names_of(traits: Collection[str], text: str) -> str:
    if "amd" not in traits:
        return text
    for pattern, name in _ON_AMD:
        text = pattern.sub(name, text)
    return text
