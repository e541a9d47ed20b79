"""What limits a kernel, as a sentence with its figures."""

from __future__ import annotations

from math import ceil, floor

from traceanalyzer.evidence.kernel_counters.answers.limiter import (
    MEMORIES,
    Limit,
    Profile,
    exact_waves,
    occupancy_by,
    resident_of,
)
from traceanalyzer.names import readable_name

UNITS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
PIPES = {
    "tensor": "tensor-core",
    "fp32": "FP32 FMA pipe",
    "fp64": "FP64 pipe",
    "fp16": "FP16 pipe",
}
LIMITERS = {
    "dram": "DRAM bandwidth",
    "l2": "L2 bandwidth",
    "l1": "L1 bandwidth",
    "tensor": "tensor cores",
    "fp32": "FP32 pipe",
    "fp64": "FP64 pipe",
    "fp16": "FP16 pipe",
    "pipe": "computing",
    "balanced": "computing and memory alike",
    "grid": "too few blocks",
    "tail": "partial last wave",
    "occupancy": "occupancy",
    "contention": "contention",
    "latency": "latency",
    "unknown": "not told by these counters",
}
"""By limiter, for tables."""
_RATES = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "KB/s"), (1.0, "B/s"))
_FLOPS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s"))
MUCH = 0.2
"""An estimate of less is one of several that ncu gives for most kernels."""
_ACCESS = {
    "UncoalescedGlobalAccess": "accesses to global memory are not coalesced",
    "UncoalescedSharedAccess": "accesses to shared memory conflict",
    "SharedMemoryConflicts": "accesses to shared memory conflict",
    "MemoryCacheAccessPattern": "of each sector that moves, few bytes are used",
}
_STALLS = {
    "long_scoreboard": "results of L1TEX (memory)",
    "short_scoreboard": "results of shared memory or special functions",
    "lg_throttle": "room in the queue of local and global memory",
    "mio_throttle": "room in the queue of shared memory",
    "tex_throttle": "room in the queue of textures",
    "barrier": "the other warps of their block at a barrier",
    "membar": "a memory fence",
    "math_pipe_throttle": "a pipeline that is busy",
    "wait": "the fixed latency of instructions",
    "no_instruction": "instructions to be fetched",
    "branch_resolving": "a branch to be resolved",
    "dispatch_stall": "the dispatcher",
    "drain": "memory stores to drain at their end",
    "imc_miss": "constants that are not in their cache",
    "gmma": "matrix products of the tensor cores",
    "sleeping": "their own sleep",
}


def percent(share: float | None, fine: bool = False) -> str:
    """A share as people write it; `fine`: with a decimal below 20%, where it has one."""
    if share is None:
        return "unknown"
    value = share * 100
    if fine and value < 20 and abs(value - round(value)) >= 0.05:
        return f"{value:.1f}%"
    return f"{value:.0f}%" if value >= 0.95 or not value else f"{value:.1g}%"


def rate(value: float) -> str:
    """Bytes a second with three digits."""
    return _scaled(value, _RATES)


def flops(value: float) -> str:
    """Floating-point operations a second with three digits."""
    return _scaled(value, _FLOPS)


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    factor, unit = next((one for one in units if value >= one[0]), units[-1])
    scaled = value / factor
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"


def what(profile: Profile, limit: Limit, name: str) -> str:
    """The kernel and its limit, a sentence without a stop."""
    kernel = f"Kernel {readable_name(name, 70)}"
    told = limit.limiter
    if told in MEMORIES:
        return f"{kernel} is {_memory(profile, limit)}"
    if told == "tensor":
        return (
            f"{kernel} is tensor-core-bound at {_used(limit)} of peak{_at_clock(profile)}{_work(profile)}{_near(limit)}"
        )
    if told in PIPES or told == "pipe":
        return f"{kernel} is compute-bound: {_computing(profile, limit)}{_near(limit)}"
    if told == "balanced":
        both = (
            f"the multiprocessors at {percent(profile['sm'])} and memory at {percent(profile['memory'])} of their peaks"
        )
        if limit.at_least:
            both = f"both at {_used(limit)} of their peaks"
        return f"{kernel} is limited by computing and memory alike, {both}"
    makers = {"grid": _grid, "tail": _tail, "occupancy": _occupancy, "contention": _contention, "latency": _latency}
    if told in makers:
        return f"{kernel}: {makers[told](profile, limit)}"
    return f"{kernel} has no known limit: the throughput of its multiprocessors and of memory was not counted"


def _used(limit: Limit) -> str:
    return ("more than " if limit.at_least else "") + percent(limit.used)


def _memory(profile: Profile, limit: Limit) -> str:
    mostly = "" if limit.near_roof else "mostly "
    moved = f" ({rate(profile['dram_rate'])})" if limit.limiter == "dram" and profile["dram_rate"] else ""
    advice = ": fuse it with its neighbours or move fewer bytes" if limit.near_roof else ""
    advice = _access(profile) or advice
    return f"{mostly}{UNITS[limit.limiter]}-bound at {_used(limit)} of peak{moved}{advice}"


