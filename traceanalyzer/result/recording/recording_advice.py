"""What to record next time: which settings would add what a recording lacks, in the words of the profiler that made it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from traceanalyzer.result.recording.diagnosis import Contents, FileFacts, NextTime, Setting, Snippet
from traceanalyzer.result.recording.ways import GIVES, Ways
from traceanalyzer.vocabulary.health import (
    GPU_WORK_MISSING,
    GRAPHS_HIDDEN,
    NOT_ALL_READ,
    NOT_RECORDED,
    PROFILER_ERRORS,
    TOO_LITTLE,
)

# Health code that stops a rule -> the settings that would help; what stops one for want of a table is said where that is declared.
REMEDIES = {
    NOT_ALL_READ: ("whole_file",),
    GPU_WORK_MISSING: ("lost_records",),
    PROFILER_ERRORS: ("lost_records",),
    GRAPHS_HIDDEN: ("graph_kernels",),
    NOT_RECORDED: ("all_tables",),
    TOO_LITTLE: ("replay", "iterations"),
}


def missing(
    file: FileFacts, contents: Contents, known: Collection[str], codes: Set[str], grave: Set[str] = frozenset()
) -> list[str]:
    """The names of the settings, in the order of GIVES, that would add what the recording lacks and that its profiler knows (`known`).

    `codes` are the codes of the health notes that are more than information, `grave` of those that make judging impossible.
    """
    built_on = contents.program.frameworks
    native = "Python" not in contents.program.languages
    operators = contents.host_ranges.get("operator", 0)
    has_gpu = bool(contents.gpu_operations)
    only_captured = contents.captured_launches > 0 and not (contents.graph_kernels or contents.graphs)
    lacks = {
        "gpu": not has_gpu,
        "launches": has_gpu and not contents.launch_recorded,
        "whole_file": NOT_ALL_READ in codes,
        "lost_records": has_gpu and bool(codes & {GPU_WORK_MISSING, PROFILER_ERRORS}),
        "replay": only_captured and TOO_LITTLE in codes,
        "iterations": not only_captured and TOO_LITTLE in grave,
        "all_tables": NOT_RECORDED in codes,
        "operators": not operators,
        "mpi": "MPI" in built_on and "mpi" not in contents.traced,
        "openacc": "OpenACC" in built_on and "openacc" not in contents.traced,
        "osrt": native and has_gpu and "osrt" not in contents.traced,
        "samples": native and has_gpu and "samples" not in contents.traced,
        "switches": native and has_gpu and "switches" not in contents.traced,
        "page_faults": contents.migrations > 0 and not contents.page_faults,
        "steps": not contents.steps,
        "graph_kernels": bool(contents.graphs),
        "rank": file.rank is None and (bool(contents.communication) or contents.processes > 1),
        "collectives": contents.communication > 0 and not contents.collectives,
        "python_stacks": not contents.host_ranges.get("python"),
        "shapes": operators > 0 and not contents.shapes,
        "memory": not contents.memory_events,
        # Several ranks with nsys each would compete for the counters of one GPU.
        "counters": has_gpu and not contents.counters and contents.processes <= 1,
    }
    return [name for name in GIVES if lacks[name] and name in known]


def next_time(ways: Ways, names: list[str], needed_by: Mapping[str, list[str]], paste: Sequence[Snippet]) -> NextTime:
    """The settings of `names` and what to paste. `needed_by` is {setting: rules that could not judge without it}."""
    settings = [
        Setting(name, way.option, GIVES[name], way.cost, way.mind, needed_by.get(name, []))
        for name, way in ((name, ways.known[name]) for name in names)
    ]
    return NextTime(settings, list(paste) if settings else [])
