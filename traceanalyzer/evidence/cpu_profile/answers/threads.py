"""What the threads of a profile did: how much is start-up, and which of the user's functions most of the rest is in."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames as columns
from traceanalyzer.evidence.cpu_profile.answers.stacks import NONE, Frames, Stacks, frame_label, short_file
from traceanalyzer.evidence.cpu_profile.derived_tables import CPU_FUNCTIONS, CPU_THREADS
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

MOST_FUNCTIONS = 50
MAIN = "MainThread"
_STARTS = ("<module>", "__getattr__")
"""Functions that call the import system because they were written so, and say nothing of who wanted it."""


class Who(NamedTuple):
    """A thread: what it is called in sentences, whether the profile is judged by it, and whether it certainly is the main one."""

    label: str
    main: bool
    named: bool


@dataclass(frozen=True)
class Profile:
    """One profile with its samples added up: of each (thread, stack) the weight and the number of samples."""

    rank: int
    unit: str
    stacks: Stacks
    who: list[Who]
    thread: Array
    stack: Array
    weight: Array
    count: Array

    def of(self, thread: int) -> Array:
        """The rows of a thread."""
        return np.flatnonzero(self.thread == thread)

    @property
    def main(self) -> int:
        """The number of the thread that it is judged by."""
        return next(number for number, one in enumerate(self.who) if one.main)


def walked_profiles(
    profile_about: pa.Table,
    profile_threads: pa.Table,
    profile_frames: pa.Table,
    profile_stacks: pa.Table,
    profile_samples: pa.Table,
) -> list[Profile]:
    """One for each rank that has a profile."""
    found = []
    for rank in sorted(pc.unique(profile_samples["rank"]).to_pylist()):
        about, threads, frames, stacks, samples = (
            table.filter(pc.equal(table["rank"], rank))
            for table in (profile_about, profile_threads, profile_frames, profile_stacks, profile_samples)
        )
        thread, stack, weight = (columns.ints(samples, name) for name in ("thread", "stack", "weight"))
        stack = np.where(stack == columns.NULL, NONE, stack)
        key = thread * (int(stack.max(initial=0)) + 2) + stack + 1
        used, first, at = np.unique(key, return_index=True, return_inverse=True)
        at = np.reshape(at, -1)
        sums, counts = np.zeros(len(used), np.int64), np.bincount(at, minlength=len(used))
        np.add.at(sums, at, weight)
        walked = Stacks(stacks, Frames(frames))
        walked.tell_native(np.unique(stack[stack >= 0]))
        by_thread = np.zeros(threads.num_rows, np.int64)
        np.add.at(by_thread, thread, weight)
        profile = Profile(
            rank, about["unit"][0].as_py(), walked, _who(threads, by_thread), thread[first], stack[first], sums, counts
        )
        found.append(profile)
    return found


def _who(threads: pa.Table, weight: Array) -> list[Who]:
    rows = sorted(threads.to_pylist(), key=lambda row: row["thread"])
    certain = [row["name"] == MAIN or (row["tid"] is not None and row["tid"] == row["process"]) for row in rows]
    if len(rows) == 1:
        chosen = 0
    else:
        some = [number for number, sure in enumerate(certain) if sure] or range(len(rows))
        chosen = max(some, key=lambda number: int(weight[number]))
    several = sum(certain) > 1
    labels = [_label(row, sure, several, len(rows)) for row, sure in zip(rows, certain, strict=True)]
    twice = Counter(labels)
    labels = [
        f"{label} ({row['tid']})" if twice[label] > 1 and row["tid"] is not None else label
        for label, row in zip(labels, rows, strict=True)
    ]
    return [Who(label, number == chosen, certain[number]) for number, label in enumerate(labels)]


def _label(row: dict[str, object], main: bool, several: bool, count: int) -> str:
    process = f" of process {row['process']}" if several and row["process"] is not None else ""
    if main:
        return f"the main thread{process}"
    if row["name"]:
        return f"thread {row['name']}{process}"
    if row["tid"] is not None:
        return f"thread {row['tid']}{process}"
    if row["process"] is not None:
        return f"process {row['process']}"
    return "all threads" if count == 1 else "other threads"


def cpu_profiles(profile_about: pa.Table) -> pa.Table:
    """What the files say of themselves, for what is told of the whole job."""
    return profile_about


def cpu_threads(walked_profiles: list[Profile]) -> pa.Table:
    """As CPU_THREADS, in the order of the profile."""
    rows = []
    for profile in walked_profiles:
        for number, who in enumerate(profile.who):
            rows.append(
                {"rank": profile.rank, "thread": number, "label": who.label, "main": who.main, "named": who.named}
                | _did(profile, number)
            )
    return pa.Table.from_pylist(rows, CPU_THREADS.schema)


def _did(profile: Profile, thread: int) -> dict[str, object]:
    mine = profile.of(thread)
    stacks, stack, weight = profile.stacks, profile.stack[mine], profile.weight[mine]
    # Stacks without frames: the last is none of them.
    starts, own = np.append(stacks.starts, False)[stack], np.append(stacks.own, NONE)[stack]
    waits = np.append(stacks.frames.waits[stacks.frame], False)[stack] if len(stacks) else np.zeros(len(stack), bool)
    importer, imported = _imports(stacks, stack[starts], weight[starts])
    leaf, leaf_weight = _leaf(profile, stack[~starts], weight[~starts])
    return {
        "leaf": leaf,
        "leaf_weight": leaf_weight,
        "samples": int(profile.count[mine].sum()),
        "weight": int(weight.sum()),
        "startup": int(weight[starts].sum()),
        "own": int(weight[~starts & (own != NONE)].sum()),
        "waiting": int(weight[~starts & waits].sum()),
        "importer": importer,
        "imported": imported,
        "python": bool(np.append(stacks.python, False)[stack].any()),
    }


def _leaf(profile: Profile, stack: Array, weight: Array) -> tuple[str | None, int]:
    """The innermost function that most of some samples have, and how much; all lines of one are one."""
    frames = profile.stacks.frames
    found: Counter[tuple[str, str | None]] = Counter()
    some = stack >= 0
    for frame, ns in zip(*_sums(profile.stacks.frame[stack[some]], weight[some]), strict=True):
        found[frames.name[frame], frames.file[frame]] += ns
    if not found:
        return None, 0
    (name, file), most = min(found.items(), key=lambda one: (-one[1], str(one[0])))
    return frame_label(plain(name), file, 0), most


def _imports(stacks: Stacks, stack: Array, weight: Array) -> tuple[str | None, str | None]:
    """Who called most of the import chain, and which module it began with; None where none did most of it."""
    frames = stacks.frames
    begins, heavy = _sums(stacks.first[stack], weight)
    by: Counter[str] = Counter()
    for one, ns in zip(begins, heavy, strict=True):
        around = int(stacks.parent[one])
        while around >= 0 and frames.name[stacks.frame[around]] in _STARTS:
            around = int(stacks.parent[around])
        if around >= 0:
            by[plain(frames.name[stacks.frame[around]]).rpartition(".")[2]] += ns
    of: Counter[str] = Counter()
    for one, ns in zip(*_sums(stacks.module[stack], weight), strict=True):
        if one != NONE and not (frames.file[one] or "<").startswith("<"):
            of[_module(frames.file[one])] += ns
    total = int(weight.sum())
    caller, module = (counter.most_common(1)[0] if counter else (None, 0) for counter in (by, of))
    return caller[0] if caller[1] * 2 > total else None, module[0] if module[1] * 2 > total else None


def _sums(values: Array, weight: Array) -> tuple[list[int], list[int]]:
    """Each value, ascending, and its weight."""
    used, at = np.unique(values, return_inverse=True)
    return used.tolist(), np.bincount(np.reshape(at, -1), weight, len(used)).astype(np.int64).tolist()


def _module(file: str | None) -> str:
    """The module that a file is, as far as its path tells: torch/_inductor/__init__.py becomes torch._inductor."""
    parts = short_file(file or "").removesuffix(".py").split("/")
    return ".".join(part for part in parts if part and part != "__init__") or "a module"


def cpu_functions(walked_profiles: list[Profile]) -> pa.Table:
    """As CPU_FUNCTIONS: of each thread the heaviest, heaviest first."""
    rows = []
    for profile in walked_profiles:
        for number in range(len(profile.who)):
            rows += [{"rank": profile.rank, "thread": number} | row for row in _functions(profile, number)]
    return pa.Table.from_pylist(rows, CPU_FUNCTIONS.schema)


def _functions(profile: Profile, thread: int) -> list[dict[str, object]]:
    stacks, mine = profile.stacks, profile.of(thread)
    stack, weight = profile.stack[mine], profile.weight[mine]
    some = (stack >= 0) & ~np.append(stacks.starts, False)[stack]
    rest = int(weight[~np.append(stacks.starts, False)[stack]].sum())
    stack, weight = stack[some], weight[some]
    own = stacks.own[stack]
    sums = np.bincount(own[own >= 0], weight[own >= 0], len(stacks.functions)).astype(np.int64)
    order = np.lexsort((np.arange(len(sums)), -sums))[:MOST_FUNCTIONS]
    found = []
    for function in order[sums[order] > 0].tolist():
        here = own == function
        lines = _heaviest(stacks.line[stack[here]], weight[here])
        caller = _heaviest(stacks.caller[stack[here]], weight[here])
        place = function_text(stacks, function, lines)
        path = place if caller == NONE else f"{plain(stacks.functions[caller].name)} → {place}"
        found.append(
            {
                "place": place,
                "path": path,
                "weight": int(sums[function]),
                "share": float(sums[function] / rest) if rest else 0.0,
                "inside": _inside(stacks, stack[here], weight[here]),
            }
        )
    return found


def _heaviest(values: Array, weight: Array) -> int:
    """The value that most of the weight has; of equal ones the lowest."""
    used, at = np.unique(values, return_inverse=True)
    return int(used[int(np.bincount(np.reshape(at, -1), weight).argmax())])


def _inside(stacks: Stacks, stack: Array, weight: Array) -> str | None:
    """The function of a library, called by the user's own one, that holds at least half of this; None where none does."""
    names: Counter[str] = Counter()
    for frame, ns in zip(*_sums(stacks.called[stack], weight), strict=True):
        if frame != NONE:
            names[plain(stacks.frames.name[frame])] += ns
    name, most = names.most_common(1)[0] if names else ("", 0)
    return name if most and most * 2 >= int(weight.sum()) else None


def plain(name: str) -> str:
    """A function's name without what its profiler puts before it: `Trainer.step` stays, `f.<locals>.g` is g."""
    return name.rpartition(".<locals>.")[2] or name


def function_text(stacks: Stacks, function: int, line: int) -> str:
    """`bpe_merge (train.py:17)`."""
    name, file = stacks.functions[function]
    if not file:
        return plain(name)
    short = file.rpartition("/")[2]
    return f"{plain(name)} ({short}:{line})" if line > 0 else f"{plain(name)} ({short})"
