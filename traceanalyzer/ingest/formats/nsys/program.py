"""What an export tells of the recorded program beside its events: who ran, with which libraries, and what was recorded of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from traceanalyzer.ingest.formats.nsys.lookups import Strings
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.model.programs import LANGUAGES, told_by_files

_LIBRARY = r"(?i)[\w+-]\.(so|dll|dylib)\b"
_MOST_LIBRARIES = 10_000
# `--trace=cuda,nvtx`, `-t cuda,nvtx` and `-tcuda,nvtx`.
_TRACED = re.compile(r"(?:--trace[=\s]|(?<=\s)-t\s*=?)\s*\"?([a-z0-9_,-]+)")
_COMMANDS = ("COMMAND_LINE_ARGUMENTS", "COMMAND_LINE", "EXECUTABLE_PATH")
# What nsys calls each kind of event, by the beginning of the names of the tables that hold it.
_BY_TABLE = {
    "cuda": ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"),
    "nvtx": ("NVTX_EVENTS",),
    "osrt": ("OSRT_API",),
    "mpi": ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
    "ucx": ("UCP_", "UCX_"),
    "openacc": ("OPENACC_", "CUPTI_ACTIVITY_KIND_OPENACC_"),
    "openmp": ("OPENMP_",),
    "cublas": ("CUBLAS_EVENTS",),
    "cudnn": ("CUDNN_EVENTS",),
    "cusparse": ("CUSPARSE_EVENTS",),
    "vulkan": ("VULKAN_",),
    "opengl": ("OPENGL_",),
    "samples": ("SAMPLING_CALLCHAINS", "COMPOSITE_EVENTS"),
    "switches": ("SCHED_EVENTS",),
}
# A program that calls these is built on them; OpenMP may run on the host alone.
_SAID_BY_TABLE = {"mpi", "openacc"}
_OPTIONS = {"none"}


def traits(
    database: Database, names: Iterable[str | None], capture: Collection[tuple[str, str]], strings: Strings
) -> frozenset[str]:
    """What the names of the recorded processes tell; without any, their command lines; and what libraries and tables tell beside that.

    Libraries are those of all sampled processes, so they tell no language of a process whose name is known, but one that goes with it.
    """
    known = [name for name in names if name]
    commands = [value for name, value in capture if name.endswith(_COMMANDS)]
    told = told_by_files(known or commands)
    loaded = told_by_files(strings.matching(_LIBRARY, _MOST_LIBRARIES))
    foreign = set(LANGUAGES) - {"fortran"} if known else set()
    if known and "python" not in told:
        foreign |= {"pytorch", "jax"}
    return told | (loaded - foreign) | (_given(database) & _SAID_BY_TABLE)


def traced_kinds(database: Database, capture: Collection[tuple[str, str]]) -> frozenset[str]:
    """What the recorder was asked for, and what it gave."""
    asked = {
        kind
        for name, value in capture
        if name.endswith(_COMMANDS)
        for kinds in _TRACED.findall(value)
        for kind in kinds.split(",")
    }
    return frozenset((asked | _given(database)) - _OPTIONS - {""})


def _given(database: Database) -> frozenset[str]:
    """The kinds of events that the file holds."""
    tables = {kind: database.starting(starts) for kind, starts in _BY_TABLE.items()}
    return frozenset(kind for kind, names in tables.items() if any(map(database.row_estimate, names)))
