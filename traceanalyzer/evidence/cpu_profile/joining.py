"""A profile's threads and samples as the trace that it is beside numbers and writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames as columns
from traceanalyzer.evidence.cpu_profile.answers.paths import frame_labels
from traceanalyzer.evidence.cpu_profile.answers.stacks import NONE
from traceanalyzer.evidence.cpu_profile.answers.threads import MAIN, Profile, plain, walked_profiles
from traceanalyzer.intervals import Array
from traceanalyzer.model.schema import CPU_SAMPLES
from traceanalyzer.model.tables import Tables

_OWN = ("profile_about", "profile_threads", "profile_frames", "profile_stacks", "profile_samples")
STEP_NS = 100_000
"""How far apart the samples are that a recording of whole stretches is made into, at most."""
MOST_SAMPLES = 2_000_000


def fits(own: Tables, trace: Tables) -> bool | None:
    """By the system's numbers of processes: one that both have tells that they are of one run, none that they are not."""
    threads = own.table("profile_threads")
    theirs = set(trace.table("processes")["pid"].drop_null().to_pylist())
    pids = set(threads["process"].drop_null().to_pylist())
    # The main thread of a process has its number, on Linux, and no other thread of the system has.
    mains = {row["tid"] for row in threads.to_pylist() if row["process"] is None and row["tid"] is not None}
    if not theirs or not (pids or mains):
        return None
    if theirs & (pids | mains):
        return True
    return False if pids else None


def enrich(own: Tables, trace: Tables) -> Mapping[str, pa.Table]:
    """The trace's CPU samples with those of the profile, of the threads that are certainly the trace's."""
    samples = own.table("profile_samples")
    if not samples.num_rows or samples["time_ns"].null_count:
        return {}
    tables = {name: own.table(name) for name in _OWN}
    (profile,) = walked_profiles(*tables.values())
    about = tables["profile_about"].to_pylist()[0]
    places = _threads(tables["profile_threads"], trace)
    thread, time, weight, stack = (columns.ints(samples, name) for name in ("thread", "time_ns", "weight", "stack"))
    parts = []
    for number, place in places.items():
        mine = np.flatnonzero(thread == number)
        at, of = time[mine], np.where(stack[mine] == columns.NULL, NONE, stack[mine])
        if about["stretches"]:
            at, of = _sampled(at, weight[mine], of)
        some = of != NONE
        parts.append((np.full(int(some.sum()), place[0]), np.full(int(some.sum()), place[1]), at[some], of[some]))
    if not parts:
        return {}
    process, tid, at, of = (np.concatenate(column) for column in zip(*parts, strict=True))
    used, code = np.unique(of, return_inverse=True)
    texts = _texts(profile, used)
    rows = columns.build(
        CPU_SAMPLES,
        {
            "rank": np.full(len(at), profile.rank),
            "process": process,
            "thread": tid,
            "time_ns": at,
            "stack": columns.names(np.reshape(code, -1), texts),
        },
    )
    return {CPU_SAMPLES.name: _sorted(columns.concatenated([trace.table(CPU_SAMPLES.name), rows]))}


def _sorted(table: pa.Table) -> pa.Table:
    order = np.lexsort(tuple(columns.ints(table, name) for name in ("time_ns", "thread", "process", "rank")))
    return table.take(pa.array(order))


def _sampled(start: Array, length: Array, stack: Array) -> tuple[Array, Array]:
    """Stretches as samples at regular times: each instant on a grid that lies in a stretch has its stack."""
    if not len(start):
        return start, stack
    order = np.argsort(start, kind="stable")
    start, length, stack = start[order], length[order], stack[order]
    low, high = int(start[0]), int((start + length).max())
    step = max(min(STEP_NS, max(1_000, (high - low) // 100_000)), (high - low) // MOST_SAMPLES + 1)
    grid = np.arange(low + step // 2, high, step)
    at = np.searchsorted(start, grid, side="right") - 1
    inside = grid < (start + length)[at]
    return grid[inside], stack[at[inside]]


def _threads(table: pa.Table, trace: Tables) -> dict[int, tuple[int, int]]:
    """For each thread of the profile that is certainly one of the trace's: its (process, thread) there."""
    processes = {row["pid"]: row["process"] for row in trace.table("processes").to_pylist() if row["pid"] is not None}
    named: dict[tuple[int, str | None], list[int]] = {}
    known = set()
    for row in trace.table("threads").to_pylist():
        known.add((row["process"], row["thread"]))
        named.setdefault((row["process"], row["name"]), []).append(row["thread"])
    for name in ("api_calls", "host_ranges"):
        some = trace.table(name)
        keys = (
            zip(*(columns.ints(some, column) for column in ("process", "thread")), strict=True) if some.num_rows else ()
        )
        known |= {(int(one), int(two)) for one, two in set(keys)}
    found: dict[int, tuple[int, int]] = {}
    rows = table.to_pylist()
    names = Counter((row["process"], row["name"]) for row in rows)
    for row in rows:
        pid = row["process"]
        main = row["name"] == MAIN or (pid is not None and row["tid"] == pid)
        if pid is None and row["tid"] in processes:
            pid = row["tid"]
        if pid is None and len(processes) == 1:
            (pid,) = processes
        if pid not in processes:
            continue
        process = processes[pid]
        if (process, row["tid"]) in known:
            place = row["tid"]
        elif main and (process, pid) in known:
            place = pid
        elif (
            row["name"] and names[row["process"], row["name"]] == 1 and len(named.get((process, row["name"]), ())) == 1
        ):
            (place,) = named[process, row["name"]]
        else:
            continue
        found[row["thread"]] = process, place
    # Two that would be one are not told apart.
    twice = Counter(found.values())
    return {number: place for number, place in found.items() if twice[place] == 1}


def _texts(profile: Profile, stacks: Array) -> list[str | None]:
    """Each stack as `cpu_samples` writes it, Python's frames as traces name them: `train.py(45): step`."""
    frames = profile.stacks.frames
    labels = frame_labels(profile)
    texts = []
    for at, (name, file) in enumerate(zip(frames.name, frames.file, strict=True)):
        text = f"[{name.strip('[]')}]" if name.startswith("[") else plain(name)
        if frames.python[at]:
            line = labels[at].rpartition(":")[2].rstrip(")")
            text = f"{file}({line if line.isdigit() else 0}): {plain(name)}"
        texts.append(text.replace(";", ":"))
    return [";".join(texts[frame] for frame in profile.stacks.path(one)) for one in stacks.tolist()]
