"""What limits a kernel, by its counters: the bandwidth of a memory, a pipeline, or that too little is under way at once.

The order is that of Nsight Compute's rule SOLBottleneck (its documentation, Profiling Guide, Speed Of Light): above 80% of a peak a
kernel is near its roof, below 60% of all peaks it waits, and between them what is used 10% more than the other limits it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil, floor
from typing import Any

from traceanalyzer.records import dataclass

NEAR = 0.8
LOW = 0.6
APART = 0.1
ABOUT_ALIKE = 0.05
"""Of two units that are both near their peaks, the computing one is the limit where memory is used no more than so much more: what a
matrix product reads from shared memory counts as memory."""
FEW_BLOCKS = 1.0
TAIL = 0.15
"""A last wave that is emptier costs less than that share of the time, which other things hide."""
LITTLE_OCCUPANCY = 0.5
"""Below half of the warps that a multiprocessor holds, there may be too few to hide latency (CUDA C++ Best Practices Guide)."""
SLOW_CYCLES = 2_000
"""A load from device memory takes some 500 to 1,000 cycles (microbenchmarks of Volta to Hopper); who waits longer while the memory is
idle stands in a queue for one place."""
IDLE = 0.1
ATOMICS_PART = 0.3
BUSY_SLICE = 0.5
MEMORIES = ("dram", "l2", "l1")
_PIPES = {"tensor": "tensor", "fma": "fp32", "fmaheavy": "fp32", "fp32": "fp32", "fp64": "fp64", "fp16": "fp16"}
_TENSOR_NAMES = re.compile(r"nvjet|tensorop|wgmma|[hiqd]g?mma|sm\d+_xmma|cutlass3x|flash_(?:fwd|bwd)")
_RESIDENT = {
    "limit_registers": "registers",
    "limit_shared": "shared memory",
    "limit_warps": "the size of its blocks",
    "limit_blocks": "the blocks that a multiprocessor takes",
    "limit_barriers": "barriers",
}
Profile = Mapping[str, Any]


@dataclass(frozen=True)
class Limit:
    """What limits a kernel; `used` and gains are shares, and None where nothing tells."""

    limiter: str
    used: float | None
    gain: float = 0.0
    least: float = 0.0
    most: float = 0.0
    contended_by: str | None = None
    at_least: bool = False
    """Whether `used` is the least that it is: Nsight Compute's rule says so, and its counters are not printed."""

    @property
    def near_roof(self) -> bool:
        """Whether what limits it is used as far as one gets."""
        return self.used is not None and self.used >= NEAR


def limit_of(profile: Profile) -> Limit:
    """The limit of one kernel with one grid and block."""
    computing, memory = profile["sm"], profile["memory"]
    if computing is None or memory is None:
        return _by_some(computing, memory, profile)
    used = max(computing, memory)
    if used < LOW:
        return _waiting(profile, used)
    if used < NEAR and abs(computing - memory) < APART:
        return Limit("balanced", used)
    if computing > memory or (computing >= NEAR - ABOUT_ALIKE and computing >= memory - ABOUT_ALIKE):
        return Limit(pipe_of(profile), computing)
    return Limit(memory_of(profile, memory), memory)


def _by_some(computing: float | None, memory: float | None, profile: Profile) -> Limit:
    """By the throughputs that were counted: a high one tells, and a low one says nothing of the others."""
    known = {name: profile[name] for name in MEMORIES if profile[name] is not None}
    best = max(known, key=lambda name: known[name], default=None)
    moved = memory if memory is not None else known[best] if best else 0.0
    if moved >= LOW and moved >= (computing or 0.0):
        return Limit(memory_of(profile, moved), moved)
    if computing is not None and computing >= LOW:
        return Limit(pipe_of(profile), computing)
    return _by_rule(profile, max(moved, computing or 0.0)) or Limit("unknown", None)


_SAYS = (
    (re.compile(r"greater than \d"), NEAR),
    (re.compile(r"is more heavily utilized|well-balanced"), LOW),
)
_UNIT = re.compile(r"(?:analyzing|identify the) (?:the )?(DRAM|L2|L1)\b")


def _by_rule(profile: Profile, used: float) -> Limit | None:
    """As Nsight Compute's rule says, whose page does not print all that it went by; None where it says nothing."""
    said = profile["bottleneck"] or ""
    if "grid is too small" in said or "low compute throughput" in said:
        # What was not printed is below that, and may be as much.
        return _waiting({**profile, "memory": LOW, "dram": LOW}, used)
    level = next((level for pattern, level in _SAYS if pattern.search(said)), None)
    if level is None:
        return None
    if "well-balanced" in said:
        return Limit("balanced", level, at_least=True)
    if unit := _UNIT.search(said):
        return Limit(unit[1].lower(), level, at_least=True)
    if "Memory is more" in said:
        return Limit("l2", level, at_least=True)
    return Limit(pipe_of(profile), level, at_least=True)


