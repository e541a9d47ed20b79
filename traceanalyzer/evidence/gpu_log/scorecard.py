"""The figures of a log by which a run is looked over first: use, memory, power, heat and clocks, GPU by GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.gpu_log.answers.words import ENOUGH
from traceanalyzer.units import format_share

USED, FULL_MEMORY = 0.8, 0.9
"""A GPU is well used from this use on, and its memory nearly full from this part of it on."""
STANDS_OUT = 0.15
"""A GPU stands out whose mean use is so far from the median of all, or whose clock is by so much lower."""
OTHER_USE = 0.1
"""Use that differs by more from the trace's is not said beside it."""
_NAMED = 2
Row = dict[str, Any]


def headline(load: pa.Table) -> str | None:
    """What the log shows, of the only GPU or of all together; None where it adds nothing to what a trace says."""
    rows: list[Row] = [row for row in load.to_pylist() if row["samples"]]
    if len(rows) == 1:
        return _of_one(rows[0])
    working = [row for row in rows if row["load_samples"] and row["utilization"] is not None]
    if not working:
        return f"None of the {len(rows)} GPUs of the log is under load" if rows else None
    mean = sum(row["utilization"] for row in working) / len(working)
    said = f"{_count(len(working), len(rows))} busy {format_share(mean)} of the time while they have work"
    idle = [gpu_name(row) for row in rows if row["unused"]]
    if 0 < len(idle) <= _NAMED:
        said += f"; {' and '.join(idle)} {'has' if len(idle) == 1 else 'have'} none"
    far = standing_out(rows)
    return f"{said}; {far}" if far else said


def _of_one(row: Row) -> str | None:
    if row["beside"] and row["load_samples"] < ENOUGH:
        # How much of all the log it was busy says nothing of the time of a trace.
        return None
    if row["unjudged"]:
        return f"The log of {gpu_name(row)} tells nothing of its load: {row['unjudged']}"
    if disagrees(row):
        return f"{gpu_name(row)} runs with {row['said_clock']}" if row["said_clock"] else None
    return f"{gpu_name(row)} {row['said_load']}"


def disagrees(row: Row) -> bool:
    """Whether the log's use is another than what the trace has of the GPU: it is of any process, and of other times."""
    return (
        row["traced"] is not None
        and row["utilization"] is not None
        and abs(row["utilization"] - row["traced"]) > OTHER_USE
    )


def _count(working: int, all_: int) -> str:
    return f"The {working} GPUs are" if working == all_ else f"{working} of {all_} GPUs have work and are"


def standing_out(rows: Sequence[Row]) -> str | None:
    """The GPU that differs most from the median of all in use, else in clock; None where none does."""
    for column, words in (
        ("utilization", "is busy {} of the time"),
        ("clock_share", "has its clock at {} of the highest"),
    ):
        known = [row for row in rows if row["load_samples"] and row[column] is not None]
        if len(known) < 3:
            continue
        middle = sorted(row[column] for row in known)[len(known) // 2]
        far = max(known, key=lambda row: (abs(row[column] - middle), -row["device"]))
        if abs(far[column] - middle) >= STANDS_OUT:
            said = words.format(format_share(far[column]))
            return f"{gpu_name(far)} stands out: it {said}, the median GPU {format_share(middle)}"
    return None


def gpu_name(row: Row) -> str:
    return f"GPU {row['device']}"


def measure(load: pa.Table) -> Mapping[str, int | float]:
    """The figures that are known, of the GPUs under load."""
    rows = [row for row in load.to_pylist() if row["load_samples"]]
    known = {
        name: [row[column] for row in rows if row[column] is not None]
        for name, column in (
            ("utilization", "utilization"),
            ("clock", "clock"),
            ("power", "power"),
            ("temperature", "temperature_most"),
            ("memory", "memory_used"),
            ("held_down", "faults"),
        )
    }
    found: dict[str, int | float] = {}
    for name, values in known.items():
        if values:
            found[name] = (
                sum(values) / len(values)
                if name in ("utilization", "power")
                else min(values)
                if name == "clock"
                else max(values)
            )
    return found
