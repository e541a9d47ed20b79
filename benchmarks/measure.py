"""Wall time, CPU time and peak memory of one command, children's CPU included."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a command cost: wall and CPU seconds, and the peak resident memory of its largest process in MiB, and whether it failed."""

    wall: float
    cpu: float
    memory: float
    failed: bool = False


def cost_of(*command: str, limits: Mapping[int, int] | None = None) -> Cost:
    """What a command costs, within limits of `resource` where they are given: beyond them it fails."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for what, most in (limits or {}).items():
        resource.prlimit(process.pid, what, (most, most))
    _, status, usage = os.wait4(process.pid, 0)
    failed = os.waitstatus_to_exitcode(status) not in (0, 1)
    return Cost(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, failed)


def measure(label: str, *command: str) -> Cost:
    """Run one command and print what it cost."""
    cost = cost_of(*command)
    failed = "  FAILED" if cost.failed else ""
    print(f"  {label:<40}{cost.wall:7.1f} s wall{cost.cpu:7.1f} s CPU{cost.memory:8.0f} MiB peak{failed}", flush=True)
    return cost


def ratio(label: str, value: float, target: float) -> None:
    """Print a ratio beside what it should be at most."""
    print(f"  {label:<64}{value:5.2f} x (at most {target})" + ("" if value <= target else "  MISSED"), flush=True)


def milliseconds(label: str, value: float, target: float | None = None) -> None:
    """Print a time in ms, beside what it should be at most."""
    aim = "" if target is None else f" (at most {target:g})" + ("" if value <= target else "  MISSED")
    print(f"  {label:<64}{value:8.1f} ms{aim}", flush=True)


def percent(label: str, value: float, most: float) -> None:
    """Print a share in percent, beside what it should be at most, to two decimals."""
    print(
        f"  {label:<64}{value:5.2f} % (at most {most:.2f})" + ("" if round(value, 2) <= most else "  MISSED"),
        flush=True,
    )
