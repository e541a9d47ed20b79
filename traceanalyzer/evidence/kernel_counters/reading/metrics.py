"""What Nsight Compute calls a counter, on its pages and over its versions, and which column that is.

Names of the raw page are those of the metrics themselves (Nsight Compute's documentation, Metrics Structure); the details page has
names of its own, which changed in 2020 (SOL SM), 2021 (SM [%]) and since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from traceanalyzer.records import dataclass

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

RAW: Mapping[str, tuple[str, ...]] = {
    "profiled_time": ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max"),
    "sm": ("sm__throughput" + _ELAPSED,),
    "memory": ("gpu__compute_memory_throughput" + _ELAPSED,),
    "dram": (
        "gpu__dram_throughput" + _ELAPSED,
        "dram__throughput" + _ELAPSED,
        "dram__cycles_active" + _ELAPSED,
        "gpu__fbpa_throughput" + _ELAPSED,
    ),
    "l2": ("lts__throughput" + _ELAPSED,),
    "l1": ("l1tex__throughput.avg.pct_of_peak_sustained_active", "l1tex__throughput" + _ELAPSED),
    "dram_rate": ("dram__bytes.sum.per_second",),
    "l1_hits": ("l1tex__t_sector_hit_rate.pct",),
    "l2_hits": ("lts__t_sector_hit_rate.pct",),
    "issue_slots": (
        "sm__inst_issued" + _ELAPSED,
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "sm__inst_executed.avg.pct_of_peak_sustained_active",
    ),
    "issuing": ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
    "warps": ("smsp__warps_active.avg.per_cycle_active",),
    "cycles_per_issue": (
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "smsp__average_warps_active_per_issue_active.ratio",
    ),
    "occupancy_limit": ("sm__maximum_warps_per_active_cycle_pct",),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "limit_registers": ("launch__occupancy_limit_registers",),
    "limit_shared": ("launch__occupancy_limit_shared_mem",),
    "limit_warps": ("launch__occupancy_limit_warps",),
    "limit_blocks": ("launch__occupancy_limit_blocks",),
    "limit_barriers": ("launch__occupancy_limit_barriers",),
    "waves": ("launch__waves_per_multiprocessor",),
    "sms": ("launch__sm_count", "device__attribute_multiprocessor_count"),
    "registers": ("launch__registers_per_thread",),
    "spills": ("derived__local_spilling_requests",),
    "sm_clock": (
        "smsp__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.avg.per_second",
        "sm__cycles_elapsed.avg.per_second",
    ),
    "host_sectors": ("lts__t_sectors_aperture_sysmem.sum", "lts__t_sectors_aperture_sysmem_lookup_miss.sum"),
    "l2_requests": ("lts__t_requests_srcunit_tex.sum",),
    "atomic_slice": ("lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed",),
}
"""Of several names of a column the first that there is counts."""
SUMS: Mapping[str, tuple[str, ...]] = {
    "atomics": (
        "lts__t_requests_srcunit_tex_op_red.sum",
        "lts__t_requests_srcunit_tex_op_atom.sum",
        "lts__t_requests_srcunit_tex_op_atom_dot_alu.sum",
        "lts__t_requests_srcunit_tex_op_atom_dot_cas.sum",
    ),
    "shared_bytes": (
        "launch__shared_mem_per_block_static",
        "launch__shared_mem_per_block_dynamic",
        "launch__shared_mem_per_block_driver",
    ),
}
"""Columns that are a sum over all of these names that there are."""
LAUNCH: Mapping[str, tuple[str, ...]] = {
    "blocks": ("launch__grid_size",),
    "threads": ("launch__block_size",),
    "grid_x": ("launch__grid_dim_x",),
    "grid_y": ("launch__grid_dim_y",),
    "grid_z": ("launch__grid_dim_z",),
    "block_x": ("launch__block_dim_x",),
    "block_y": ("launch__block_dim_y",),
    "block_z": ("launch__block_dim_z",),
    "gpu_name": ("device__attribute_display_name",),
}
_SOL = "speed of light"
_DETAILS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # column, a part of the section's name, names
    ("profiled_time", "", ("Duration",)),
    ("sm", _SOL, ("Compute (SM) Throughput", "Compute (SM) [%]", "SM [%]", "SOL SM")),
    ("memory", _SOL, ("Memory Throughput", "Memory [%]", "SOL Memory")),
    ("dram", _SOL, ("DRAM Throughput", "SOL DRAM", "SOL FB", "DRAM [%]")),
    ("l2", _SOL, ("L2 Cache Throughput", "SOL L2 Cache", "SOL L2", "L2 Cache [%]")),
    ("l1", _SOL, ("L1/TEX Cache Throughput", "SOL L1/TEX Cache", "SOL TEX", "L1/TEX Cache [%]")),
    ("sm_clock", _SOL, ("SM Frequency",)),
    ("waves", "", ("Waves Per SM",)),
    ("dram_rate", "memory workload", ("Memory Throughput",)),
    ("l1_hits", "", ("L1/TEX Hit Rate", "L1 Hit Rate")),
    ("l2_hits", "", ("L2 Hit Rate",)),
    ("spills", "", ("Local Memory Spilling Requests",)),
    ("issue_slots", "", ("Issue Slots Busy",)),
    ("issuing", "", ("One or More Eligible",)),
    ("warps", "", ("Active Warps Per Scheduler",)),
    ("cycles_per_issue", "", ("Warp Cycles Per Issued Instruction", "Warp Cycles Per Issue Active")),
    ("occupancy_limit", "", ("Theoretical Occupancy",)),
    ("occupancy", "", ("Achieved Occupancy",)),
    ("limit_registers", "", ("Block Limit Registers",)),
    ("limit_shared", "", ("Block Limit Shared Mem",)),
    ("limit_warps", "", ("Block Limit Warps",)),
    ("limit_blocks", "", ("Block Limit SM",)),
    ("limit_barriers", "", ("Block Limit Barriers",)),
    ("sms", "", ("# SMs",)),
    ("registers", "", ("Registers Per Thread",)),
    ("blocks", "", ("Grid Size",)),
    ("threads", "", ("Block Size",)),
)
_DETAIL_SUMS = {
    "Static Shared Memory Per Block": "shared_bytes",
    "Dynamic Shared Memory Per Block": "shared_bytes",
    "Driver Shared Memory Per Block": "shared_bytes",
}
PEAK_CYCLES = ("dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second")
"""Bytes a cycle, and cycles a second."""
OPERATIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "FP32": (("fadd", 1.0), ("fmul", 1.0), ("ffma", 2.0)),
    "FP64": (("dadd", 1.0), ("dmul", 1.0), ("dfma", 2.0)),
    "FP16": (("hadd", 2.0), ("hmul", 2.0), ("hfma", 4.0)),
}
"""Operations of a thread's instruction (Nsight Compute's roofline sections): halves are computed in pairs."""
_INSTRUCTION = re.compile(r"smsp__sass_thread_inst_executed_op_([fdh](?:add|mul|fma))_pred_on\.sum\.per_cycle_elapsed")
_FMA_PEAK = re.compile(r"sm__sass_thread_inst_executed_op_([fdh]fma)_pred_on\.sum\.peak_sustained")
_TENSOR = re.compile(r"sm__ops_path_tensor_\w+\.sum\.(per_second|peak_sustained_elapsed\.per_second)")
_PIPE = re.compile(
    r"sm__(?:inst_executed_pipe|pipe)_(tensor|fma|alu|lsu|fp64|fp16|xu|tex|uniform|shared|fmaheavy)"
    r"(?:_cycles_active)?\.avg\.pct_of_peak_sustained_elapsed"
)
_STALL = re.compile(
    r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio"
    r"|smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"
)
PIPES = {"fp64": "FP64", "fp16": "FP16", "tensor": "Tensor", "shared": "Shared", "uniform": "Uniform"}
NO_STALLS = frozenset({"selected", "not_selected", "misc"})
"""What counts among a warp's cycles and is no waiting."""


