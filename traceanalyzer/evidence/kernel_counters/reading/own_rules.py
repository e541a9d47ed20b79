"""What Nsight Compute's own rules say in words: which rule it is, the busiest pipeline, what warps wait for most."""

from __future__ import annotations

import re
from functools import lru_cache

from traceanalyzer.evidence.kernel_counters.reading.numbers import number

_NAMES: tuple[tuple[str, str], ...] = (
    (
        r"grid is too small to fill|low compute throughput and memory|greater than \d+(?:[.,]\d+)?% of the available",
        "SOLBottleneck",
    ),
    (r"(?:Compute|Memory) is more heavily utilized|Compute and Memory are well-balanced", "SOLBottleneck"),
    (r"peak (?:float|fp32)|\(FP32\) to double", "SOLFPRoofline"),
    (r"highest-utilized pipeline|compute pipelines are under-utilized", "HighPipeUtilization"),
    (r"^Every scheduler is capable", "IssueSlotUtilization"),
    (r"cycles being stalled", "CPIStall"),
    (
        r"^A wave of thread blocks|blocks, which is less than the GPU's|__syncthreads\(\)|multiple of 32 threads",
        "LaunchConfiguration",
    ),
    (r"theoretical occupancy \(\d+(?:[.,]\d+)?%\)", "TheoreticalOccupancy"),
    (r"calculated theoretical .* measured achieved", "AchievedOccupancy"),
    (r"number of active cycles than the average", "WorkloadImbalance"),
    (r"memory access pattern", "MemoryCacheAccessPattern"),
    (r"L2 Compression", "MemoryL2Compression"),
    (r"bank conflict", "SharedMemoryConflicts"),
    (r"uncoalesced", "UncoalescedGlobalAccess"),
)
_KNOWN = tuple((re.compile(pattern, re.IGNORECASE), name) for pattern, name in _NAMES)
_WAVES = re.compile(r"grid is too small .* only ([\d.,]+) full waves")
_PIPE = re.compile(r"^([\w /()]+?) is the highest-utilized pipeline \(([\d.,]+)\s?%")
_STALL = re.compile(r"spends ([\d.,]+) cycles being stalled (.*?)(?:\.\s|\.$|,? which represents|$)", re.DOTALL)
_OF_ALL = re.compile(r"represents about ([\d.,]+)\s?%")
_REASONS: tuple[tuple[str, str], ...] = (
    (r"scoreboard dependency on a L1TEX", "long_scoreboard"),
    (r"scoreboard dependency on (?:a|an) MIO", "short_scoreboard"),
    (r"local.{0,5}global|\bLG\b", "lg_throttle"),
    (r"WARPGROUP", "gmma"),
    (r"MIO", "mio_throttle"),
    (r"L1TEX|texture|\bTEX\b", "tex_throttle"),
    (r"memory barrier", "membar"),
    (r"barrier", "barrier"),
    (r"execution pipe|math", "math_pipe_throttle"),
    (r"fixed latency", "wait"),
    (r"immediate constant|constant cache", "imc_miss"),
    (r"instruction fetch|instruction cache|no instruction|fetched", "no_instruction"),
    (r"branch target", "branch_resolving"),
    (r"dispatch", "dispatch_stall"),
    (r"memory stores?|drain", "drain"),
    (r"sleep", "sleeping"),
)


@lru_cache(maxsize=4096)
def name_of(message: str) -> str | None:
    """The rule that says so, for pages that do not name it."""
    return next((name for pattern, name in _KNOWN if pattern.search(message)), None)


def told(name: str | None, message: str) -> dict[str, float | str]:
    """The columns that a rule's words give. Its words are English with points, whatever the locale; older ones follow it."""
    if name == "SOLBottleneck" and (found := _WAVES.search(message)):
        return _named({"waves": _number(found[1])})
    if name == "HighPipeUtilization" and (found := _PIPE.search(message)):
        return _named({"pipe": found[1].strip(), "pipe_share": _share(found[2])})
    if name == "CPIStall" and (found := _STALL.search(message)):
        waited = found[2]
        reason = next((reason for pattern, reason in _REASONS if re.search(pattern, waited)), None)
        of_all = _OF_ALL.search(message)
        told = {
            "stall": reason,
            "stall_cycles": _number(found[1]),
            "stall_share": _share(of_all[1]) if of_all else None,
        }
        return _named(told) if reason else {}
    return {}


def _named(found: dict[str, float | str | None]) -> dict[str, float | str]:
    return {name: value for name, value in found.items() if value is not None}


def _number(text: str) -> float | None:
    return number(text, _mark(text))


def _share(text: str) -> float | None:
    value = _number(text)
    return None if value is None else min(value / 100, 1.0)


def _mark(text: str) -> str:
    return "," if re.fullmatch(r"\d+,\d{1,2}", text) else "."
