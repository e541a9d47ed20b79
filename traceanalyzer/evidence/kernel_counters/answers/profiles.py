"""Launches to profiles: what several pages say of one launch is put together, and launches of one kernel and size are one row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.evidence.kernel_counters.derived_tables import KERNEL_PROFILES
from traceanalyzer.evidence.kernel_counters.tables import AXES

ALIKE = 1.02
"""Times of one launch on two pages differ by what is rounded for print, 1% at most; what differs by more are two runs."""
_PRECISION = {"report": 0, "raw": 1, "details": 2, "text": 3, "summary": 4}
_SAME = ("rank", "pid", "launch", "function", "blocks", "threads")
_KERNEL = ("rank", "device", "function", "name", *AXES, "blocks", "threads")
_ESTIMATES = {
    "LaunchConfiguration": "tail_estimate",
    "TheoreticalOccupancy": "occupancy_estimate",
    "CPIStall": "stall_estimate",
}
_BOTTLENECK = "SOLBottleneck"
_ACCESS = ("UncoalescedGlobalAccess", "UncoalescedSharedAccess", "SharedMemoryConflicts", "MemoryCacheAccessPattern")
# What these estimate is not of what limits the kernel: a memory may be compressed or not, whoever waits for it.
_BESIDES = ("MemoryL2Compression", "SOLFPRoofline", "WorkloadImbalance")


def kernel_profiles(counted_launches: pa.Table, counter_rules: pa.Table) -> pa.Table:
    """One row a kernel, grid and block, in the order of their first launches."""
    if not counted_launches.num_rows:
        return KERNEL_PROFILES.empty()
    launches = _merged(counted_launches)
    rules = _by_launch(counter_rules)
    groups = launches.group_by(list(_KERNEL), use_threads=False).aggregate([("number", "list"), ("launches", "sum")])
    rows = []
    for numbers, count in zip(groups["number_list"].to_pylist(), groups["launches_sum"].to_pylist(), strict=True):
        typical = _typical(numbers, launches["profiled_time"].take(pa.array(numbers)).to_pylist())
        row = launches.slice(typical, 1).to_pylist()[0]
        said = [
            rule
            for page in zip(row["files"], row["numbers"], strict=True)
            for rule in rules.get((row["rank"], *page), ())
        ]
        row |= {"launches": count, **_sizes(row), **_ruled(said)}
        rows.append({name: row.get(name) for name in KERNEL_PROFILES.schema.names})
    return pa.Table.from_pylist(rows, KERNEL_PROFILES.schema)


def _typical(numbers: list[int], times: list[float | None]) -> int:
    """The launch of median time, of two the longer: a mean of counters would be of no launch that there was."""
    known = sorted((time, number) for time, number in zip(times, numbers, strict=True) if time is not None)
    return known[len(known) // 2][1] if known else numbers[-1]


def _merged(launches: pa.Table) -> pa.Table:
    """Each launch once, with its number: values of the page that prints most digits, and of others where that has none; `files` and
    `numbers` say where its rules are."""
    launches = _plain(launches)
    order = pc.index_in(launches["page"], pa.array(list(_PRECISION))).fill_null(len(_PRECISION))
    row = pa.array(np.arange(launches.num_rows))
    launches = launches.append_column("precision", order).append_column("row", row)
    launches = launches.sort_by([("precision", "ascending"), ("row", "ascending")])
    launches = launches.append_column("key", _keys(launches))
    first = [name for name in launches.schema.names if name not in ("key", "launches")]
    merged = launches.group_by("key", use_threads=False).aggregate(
        [*((name, "first") for name in first), ("launches", "max"), ("file", "list"), ("launch", "list")]
    )
    renamed = {f"{name}_first": name for name in first}
    renamed |= {"launches_max": "launches", "file_list": "files", "launch_list": "numbers"}
    merged = merged.select(list(renamed)).rename_columns(list(renamed.values()))
    merged = merged.sort_by([("rank", "ascending"), ("row", "ascending")])
    return merged.append_column("number", pa.array(np.arange(merged.num_rows)))


def _keys(launches: pa.Table) -> pa.Array:
    """A number for each launch that tells apart the launches: the same on several pages, unless their times differ by more than
    printing rounds."""
    place = launches.select(_SAME).append_column("place", pa.array(np.arange(launches.num_rows)))
    place = place.append_column("time", launches["profiled_time"])
    groups = place.group_by(list(_SAME), use_threads=False).aggregate(
        [("place", "list"), ("time", "min"), ("time", "max")]
    )
    of = groups["place_list"].combine_chunks()
    apart = pc.greater(groups["time_max"], pc.multiply(groups["time_min"], ALIKE)).fill_null(False)
    key = np.empty(launches.num_rows, np.int64)
    parents = of.value_parent_indices().to_numpy()
    places = of.flatten().to_numpy()
    key[places] = parents
    several = np.zeros(launches.num_rows, np.bool_)
    several[places] = apart.to_numpy(zero_copy_only=False)[parents]
    # Those that are apart are so by their file.
    files = np.unique(launches["file"].to_numpy(), return_inverse=True)[1] + 1
    return pa.array(frames.dense(key, np.where(several, files, 0)))


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, which do not group together; a null process and launch is none of its own."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(at, column.name, table[column.name].cast(pa.string()))
        elif column.name == "device":
            table = table.set_column(at, column.name, table[column.name].fill_null(0))
    return table


def _by_launch(rules: pa.Table) -> dict[tuple[int, int, int], list[dict[str, Any]]]:
    """By rank, file and launch."""
    found: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
    for row in rules.to_pylist():
        found.setdefault((row["rank"], row["file"], row["launch"]), []).append(row)
    return found


def _sizes(row: dict[str, Any]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, axes in (("grid", AXES[:3]), ("block", AXES[3:])):
        sizes = [row[axis] for axis in axes]
        found[name] = size_text(sizes) if all(sizes) else None
    return found


def size_text(sizes: list[int]) -> str:
    """A grid or block as `kernels` writes it: without trailing ones."""
    last = max((at for at, size in enumerate(sizes) if size != 1), default=0)
    return " × ".join(map(str, sizes[: last + 1]))


def _ruled(rules: list[dict[str, Any]]) -> dict[str, Any]:
    """What Nsight Compute's own rules say of a launch."""
    found: dict[str, Any] = {}
    for rule in rules:
        if rule["name"] == _BOTTLENECK:
            found["bottleneck"] = rule["message"]
    for name, column in _ESTIMATES.items():
        found[column] = max(_estimates(rules, name), default=None)
    access = max(((estimate, name) for name in _ACCESS for estimate in _estimates(rules, name)), default=None)
    if access is not None:
        found["access_estimate"], found["access"] = access
    named = [
        rule
        for rule in rules
        if rule["scope"] == "global" and rule["estimate"] is not None and rule["name"] not in _BESIDES
    ]
    best = max(named, key=lambda rule: rule["estimate"], default=None)
    if best is not None:
        found |= {"rule": best["name"], "rule_says": best["message"], "estimate": best["estimate"]}
    elif "bottleneck" in found:
        found |= {"rule": _BOTTLENECK, "rule_says": found["bottleneck"]}
    return found


def _estimates(rules: list[dict[str, Any]], name: str) -> Iterator[float]:
    yield from (rule["estimate"] for rule in rules if rule["name"] == name and rule["estimate"] is not None)