@dataclass(frozen=True)
class Meaning:
    """What a value is: of which column, among the names of that column in which place (0: the best), and whether several add up."""

    column: str
    place: int = 0
    sums: bool = False


def _raw_names() -> dict[str, Meaning]:
    found: dict[str, Meaning] = {}
    for columns in (RAW, LAUNCH):
        for column, names in columns.items():
            found |= {name: Meaning(column, place) for place, name in enumerate(names)}
    for column, names in SUMS.items():
        found |= {name: Meaning(column, sums=True) for name in names}
    return found


_OF_RAW = _raw_names()
_OF_DETAILS = {
    name: [(part, column) for column, part, names in _DETAILS if name in names]
    for _, _, names in _DETAILS
    for name in names
}


@lru_cache(maxsize=16384)
def meaning(name: str, section: str = "") -> Meaning | None:
    """What a value of this name is: a metric's own name, or that of the details page; None for what is not used."""
    if "__" in name:
        return _OF_RAW.get(name) or _counted(name)
    if name in _DETAIL_SUMS:
        return Meaning(_DETAIL_SUMS[name], sums=True)
    lower = section.lower()
    return next((Meaning(column) for part, column in _OF_DETAILS.get(name, ()) if part in lower), None)


_MANY = ((_INSTRUCTION, "op"), (_FMA_PEAK, "peak"), (_PIPE, "pipe"), (_STALL, "stall"))


