"""Launches to profiles: what several pages say of one launch is put together, and launches of one kernel and size are one row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
# What these estimate is not of what limits the kernel: a memory may be compressed or not, whoever waits for it.
_BESIDES = ("MemoryL2Compression", "SOLFPRoofline", "WorkloadImbalance")


def kernel_profiles(counted_launches: pa.Table, counter_rules: pa.Table) -> pa.Table:
    """One row a kernel, grid and block, in the order of their first launches."""
    if not counted_launches.num_rows:
        return KERNEL_PROFILES.empty()
    launches, pages = _merged(counted_launches)
    said = _by_launch(counter_rules)
    rules = [[rule for page in of for rule in said.get(page, ())] for of in pages]
    launches = launches.set_column(launches.schema.get_field_index("device"), "device", launches["device"].fill_null(0))
    groups = launches.group_by(list(_KERNEL), use_threads=False).aggregate([("number", "list"), ("launches", "sum")])
    rows = []
    for group in groups.to_pylist():
        numbers = group["number_list"]
        typical = _typical(numbers, launches["profiled_time"].take(pa.array(numbers)).to_pylist())
        row = launches.slice(typical, 1).to_pylist()[0]
        row["launches"] = group["launches_sum"]
        rows.append({**row, **_sizes(row), **_ruled(rules[typical])})
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in KERNEL_PROFILES.schema.names} for row in rows], KERNEL_PROFILES.schema
    )


def _typical(numbers: list[int], times: list[float | None]) -> int:
    """The launch of median time, of two the longer: a mean of counters would be of no launch that there was."""
    known = sorted((time, number) for time, number in zip(times, numbers, strict=True) if time is not None)
    return known[len(known) // 2][1] if known else numbers[-1]


def _merged(launches: pa.Table) -> tuple[pa.Table, list[list[str]]]:
    """Each launch once, with its number: values of the page that prints most digits, and of others where that has none; and by number
    the pages that show it."""
    launches = _plain(launches)
    order = pc.index_in(launches["page"], pa.array(list(_PRECISION))).fill_null(len(_PRECISION))
    row = pa.array(range(launches.num_rows), pa.int64())
    launches = launches.append_column("precision", order).append_column("row", row)
    launches = launches.append_column("shown", _references(launches))
    launches = launches.sort_by([("precision", "ascending"), ("row", "ascending")])
    times = launches.group_by(list(_SAME), use_threads=False).aggregate(
        [("profiled_time", "min"), ("profiled_time", "max"), ("file", "count_distinct")]
    )
    apart = pc.greater(times["profiled_time_max"], pc.multiply(times["profiled_time_min"], ALIKE)).fill_null(False)
    times = times.append_column("apart", apart).select([*_SAME, "apart"])
    # Joins do not find nulls: keys are numbered instead.
    key = _numbered(launches, times)
    several = pc.take(times["apart"], key)
    own = pc.if_else(several, launches["file"], 0)
    launches = launches.append_column("key", key).append_column("own", own)
    first = [name for name in launches.schema.names if name not in ("key", "own", "shown", "launches")]
    merged = launches.group_by(["key", "own"], use_threads=False).aggregate(
        [*((name, "first") for name in first), ("launches", "max"), ("shown", "list")]
    )
    renamed = {f"{name}_first": name for name in first} | {"launches_max": "launches", "shown_list": "shown"}
    merged = merged.select(list(renamed)).rename_columns(list(renamed.values()))
    merged = merged.sort_by([("rank", "ascending"), ("row", "ascending")])
    pages = merged["shown"].to_pylist()
    number = pa.array(range(merged.num_rows), pa.int64())
    return merged.drop_columns("shown").append_column("number", number), pages


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, which do not group together; a null process and launch is none of its own."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(at, column.name, table[column.name].cast(pa.string()))
    return table


def _references(launches: pa.Table) -> pa.Array:
    files, numbers = (launches[name].cast(pa.string()) for name in ("file", "launch"))
    return pc.binary_join_element_wise(launches["rank"].cast(pa.string()), files, numbers, ":")


def _numbered(rows: pa.Table, groups: pa.Table) -> pa.Array:
    known = {key: number for number, key in enumerate(zip(*(groups[name].to_pylist() for name in _SAME), strict=True))}
    return pa.array([known[key] for key in zip(*(rows[name].to_pylist() for name in _SAME), strict=True)], pa.int64())


def _by_launch(rules: pa.Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rules.to_pylist():
        found.setdefault(f"{row['rank']}:{row['file']}:{row['launch']}", []).append(row)
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
