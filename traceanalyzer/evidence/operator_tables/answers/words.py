"""What sums and execution traces show, in sentences; and what they cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.model.tables import Tables
from traceanalyzer.units import format_count, format_duration, format_share

Row = Mapping[str, Any]
NO_OVERLAP = "sums do not tell what overlaps, so how long the {gpu} was idle could not be judged"
NO_TIMES = "an execution trace holds no times; give the Kineto trace of the same run beside it"
MUCH_WAITING = 0.2
ROUNDED = 1.01
"""Times are rounded; a part that is larger still than the whole contradicts it, and nothing is said of it."""
_GPUS = ("CUDA", "XPU", "HIP", "MPS")
_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def headline(tables: Tables) -> str | None:
    """Of what is beside no trace; None where all is."""
    sums = [row for row in tables.table("operator_sums").to_pylist() if row["alone"]]
    traces = [row for row in tables.table("execution_summary").to_pylist() if row["alone"]]
    said = [of_sums(sums[0])] if sums else []
    said += [of_execution(traces[0])] if traces else []
    return ". ".join(said) or None


def of_sums(row: Row) -> str:
    """A sentence without its stop on what takes the time of one profile."""
    gpu = gpu_word(row["device_name"])
    host = None if row["host_total"] is None else format_duration(row["host_total"])
    which = (
        f" of the first of {format_count(row['profiles'])} profiles"
        if row["profiles"] > 1 and row["profile"] == 0
        else ""
    )
    if row["device_name"] is None or not row["device_total"]:
        if host is None:
            return f"The profiler's table{which} has no totals"
        return f"Operators and calls{which} take {host} of the host; the table has no time of a GPU"
    device = format_duration(row["device_total"])
    first = f"Work on the {gpu}{which} takes {device}"
    if row["top_name"] and row["top_time"] <= ROUNDED * row["device_total"]:
        share = format_share(row["top_time"] / row["device_total"])
        verb = "starts" if row["top_starts"] else "takes"
        first += f", of which {row['top_name']} {verb} most ({format_duration(row['top_time'])}, {share})"
    second = f"; operators and calls take {host} of the host{_waiting(row)}" if host else ""
    return f"{first}{second}: {NO_OVERLAP.format(gpu=gpu)}"


def _waiting(row: Row) -> str:
    """How much of the host's time are waits for the device, where that is much."""
    share = (row["sync_time"] or 0) / max(row["host_total"], 1)
    return f", {format_share(share)} of that in {row['sync_name']}" if share >= MUCH_WAITING else ""


def of_execution(row: Row) -> str:
    """The same of an execution trace."""
    flops = f", which compute {format_flops(row['flops'])}" if row["flops"] else ""
    return f"{format_count(row['operators'])} operators ({format_count(row['names'])} different) were recorded{flops}: {NO_TIMES}"


def gpu_word(device: str | None) -> str:
    """What the device of a table is called in a sentence."""
    return "GPU" if device is None or device in _GPUS else f"device ({device})"


def format_flops(count: float) -> str:
    """Floating-point operations: 3.76e9 -> "3.76 GFLOP"."""
    for scale, letter in _SCALES:
        if count >= scale:
            digits = count / scale
            return f"{digits:.3g} {letter}FLOP" if digits < 999.5 else f"{digits:.0f} {letter}FLOP"
    return f"{count:.0f} FLOP"
