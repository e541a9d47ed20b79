"""How a profiler records what: what its format declares, so that the advice of `doctor` is in the words of that profiler."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import field

from traceanalyzer.errors import ConfigError
from traceanalyzer.records import dataclass
from traceanalyzer.result.recording.diagnosis import Contents, Snippet

GIVES = {
    "whole_file": "what could not be read of this file; Health says what it was",
    "gpu": "the kernels and copies, without which nothing can be judged",
    "launches": "the CUDA or HIP calls, which say when the host asked for each operation and why the GPU was idle before it",
    "lost_records": "the GPU operations that the profiler lost",
    "replay": "what the CUDA graph runs: this recording holds its capture and no launch of it",
    "iterations": "the GPU's work of whole iterations, of which this recording holds a handful of operations",
    "all_tables": "the tables that this export left out",
    "operators": "the operators, which name what the host did while the GPU waited",
    "mpi": "the calls of MPI, which say when a rank waits for others",
    "openacc": "the constructs of OpenACC, which name what the host did while the GPU waited",
    "osrt": "calls of the operating system that block: reading files, locks, sleeping",
    "steps": "steps, so that times are per iteration and start-up can be told from steady state",
    "graph_kernels": "the kernels inside CUDA graphs, which were recorded as a whole here",
    "rank": "which rank this file is, so that the ranks of a job can stand side by side",
    "collectives": "name, size and group of each collective",
    "samples": "samples of the host's stacks, which name the function that ran while the GPU was idle",
    "switches": "when the system ran each thread, which tells waiting from working where nothing else was recorded",
    "page_faults": "faults on managed memory, which say who touched the pages that move",
    "python_stacks": "Python frames, which lead from an idle GPU to a line of code",
    "shapes": "input shapes and types of operators, and by them what kernels reach of the GPU's peak",
    "memory": "allocations, with how much was allocated and reserved",
    "counters": "how busy the parts of the GPU were (SMs, tensor cores, memory, PCIe, NVLink), 10,000 times a second",
}
"""What each setting gives, in the order in which they are listed. The first ones are what any verdict rests on."""
NEW = "  # missing so far"
"""What ends the line of a snippet that the last recording lacked."""


@dataclass(frozen=True)
class Way:
    """How one profiler records something: what to write, what it costs, and what to mind."""

    option: str
    cost: str = "little"
    mind: str | None = None


def _nothing(held: Contents, missing: Set[str]) -> Sequence[Snippet]:
    return ()


@dataclass(frozen=True)
class Ways:
    """How one profiler records what it can, by the names of settings (`GIVES`). Raises ConfigError for other names.

    `snippets` makes what to paste, of what a recording holds and the names of the settings that it lacks: what it has is kept, what is
    missing is added. Where one of `elsewhere` is missing, what profilers of any program take is shown beside it.
    """

    known: Mapping[str, Way] = field(default_factory=dict)
    snippets: Callable[[Contents, Set[str]], Sequence[Snippet]] = _nothing
    elsewhere: Collection[str] = ()

    def __post_init__(self) -> None:
        if unknown := sorted({*self.known, *self.elsewhere} - set(GIVES)):
            raise ConfigError(f"no setting of a recording is called '{unknown[0]}'; choose from {', '.join(GIVES)}")
