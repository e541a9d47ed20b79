"""What to profile next time so that counters tell more."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from traceanalyzer.model.tables import Tables
from traceanalyzer.result.recording.diagnosis import Setting


def advice(tables: Tables) -> Iterator[Setting]:
    """One setting for each thing that these pages lack."""
    launches, rules = tables.table("counted_launches"), tables.table("counter_rules")
    if not launches.num_rows:
        return

    def has(*names: str) -> bool:
        return all(launches[name].null_count < launches.num_rows for name in names)

    if not has("sm", "memory"):
        yield Setting(
            "throughputs of the multiprocessors and of memory",
            "ncu --section SpeedOfLight (or --set basic)",
            "what limits each kernel, and how far it is from its roof",
            "some passes a launch",
            None,
            [],
        )
    if not has("occupancy", "stall") and not has("occupancy", "cycles_per_issue"):
        yield Setting(
            "occupancy and what warps wait for",
            "ncu --set full",
            "why a kernel waits where neither computing nor memory is busy: too few blocks or warps, contention, long latencies",
            "some 40 passes a launch: each is run as often",
            "Profile few launches: --launch-skip and --launch-count, or --kernel-name regex:NAME.",
            [],
        )
    if not rules.num_rows:
        yield Setting(
            "what the profiler's own rules say",
            "ncu --page details --csv (with --set full)",
            "its estimates of speedups, beside its counters",
            "nothing",
            None,
            [],
        )
    if not has("flop_rate"):
        yield Setting(
            "operations and bytes for the roofline",
            "ncu --set full, printed with --page raw --csv beside the details",
            "how many operations a kernel does for each byte, and the roof above it",
            "nothing more than --set full",
            None,
            [],
        )
    if not has("grid_x", "block_x"):
        yield Setting(
            "grid and block of each launch",
            "a release of Nsight Compute from 2022 on, or its Launch Statistics (--section LaunchStats)",
            "which launches of the trace a profile stands for",
            "nothing",
            None,
            [],
        )
    if (
        pc.max(launches["launches"]).as_py()
        and pc.equal(pc.max(launches["launches"]), 1).as_py()
        and launches.num_rows == 1
    ):
        yield Setting(
            "a second launch",
            "ncu --launch-count 2 (with --launch-skip for those that warm up)",
            "whether the first is like the others",
            "as much again",
            None,
            [],
        )
    yield Setting(
        "source lines",
        "ncu --import-source yes, and -lineinfo for nvcc (Triton has it)",
        "in the profiler's own window, the line that warps wait at",
        "a larger report",
        None,
        [],
    )