def memory_of(profile: Profile, memory: float) -> str:
    """The memory whose throughput is that of the memory system."""
    known = [name for name in MEMORIES if profile[name] is not None]
    return min(known, key=lambda name: abs(profile[name] - memory), default="dram" if profile["l2"] is None else "l2")


def pipe_of(profile: Profile) -> str:
    """The pipeline that is busiest. What the tensor cores share with FP64 is theirs where the kernel's name says that it uses them."""
    pipe = (profile["pipe"] or "").split(" ")[0].lower()
    if pipe == "shared" and _TENSOR_NAMES.search(profile["name"] or ""):
        return "tensor"
    return _PIPES.get(pipe, "pipe")


def _waiting(profile: Profile, used: float) -> Limit:
    """Nothing is used much: too few blocks, a partial wave, too few warps, or long waits of the many there are."""
    free = 1 - max(used, *(profile[name] or 0.0 for name in MEMORIES))
    waves = exact_waves(profile)
    if waves is not None and waves < FEW_BLOCKS:
        return _few_blocks(profile, used, free, waves)
    if waves is not None and (lost := tail_of(waves)) >= TAIL:
        most = min(free, 1 - floor(waves) / ceil(waves))
        gain = min(lost, most)
        return Limit("tail", used, gain, gain / 2, most)
    if contended(profile, used):
        most = min(free, profile["stall_estimate"] or 1.0)
        return Limit("contention", used, most / 2, 0.0, most, _contended_by(profile))
    if profile["occupancy_limit"] is not None and profile["occupancy_limit"] < LITTLE_OCCUPANCY:
        estimate = profile["occupancy_estimate"]
        most = free if estimate is None else min(free, estimate)
        return Limit("occupancy", used, most / 2, 0.0, most)
    estimate = profile["stall_estimate"]
    most = free if estimate is None else min(free, estimate)
    return Limit("latency", used, most / 2, 0.0, most)


def _few_blocks(profile: Profile, used: float, free: float, waves: float) -> Limit:
    blocks, sms = profile["blocks"], profile["sms"]
    share = min(blocks / sms, 1.0) if blocks and sms else 1.0
    # With a block on each multiprocessor, more of them would share what is left of it.
    gain = min(1 - share if share < 1 else (1 - waves) / 2, free)
    return Limit("grid", used, gain, gain / 2, free)


def resident_of(profile: Profile) -> int | None:
    """Blocks that run on a multiprocessor at once."""
    known = [profile[name] for name in _RESIDENT if profile[name] is not None]
    return int(min(known)) if known else None


def exact_waves(profile: Profile) -> float | None:
    """Waves of blocks; as counted where blocks, multiprocessors and limits are known and agree with the printed two decimals."""
    blocks, sms, resident, printed = profile["blocks"], profile["sms"], resident_of(profile), profile["waves"]
    if blocks and sms and resident:
        made = float(blocks / (sms * resident))
        if printed is None or abs(made - printed) <= max(0.02 * made, 0.006):
            return made
    return None if printed is None else float(printed)


def tail_of(waves: float) -> float:
    """The share of the time that evenly filled waves would save: those of a kernel whose blocks take equally long."""
    return 1 - waves / ceil(waves) if waves > 1 else 0.0


def contended(profile: Profile, used: float) -> bool:
    """Whether warps stand in a queue for few places: all memories are idle, and a warp waits for them longer than any of them takes."""
    if used >= IDLE or any((profile[name] or 0.0) >= IDLE for name in MEMORIES):
        return False
    if profile["stall"] not in ("long_scoreboard", "lg_throttle", "drain", "membar"):
        return False
    return (profile["stall_cycles"] or 0.0) >= SLOW_CYCLES


def _contended_by(profile: Profile) -> str | None:
    if (profile["atomic_slice"] or 0.0) >= BUSY_SLICE:
        return "atomics"
    requests = profile["l2_requests"]
    if requests and profile["atomics"] is not None and profile["atomics"] >= ATOMICS_PART * requests:
        return "atomics"
    if requests and (profile["host_sectors"] or 0.0) >= ATOMICS_PART * requests:
        return "host"
    return None


def occupancy_by(profile: Profile) -> str | None:
    """What keeps more blocks from a multiprocessor, in words; None where that was not printed."""
    resident = resident_of(profile)
    if resident is None:
        return None
    known = [words for name, words in _RESIDENT.items() if profile[name] is not None and int(profile[name]) == resident]
    return " and ".join(known[:2])