def _counted(name: str) -> Meaning | None:
    """Metrics of which there are many alike: `op ffma`, `peak ffma`, `tensor …`, `pipe fma`, `stall barrier`."""
    if name in PEAK_CYCLES:
        return Meaning(name)
    if _TENSOR.fullmatch(name):
        return Meaning(f"tensor {name}")
    for pattern, kind in _MANY:
        if found := pattern.fullmatch(name):
            which = next(group for group in found.groups() if group)
            return Meaning(f"{kind} {which}", place=int(kind == "pipe" and "inst_executed" in name))
    return None


def combined(found: dict[str, float]) -> dict[str, float | str]:
    """The columns that several metrics make together: rates and peaks, the busiest pipeline, the longest stall."""
    made: dict[str, float | str] = {}
    if all(name in found for name in PEAK_CYCLES):
        made["dram_peak"] = found[PEAK_CYCLES[0]] * found[PEAK_CYCLES[1]]
    made |= _operations(found)
    pipes = {name[5:]: value for name, value in found.items() if name.startswith("pipe ")}
    # "Shared" is what several pipelines share: where one of them is as busy, that is its name.
    best = max(pipes.items(), key=lambda pipe: (round(pipe[1], 3), pipe[0] != "shared"), default=None)
    if best is not None:
        made |= {"pipe": PIPES.get(best[0], best[0].upper()), "pipe_share": best[1]}
    stalls = {name[6:]: value for name, value in found.items() if name.startswith("stall ")}
    waits = {name: value for name, value in stalls.items() if name not in NO_STALLS}
    longest = max(waits.items(), key=lambda stall: stall[1], default=None)
    if longest is not None and longest[1] > 0:
        made |= {"stall": longest[0], "stall_cycles": longest[1]}
        if cycles := found.get("cycles_per_issue"):
            made["stall_share"] = min(longest[1] / cycles, 1.0)
    return made


def _operations(found: dict[str, float]) -> dict[str, float | str]:
    clock = found.get("sm_clock")
    rates: list[tuple[float, str, float | None]] = []
    for kind, operations in OPERATIONS.items():
        counts = [found[f"op {name}"] * each for name, each in operations if f"op {name}" in found]
        if counts and clock:
            name, each = operations[-1]
            peak = found.get(f"peak {name}")
            rates.append((sum(counts) * clock, kind, peak * each * clock if peak else None))
    tensor = {name[7:]: value for name, value in found.items() if name.startswith("tensor ")}
    done = {name: value for name, value in tensor.items() if "peak" not in name and value > 0}
    # What the instructions do is counted again by the types of their inputs.
    done = {name: value for name, value in done.items() if "_op_" in name} or done
    if done:
        most = max(done, key=lambda name: done[name])
        rates.append(
            (
                sum(done.values()),
                "tensor",
                tensor.get(most.replace(".per_second", ".peak_sustained_elapsed.per_second")),
            )
        )
    rate = max(rates, key=lambda one: one[0], default=None)
    if rate is None or rate[0] <= 0:
        return {}
    made: dict[str, float | str] = {"flop_rate": rate[0], "flop_kind": rate[1]}
    if rate[2]:
        made["flop_peak"] = rate[2]
    return made
