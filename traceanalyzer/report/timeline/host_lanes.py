"""The lanes of host threads: their ranges by category, and their calls of the GPU runtime."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from traceanalyzer.columns import integers, short_encoded
from traceanalyzer.columns.frames import counts, row_groups, row_parts
from traceanalyzer.model.launch_links import Numbers
from traceanalyzer.report.palette import API_CLASS_KEYS, CODES, RANGE_KEYS
from traceanalyzer.report.timeline.lanes import Group, Key, Lane, Source, extent, slices_of
from traceanalyzer.report.timeline.name_table import looked_up, lookup
from traceanalyzer.report.timeline.slices import pack
from traceanalyzer.result.words.gpu_names import part_of

TABLES = ("host_ranges", "launches", "api_calls", "threads")
"""What these lanes read."""
THREADS_PER_PROCESS = 8
CALL_ROWS = 4
RANGE_LANES = (
    ("annotations", "annotation", 8),
    ("NVTX", "nvtx", 16),
    ("operators", "operator", 16),
    ("OpenACC", "openacc", 8),
    ("OpenMP", "openmp", 8),
    ("host functions", "callback", 4),
    ("MPI", "mpi", 4),
    ("system calls", "os", 4),
    ("Python", "python", 48),
)
"""Label, category, and how deep ranges may nest to be shown."""
_TELLING = re.compile(r"data[ _-]?load|autograd::engine::evaluate_function|\bbackward\b", re.IGNORECASE)
"""Ranges of a data loader or of the backward pass: a thread of theirs is worth a look even if it launches nothing."""
_THREAD = ("rank", "process", "thread")


def thread_groups(source: Source, link: Numbers) -> list[Group]:
    """The threads that launch GPU work, and others that tell something. `link` is the launch of each row of `api_calls`."""
    lanes: dict[Key, list[Lane]] = {key: [] for key in _chosen_threads(source)}
    for key, lane in (*_range_lanes(source, lanes.keys()), *_call_lanes(source, lanes.keys(), link)):
        lanes[key].append(lane)
    for found in lanes.values():
        found.sort(key=lambda lane: lane.label == RANGE_LANES[-1][0])  # frames are deep: what else there is comes first
    titles = _thread_titles(source)
    groups = [
        Group(
            part_of(source.rank_name(key[0]), titles.get(key) or f"thread {key[2]}"), key[0], None, extent(found), found
        )
        for key, found in lanes.items()
        if found
    ]
    groups.sort(key=lambda group: group.window[0])  # the thread that starts the work before those that help it
    return groups


def _chosen_threads(source: Source) -> list[Key]:
    """Of each process the threads that launch most, then those with most ranges that tell something."""
    ranges = source.table("host_ranges")
    launches = next((found for name in ("launches", "api_calls") if (found := _rows_by_thread(source.table(name)))), {})
    telling = {} if ranges is None else _rows_by_thread(ranges.filter(pa.array(_is_telling(ranges))))
    every = _rows_by_thread(ranges)
    found = launches | telling or every
    processes: dict[Key, list[Key]] = {}
    for key in sorted(found, key=lambda key: (-launches.get(key, 0), -found[key], key)):
        processes.setdefault(key[:2], []).append(key)
    crowded = sum(max(len(threads) - THREADS_PER_PROCESS, 0) for threads in processes.values())
    source.leave_out(crowded, f"threads beyond the busiest {THREADS_PER_PROCESS} of a process")
    source.leave_out(len(every.keys() - found.keys()), "threads that launch no GPU work and mark no ranges")
    return sorted(key for threads in processes.values() for key in threads[:THREADS_PER_PROCESS])


def _rows_by_thread(table: pa.Table | None) -> dict[Key, int]:
    return {} if table is None else dict(sorted(counts(*(integers(table, column) for column in _THREAD))))


def _is_telling(ranges: pa.Table) -> NDArray[np.bool_]:
    category, categories = short_encoded(ranges, "category")
    name, names = short_encoded(ranges, "name")
    told = looked_up(lookup(names, {text: 1 for text in names if _TELLING.search(text)}, 0), name)
    marked = looked_up(lookup(categories, {"annotation": 1, "nvtx": 1}, 0), category)
    telling: NDArray[np.bool_] = (told | marked) == 1
    return telling


def _thread_titles(source: Source) -> dict[Key, str]:
    table = source.table("threads")
    if table is None:
        return {}
    names = table["name"].to_pylist()
    named = {key: names[rows[0]] for key, rows in row_groups(table, _THREAD) if names[rows[0]]}
    # Some profilers put the number into the name: "thread 807 (pt_autograd_0)".
    return {key: name if str(key[2]) in name else f"{name} · thread {key[2]}" for key, name in named.items()}


def _range_lanes(source: Source, threads: Container[Key]) -> Iterator[tuple[Key, Lane]]:
    table = source.table("host_ranges")
    if table is None:
        return
    index, categories = short_encoded(table, "category")
    by_category = lookup(categories, {key: CODES[kind] for key, kind in RANGE_KEYS.items()}, CODES["operator"])
    colour = looked_up(by_category, index)
    name = source.names.column(table, "name")
    deep = 0
    for key, rows in row_groups(table, _THREAD):
        own = index[rows]
        for label, category, limit in RANGE_LANES if key in threads else ():
            mine = rows[own == categories.index(category)] if category in categories else rows[:0]
            if len(mine):
                packed, left = pack(slices_of(table, mine, name, colour), limit)
                deep += left
                yield key, Lane(label, packed)
    source.leave_out(deep, "host ranges that are nested too deep")


def _call_lanes(source: Source, threads: Container[Key], link: Numbers) -> Iterator[tuple[Key, Lane]]:
    table = source.table("api_calls")
    if table is None:
        return
    index, classes = short_encoded(table, "class")
    by_class = lookup(classes, {key: CODES[kind] for key, kind in API_CLASS_KEYS.items()}, CODES["api"])
    colour = looked_up(by_class, index)
    name = source.names.column(table, "name")
    deep = 0
    for key, rows in row_parts(table, _THREAD):
        if key in threads:
            packed, left = pack(slices_of(table, rows, name, colour, link), CALL_ROWS)
            deep += left
            yield key, Lane("runtime calls", packed)
    source.leave_out(deep, f"calls inside {CALL_ROWS} other calls")
