"""What a profile's sums tell: how often and how long; and the names that take most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.operator_tables.answers.profiles import Profile, profiles
from traceanalyzer.evidence.operator_tables.answers.words import gpu_word
from traceanalyzer.evidence.operator_tables.derived_tables import OPERATOR_ROWS, OPERATOR_SUMS
from traceanalyzer.units import format_duration

MOST_ROWS = 25
_WHOLE = 0.995
"""Times are rounded in each row; what is left is no row that was left out."""
_WHOLE_HOST = 0.98
_NO_RANGE = ("kernel", "communication", "memcpy", "memset")
KIND = "operator_tables"


def operator_sums(operator_averages: pa.Table, average_tables: pa.Table, placed_evidence: pa.Table) -> pa.Table:
    """One row a profile."""
    beside = beside_a_trace(placed_evidence)
    found = profiles(operator_averages, average_tables)
    rows = [_sums(one, one.rank not in beside) for one in found]
    return pa.Table.from_pylist(rows, OPERATOR_SUMS.schema)


def lone_operator_sums(operator_sums: pa.Table) -> pa.Table:
    """Those of tables beside no trace: a trace tells what they sum up, and better."""
    return operator_sums.filter(operator_sums["alone"])


def beside_a_trace(placed_evidence: pa.Table) -> set[int]:
    """The ranks whose trace files of this kind are beside."""
    own = placed_evidence.filter(pc.equal(placed_evidence["kind"], KIND))
    return set(own.filter(pc.is_valid(own["placed_by"]))["rank"].to_pylist())


def _sums(one: Profile, alone: bool) -> dict[str, Any]:
    classes = _by_class(one.rows)

    def total(column: str, *names: str) -> int:
        return sum(int(classes[name][column] or 0) for name in names if name in classes)

    kernels = total("calls", "kernel", "communication")
    kernel_time = total("self_device", "kernel", "communication")
    copies = total("self_device", "memcpy", "memset")
    launches, syncs = "launch" in classes, "sync" in classes
    listed = kernel_time + copies
    known = listed > 0 and not _impossible(one.device_total, listed)
    top = _top(one, known)
    flops = classes["operator"]["flops"] if "operator" in classes else None
    return {
        "rank": one.rank,
        "file": one.file,
        "profile": one.place,
        "profiles": one.several,
        "device_name": one.device,
        "alone": alone,
        "host_total": one.host_total,
        "device_total": one.device_total,
        "steps": total("calls", "step") if "step" in classes else None,
        "rows": one.rows.num_rows,
        "whole": known and one.device_total is not None and listed >= _WHOLE * one.device_total,
        "host_whole": one.host_total is not None and _of_host(one) >= _WHOLE_HOST * one.host_total,
        "kernels": kernels if known else None,
        "kernel_time": kernel_time if known else None,
        "kernel_mean": round(kernel_time / kernels) if known and kernels else None,
        "communication": total("self_device", "communication") if known else None,
        "copies": copies if known else None,
        "launches": total("calls", "launch") if launches else None,
        "launch_time": total("self_host", "launch") if launches else None,
        "launch_mean": _mean(total("self_host", "launch"), total("calls", "launch")) if launches else None,
        "syncs": total("calls", "sync") if syncs else None,
        "sync_time": total("self_host", "sync") if syncs else None,
        "sync_name": _first(one.rows.filter(pc.equal(one.rows["class"], "sync")), "self_host")["name"]
        if syncs
        else None,
        "flops": flops,
        "device_word": gpu_word(one.device),
        "kernel_words": f"{format_duration(kernel_time / kernels)} a kernel on average" if known and kernels else None,
        "top_name": top and top["name"],
        "top_time": top and top["self_device"],
        "top_starts": bool(top and top["class"] == "operator"),
        "top_calls": top and top["calls"],
    }


def _of_host(one: Profile) -> int:
    return int(pc.sum(one.rows["self_host"]).as_py() or 0)


def _impossible(total: int | None, listed: int) -> bool:
    """Whether more time is listed than there is: ranges of the program that cannot be told from kernels."""
    return total is not None and listed > total * 1.01 + 1000


def _mean(time: int, calls: int) -> int | None:
    return round(time / calls) if calls else None


def _by_class(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """The sums of each class."""
    columns = ("calls", "self_host", "self_device", "flops")
    found = rows.group_by("class", use_threads=False).aggregate([(name, "sum") for name in columns])
    return {row["class"]: {name: row[f"{name}_sum"] for name in columns} for row in found.to_pylist()}


def _top(one: Profile, known: bool) -> dict[str, Any] | None:
    rows = one.rows.filter(pc.greater(pc.fill_null(one.rows["self_device"], 0), 0))
    # What starts a kernel alone takes as long as it does, and says more.
    operators = rows.filter(pc.equal(rows["class"], "operator"))
    first = [_first(operators, "self_device")] if operators.num_rows else []
    kernels = rows.filter(pc.is_in(rows["class"], pa.array(_NO_RANGE)))
    first += [_first(kernels, "self_device")] if known and kernels.num_rows else []
    return max(first, key=lambda row: row["self_device"], default=None)


def _first(rows: pa.Table, by: str) -> dict[str, Any]:
    """The row that has most; there is one."""
    found: dict[str, Any] = rows.sort_by([(by, "descending"), ("name", "ascending")]).slice(0, 1).to_pylist()[0]
    return found


def operator_rows(operator_averages: pa.Table, average_tables: pa.Table) -> pa.Table:
    """The first rows of each list of each profile."""
    rows = [row for one in profiles(operator_averages, average_tables) for row in _lists(one)]
    return pa.Table.from_pylist(rows, OPERATOR_ROWS.schema)


def _lists(one: Profile) -> Iterator[dict[str, Any]]:
    classes = pc.is_in(one.rows["class"], pa.array(_NO_RANGE))
    yield from _list(one, "device", one.rows.filter(classes), "self_device", one.device_total)
    of_host = one.rows.filter(pc.invert(one.rows["on_device"]))
    started = of_host.filter(pc.greater(pc.fill_null(of_host["self_device"], 0), 0))
    if one.shaped is not None:
        # With shapes in it, a count of FLOPs says what of.
        shaped = one.shaped.filter(pc.greater(pc.fill_null(one.shaped["flops"], 0.0), 0.0))
        yield from _list(one, "shapes", shaped, "flops", None)
    yield from _list(one, "operators", started, "self_device", one.device_total)
    yield from _list(one, "host", of_host, "self_host", one.host_total)


def _list(one: Profile, name: str, rows: pa.Table, by: str, total: int | None) -> Iterator[dict[str, Any]]:
    rows = rows.filter(pc.greater(pc.fill_null(rows[by], 0), 0))
    rows = rows.set_column(rows.schema.get_field_index("name"), "name", rows["name"].cast(pa.string()))
    first = rows.sort_by([(by, "descending"), ("name", "ascending")]).slice(0, MOST_ROWS)
    for order, row in enumerate(first.to_pylist()):
        took = row["self_device"]
        yield {
            "rank": one.rank,
            "file": one.file,
            "profile": one.place,
            "order": order,
            "list": name,
            "name": row["name"],
            "class": row["class"],
            "calls": row["calls"],
            "self_host": row["self_host"],
            "self_device": took,
            "share": row[by] / total if total else None,
            "flops": row["flops"],
            "rate": row["flops"] / took * 1e9 if row["flops"] and took else None,
            "memory": row["self_device_memory"],
            "shapes": row.get("shapes"),
        }
