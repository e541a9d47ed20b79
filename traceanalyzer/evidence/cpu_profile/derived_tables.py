"""What is told of a CPU profile: the tables that its section and its sentence read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from traceanalyzer.derive.columns import RANK
from traceanalyzer.evidence.cpu_profile.tables import ABOUT, THREAD
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import NAME, Column, TableSpec

_HERE = "traceanalyzer.evidence.cpu_profile.answers"
_WALKED = "walked_profiles"
_OWN = ("profile_about", "profile_threads", "profile_frames", "profile_stacks", "profile_samples")
NO_PROFILE = Needs("profile_samples", "there is no CPU profile")


def _weight(name: str, doc: str) -> Column:
    return Column(name, pa.int64(), None, f"{doc}, in the unit of the profile")


CPU_PROFILES = replace(ABOUT, name="cpu_profiles")
CPU_THREADS = TableSpec(
    "cpu_threads",
    "one thread of a CPU profile, and what it did",
    (
        RANK,
        THREAD,
        Column("label", NAME, None, 'what it is called in sentences: the main thread, thread "loader"'),
        Column(
            "main",
            pa.bool_(),
            None,
            "true: the thread that the profile is judged by: the program's main thread, or the only or busiest one",
        ),
        Column("named", pa.bool_(), None, "true: that it is the program's main thread is certain"),
        Column("samples", pa.int64(), "count", "its samples or stretches"),
        _weight("weight", "all that it ran"),
        _weight("startup", "what of that lies in the import chain"),
        _weight("own", "what else has a function of the user's own"),
        _weight("waiting", "what else was a wait of Python's own libraries (for a lock, a queue, another process)"),
        Column(
            "leaf",
            NAME,
            None,
            "innermost function of most of its samples outside the import chain, whoever's it is; null without any",
        ),
        _weight("leaf_weight", "what ran in that function itself"),
        Column("importer", NAME, None, "function that most of the import chain was called from; null without one"),
        Column("imported", NAME, None, "what most of the chain imports; null without one"),
        Column("python", pa.bool_(), None, "true: its stacks have frames of Python"),
    ),
)
CPU_FUNCTIONS = TableSpec(
    "cpu_functions",
    "one function of the user's own outside of the import chain, by what a thread ran in it and in libraries that it called",
    (
        RANK,
        THREAD,
        Column("place", NAME, None, "the function with the line that most of it is at: bpe_merge (train.py:17)"),
        Column("path", NAME, None, "the same, behind the function of the user's own that mostly calls it"),
        _weight("weight", "what ran in it"),
        Column("share", pa.float64(), "share", "its share of what the thread ran outside of the import chain"),
        Column("inside", NAME, None, "what of libraries most of it is in; null where that is less than half"),
    ),
)
CPU_PATHS = TableSpec(
    "cpu_paths",
    "one path of functions of a thread, for a flame graph",
    (
        RANK,
        THREAD,
        Column("startup", pa.bool_(), None, "true: of the import chain"),
        Column("path", pa.list_(pa.string()), None, "functions, the outermost first"),
        _weight("weight", "what ran at its end"),
    ),
)
CPU_CLOCK = TableSpec(
    "cpu_clock",
    "how the times of a CPU profile meet those of the trace that it is beside",
    (
        RANK,
        Column("beside", pa.bool_(), None, "true: it is beside a trace"),
        Column("on_clock", pa.bool_(), None, "true: its times are on the trace's clock"),
        Column("clock_error", pa.int64(), "ns", "how far they may be off; null when not known"),
        Column("inside", pa.int64(), "count", "samples of launching threads within the windows of the GPUs"),
        Column("idle", pa.int64(), "ns", "idle time of the GPUs"),
        Column("sampled_idle", pa.int64(), "ns", "idle time that these samples stand for"),
        Column(
            "gap",
            pa.int64(),
            "ns",
            "how long before the trace the profile ends, below 0: after the trace it begins; null where they overlap or nobody knows",
        ),
        Column(
            "ends_in_start",
            pa.bool_(),
            None,
            "true: its last samples lie where torch.profiler is still being started, before it records",
        ),
    ),
)


def _of_stacks(name: str, made_by: str, spec: TableSpec) -> Derived:
    return Derived(
        name,
        f"{_HERE}.{made_by}",
        (_WALKED,),
        spec,
        needs=NO_PROFILE,
        small=True,
        empty_without="profile_samples",
    )


DERIVED = (
    Derived(
        "cpu_profiles",
        f"{_HERE}.threads:cpu_profiles",
        ("profile_about",),
        CPU_PROFILES,
        needs=NO_PROFILE,
        small=True,
        empty_without="profile_about",
    ),
    Derived(_WALKED, f"{_HERE}.threads:walked_profiles", _OWN, internal=True),
    _of_stacks("cpu_threads", "threads:cpu_threads", CPU_THREADS),
    _of_stacks("cpu_functions", "threads:cpu_functions", CPU_FUNCTIONS),
    _of_stacks("cpu_paths", "paths:cpu_paths", CPU_PATHS),
    Derived(
        "cpu_clock",
        f"{_HERE}.clock:cpu_clock",
        (
            *("profile_about", "profile_frames", "profile_stacks", "profile_samples"),
            *("placed_evidence", "windows", "gaps", "cpu_samples"),
        ),
        CPU_CLOCK,
        needs=NO_PROFILE,
        small=True,
        empty_without="profile_samples",
    ),
)