def _access(profile: Profile) -> str:
    """How memory is accessed, where Nsight Compute's rules estimate much of it."""
    estimate = profile["access_estimate"]
    if estimate is None or estimate < MUCH:
        return ""
    return f": {_ACCESS[profile['access']]} (ncu's rule {profile['access']} estimates {percent(estimate)})"


def _near(limit: Limit) -> str:
    return ", near the roof" if limit.near_roof else ""


def _work(profile: Profile) -> str:
    return f" ({flops(profile['flop_rate'])})" if profile["flop_rate"] else ""


def _at_clock(profile: Profile) -> str:
    """The clock that its peak is of, which is often below the one that a vendor's peak is stated at."""
    return f" at its {profile['sm_clock'] / 1e9:.2f} GHz" if profile["sm_clock"] else ""


def _computing(profile: Profile, limit: Limit) -> str:
    pipe = PIPES.get(limit.limiter) or (f"{profile['pipe']} pipe" if profile["pipe"] else "")
    said = [f"{pipe} {percent(profile['pipe_share'])}"] if pipe and profile["pipe_share"] is not None else []
    if profile["issue_slots"] is not None:
        said.append(f"issue slots {percent(profile['issue_slots'])}")
    return ", ".join(said) or f"multiprocessors at {_used(limit)} of peak"


def _grid(profile: Profile, limit: Limit) -> str:
    blocks, sms = profile["blocks"], profile["sms"]
    occupancy = f", achieved occupancy {percent(profile['occupancy'])}" if profile["occupancy"] is not None else ""
    if blocks and sms and blocks < sms:
        size = f"{blocks:,} {'block' if blocks == 1 else 'blocks'} on {sms:,.0f} SMs"
    else:
        size = f"{exact_waves(profile):.2g} of a full wave" + (
            f" ({blocks:,} blocks on {sms:,.0f} SMs)" if blocks and sms else ""
        )
    return f"the grid is too small: {size}{occupancy}; latency-bound"


def _tail(profile: Profile, limit: Limit) -> str:
    waves, resident = exact_waves(profile), resident_of(profile)
    assert waves is not None
    full = floor(waves)
    rest = None
    if profile["blocks"] and profile["sms"] and resident:
        rest = int(profile["blocks"] - full * profile["sms"] * resident)
    few = f" of {rest:,} {'block' if rest == 1 else 'blocks'}" if rest else ""
    costs = "doubles the time" if full == 1 else f"takes as long as each of the {full} full ones"
    ordinal = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth"}.get(ceil(waves), "last")
    estimate = profile["tail_estimate"]
    said = f"; LaunchConfiguration estimates {percent(estimate)}" if estimate else ""
    return f"a {ordinal} wave{few} {costs} ({waves:.3g} waves{said})"


def _occupancy(profile: Profile, limit: Limit) -> str:
    by = occupancy_by(profile)
    limited = f"occupancy is limited to {percent(profile['occupancy_limit'], fine=True)}" + (f" by {by}" if by else "")
    return f"{limited}, and {_all_low(profile)}{_waits_for(profile)}"


def _contention(profile: Profile, limit: Limit) -> str:
    cycles = f"{profile['stall_cycles']:,.0f} cycles an instruction"
    by = {
        "atomics": "latency-bound on serialised atomics",
        "host": "latency-bound on memory of the host",
    }.get(limit.contended_by or "", "latency-bound on few addresses, as serialised atomics are")
    share = f" (CPIStall {percent(profile['stall_estimate'])})" if profile["stall_estimate"] else ""
    return f"{by}: {_all_low(profile)} while warps wait {cycles} for {_STALLS.get(profile['stall'], 'memory')}{share}"


def _latency(profile: Profile, limit: Limit) -> str:
    return f"latency-bound: {_all_low(profile)}{_waits_for(profile)}{_access(profile).replace(':', ';', 1)}"


def _all_low(profile: Profile) -> str:
    known = [value for value in (profile["sm"], profile["memory"], profile["l2"], profile["dram"]) if value is not None]
    most = max(known, default=0.0) if profile["memory"] is not None else 1.0
    below = next((step for step in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5) if most < step), 0.6)
    return f"SM, L2 and DRAM all stay below {percent(below)} of peak"


def _waits_for(profile: Profile) -> str:
    if (profile["stall_share"] or 0.0) < 0.2 or profile["stall"] not in _STALLS:
        return ""
    return f" while warps wait for {_STALLS[profile['stall']]} ({percent(profile['stall_share'])} of their time)"


def waits(profile: Profile) -> str | None:
    """What warps wait for, for advice; None where that is unknown."""
    return _STALLS.get(profile["stall"] or "")
