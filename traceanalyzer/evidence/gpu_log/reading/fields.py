"""What a field of a log measures, told by its name: nvidia-smi's old and new ones, NVML's, DCGM's and those of their exporters."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

# Measure -> what it is called, in order of trust: of two fields that measure the same, the first counts. Names are without units and
# with "_" for what is neither letter nor digit.
_NAMES: dict[str, tuple[str, ...]] = {
    "sm_clock": (
        *(
            "clocks_sm",
            "clocks_current_sm",
            "sm_clock",
            "clock_sm",
            "smclk",
            "sm_clk",
            "sm_freq",
            "dcgm_fi_dev_sm_clock",
        ),
        *("nvidia_smi_clocks_current_sm_clock", "current_sm_clock", "pclk", "clocks_gr", "clocks_current_graphics"),
        *("clocks_graphics", "graphics_clock", "clock_graphics", "gr_clock", "gpu_clock", "core_clock", "clock"),
        *("nvidia_smi_clocks_current_graphics_clock", "gfx_clock", "gfxclk"),
    ),
    "sm_clock_max": (
        *("clocks_max_sm", "max_sm_clock", "sm_clock_max", "clock_sm_max", "max_clock_sm", "sm_max_clock"),
        *("dcgm_fi_dev_max_sm_clock", "nvidia_smi_clocks_max_sm_clock", "clocks_max_graphics", "clocks_max_gr"),
        *("max_graphics_clock", "graphics_clock_max", "nvidia_smi_clocks_max_graphics_clock", "max_clock"),
    ),
    "mem_clock": (
        *("clocks_mem", "clocks_current_memory", "mem_clock", "memory_clock", "clock_mem", "clock_memory", "mclk"),
        *("clocks_memory", "dcgm_fi_dev_mem_clock", "nvidia_smi_clocks_current_memory_clock"),
    ),
    "mem_clock_max": (
        *("clocks_max_memory", "clocks_max_mem", "max_mem_clock", "mem_clock_max", "max_memory_clock"),
        *("dcgm_fi_dev_max_mem_clock", "nvidia_smi_clocks_max_memory_clock"),
    ),
    "power": (
        *("power_draw", "power_draw_average", "power_draw_instant", "power", "power_usage", "pwr", "gpu_power"),
        *("dcgm_fi_dev_power_usage", "dcgm_fi_dev_power_usage_instant", "nvidia_smi_power_draw", "average_power"),
        *("nvidia_gpu_power_usage", "power_consumption", "board_power", "nvidia_smi_power_draw_average"),
    ),
    "power_limit": (
        *("enforced_power_limit", "power_limit_enforced", "power_limit", "power_management_limit", "power_cap"),
        *("dcgm_fi_dev_enforced_power_limit", "dcgm_fi_dev_power_mgmt_limit", "nvidia_smi_enforced_power_limit"),
        "nvidia_smi_power_limit",
    ),
    "power_limit_default": (
        *("power_default_limit", "default_power_limit", "power_limit_default", "nvidia_smi_power_default_limit"),
        *("power_management_default_limit", "dcgm_fi_dev_power_mgmt_limit_def"),
    ),
    "temperature": (
        *("temperature_gpu", "temperature", "gpu_temp", "gpu_temperature", "temp", "gtemp", "temp_gpu", "core_temp"),
        *("dcgm_fi_dev_gpu_temp", "nvidia_smi_temperature_gpu", "nvidia_gpu_temperature"),
    ),
    "memory_temperature": (
        *("temperature_memory", "memory_temp", "memory_temperature", "mem_temp", "mtemp"),
        *("dcgm_fi_dev_memory_temp", "nvidia_smi_temperature_memory"),
    ),
    "utilization": (
        *("utilization_gpu", "gpu_util", "gpu_utilization", "utilization", "util", "util_gpu", "gpu_usage", "sm"),
        *("dcgm_fi_dev_gpu_util", "nvidia_smi_utilization_gpu", "nvidia_gpu_duty_cycle", "gpu_load", "gpu_busy"),
        "dcgm_fi_prof_gr_engine_active",
    ),
    "memory_utilization": (
        *("utilization_memory", "memory_util", "memory_utilization", "mem_util", "mem_utilization", "util_mem", "mem"),
        *("dcgm_fi_dev_mem_copy_util", "nvidia_smi_utilization_memory", "util_memory"),
    ),
    "memory_used": (
        *("memory_used", "mem_used", "fb_used", "used_memory", "fb", "vram_used", "gpu_memory_used", "used_gpu_memory"),
        *("dcgm_fi_dev_fb_used", "nvidia_smi_memory_used", "nvidia_gpu_memory_used", "memory_usage"),
    ),
    "memory_total": (
        *("memory_total", "mem_total", "fb_total", "total_memory", "vram_total", "gpu_memory_total"),
        *("dcgm_fi_dev_fb_total", "nvidia_smi_memory_total", "nvidia_gpu_memory_total"),
    ),
    "memory_free": (
        *("memory_free", "mem_free", "fb_free", "free_memory", "dcgm_fi_dev_fb_free", "nvidia_smi_memory_free"),
    ),
    "reasons": (
        *("clocks_event_reasons_active", "clocks_throttle_reasons_active", "clocks_event_reasons"),
        *("clocks_throttle_reasons", "clock_event_reasons", "clock_throttle_reasons", "throttle_reasons"),
        *("current_clocks_event_reasons", "current_clocks_throttle_reasons", "throttle_reason", "event_reasons"),
        *("dcgm_fi_dev_clocks_event_reasons", "dcgm_fi_dev_clock_throttle_reasons"),
        *("nvidia_smi_clocks_throttle_reasons_active", "nvidia_smi_clocks_event_reasons_active"),
    ),
    "processes": ("processes", "process_count", "num_processes", "compute_processes", "n_processes", "procs"),
    "pcie_gen": (
        *("pcie_link_gen_current", "pcie_link_gen_gpucurrent", "pcie_gen", "pcie_link_gen", "pcie_gen_current"),
        *("pcie_generation", "current_pcie_gen", "curr_pcie_link_gen", "dcgm_fi_dev_pcie_link_gen"),
        "nvidia_smi_pcie_link_gen_current",
    ),
    "pcie_gen_max": (
        *("pcie_link_gen_gpumax", "pcie_link_gen_max", "pcie_gen_max", "max_pcie_gen", "max_pcie_link_gen"),
        *("max_pcie_generation", "pcie_max_gen", "dcgm_fi_dev_pcie_max_link_gen", "nvidia_smi_pcie_link_gen_max"),
    ),
    "pcie_width": (
        *("pcie_link_width_current", "pcie_width", "pcie_link_width", "pcie_width_current", "current_pcie_width"),
        *("curr_pcie_link_width", "dcgm_fi_dev_pcie_link_width", "nvidia_smi_pcie_link_width_current"),
    ),
    "pcie_width_max": (
        *("pcie_link_width_max", "pcie_width_max", "max_pcie_width", "max_pcie_link_width", "pcie_max_width"),
        *("dcgm_fi_dev_pcie_max_link_width", "nvidia_smi_pcie_link_width_max"),
    ),
    "pcie_rx": (
        "pcie_rx",
        "rxpci",
        "pcie_rx_throughput",
        "dcgm_fi_prof_pcie_rx_bytes",
        "dcgm_fi_dev_pcie_rx_throughput",
    ),
    "pcie_tx": (
        "pcie_tx",
        "txpci",
        "pcie_tx_throughput",
        "dcgm_fi_prof_pcie_tx_bytes",
        "dcgm_fi_dev_pcie_tx_throughput",
    ),
    "sm_active": ("dcgm_fi_prof_sm_active", "sm_active", "smact"),
    "tensor_active": ("dcgm_fi_prof_pipe_tensor_active", "tensor_active", "pipe_tensor_active", "tenso"),
    "dram_active": ("dcgm_fi_prof_dram_active", "dram_active", "drama"),
    "pstate": ("pstate", "performance_state", "p_state", "dcgm_fi_dev_pstate", "nvidia_smi_pstate"),
    "power_held": ("pviol",),
    "heat_held": ("tviol",),
}
_WHO: dict[str, tuple[str, ...]] = {
    "gpu": (
        "index",
        "gpu",
        "gpu_id",
        "gpu_index",
        "device_index",
        "idx",
        "minor_number",
        "device",
        "device_id",
        "id",
        "gpuid",
    ),
    "uuid": ("uuid", "gpu_uuid"),
    "bus": ("pci_bus_id", "gpu_bus_id", "pci_bus", "bus_id", "pci_busid", "busid"),
    "model": ("name", "gpu_name", "modelname", "model_name", "model", "product_name"),
    "host": ("hostname", "host", "node"),
}
_TIMES = (
    *(
        "timestamp",
        "time",
        "ts",
        "datetime",
        "unix_time",
        "epoch",
        "time_unix",
        "timestamp_unix",
        "unix_timestamp",
        "unix",
    ),
    *("wall_time", "date_time", "sampled_at", "recorded_at", "t", "date"),
)
MEASURES = tuple(name for name in _NAMES if name not in ("memory_free", "power_held", "heat_held"))

# The bits of NVML's nvmlClocksEventReasons (nvml.h), by the end of the name that nvidia-smi gives a column of each.
GPU_IDLE, APPLICATION, POWER_CAP, HW_SLOWDOWN, SYNC_BOOST = 0x1, 0x2, 0x4, 0x8, 0x10
SW_THERMAL, HW_THERMAL, POWER_BRAKE, DISPLAY = 0x20, 0x40, 0x80, 0x100
KNOWN_REASONS = 0x1FF
REASONS = {
    "gpu_idle": GPU_IDLE,
    "applications_clocks_setting": APPLICATION,
    "sw_power_cap": POWER_CAP,
    "hw_slowdown": HW_SLOWDOWN,
    "sync_boost": SYNC_BOOST,
    "sw_thermal_slowdown": SW_THERMAL,
    "hw_thermal_slowdown": HW_THERMAL,
    "hw_power_brake_slowdown": POWER_BRAKE,
    "display_clock_setting": DISPLAY,
}
_SHORT = {re.sub(r"[^a-z]", "", name): bit for name, bit in REASONS.items()} | {
    "powercap": POWER_CAP,
    "thermalslowdown": SW_THERMAL,
    "hwpowerbrake": POWER_BRAKE,
    "applicationsclockssetting": APPLICATION,
    "none": 0,
    "": 0,
}
_REASON_COLUMN = re.compile(r"(?:nvidia_smi_)?clocks?_(?:event|throttle)_reasons_(\w+)")

# What ends a name, and so is its unit.
_UNITS: dict[str, str] = {
    **dict.fromkeys(("pct", "percent", "percentage", "perc"), "%"),
    **dict.fromkeys(("ratio", "frac", "fraction"), "ratio"),
    **dict.fromkeys(("w", "watt", "watts"), "W"),
    **dict.fromkeys(("mw", "milliwatt", "milliwatts"), "mW"),
    **dict.fromkeys(("c", "celsius", "degc", "deg_c"), "C"),
    **{"mhz": "MHz", "hz": "Hz", "ghz": "GHz", "bytes": "B", "b": "B"},
    **{"kb": "KiB", "kib": "KiB", "mb": "MiB", "mib": "MiB", "gib": "GiB", "gb": "GB"},
    **{
        "kb_s": "KB/s",
        "kbps": "KB/s",
        "kib_s": "KB/s",
        "mb_s": "MB/s",
        "mbps": "MB/s",
        "mib_s": "MB/s",
        "gb_s": "GB/s",
    },
    **{"bytes_s": "B/s", "bytes_per_second": "B/s", "b_s": "B/s", "s": "s", "ms": "ms", "us": "us", "ns": "ns"},
    **{"seconds": "s", "sec": "s", "secs": "s"},
}
_ENDING = re.compile(rf"(.+?)_({'|'.join(sorted(_UNITS, key=len, reverse=True))})")
_BRACKET = re.compile(r"\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")


class Field(NamedTuple):
    """What a field is: a measure, whose GPU it is, the time, or whether one reason holds the clocks down ("reason", with its `bit`).

    `rank` orders fields of the same measure, lowest first; `unit` is as the name says, None where it does not.
    """

    what: str
    rank: int
    unit: str | None = None
    bit: int = 0


@cache
def field_of(name: str) -> Field | None:
    """What a field of this name is; None for one that is not read."""
    bare, unit = name, None
    if found := _BRACKET.search(name):
        bare, unit = name[: found.start()], found[1]
    bare = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bare.strip()).lower()).strip("_")
    reason = _REASON_COLUMN.fullmatch(bare)
    if reason and reason[1] in REASONS:
        return Field("reason", 0, None, REASONS[reason[1]])
    if field := _known(bare, unit):
        return field
    if ending := _ENDING.fullmatch(bare):
        return _known(ending[1], _UNITS[ending[2]])
    return None


def _known(bare: str, unit: str | None) -> Field | None:
    found = _index().get(bare)
    return Field(found[0], found[1], unit) if found else None


@cache
def _index() -> dict[str, tuple[str, int]]:
    found = {name: ("time", rank) for rank, name in enumerate(_TIMES)}
    for what, names in (*_WHO.items(), *_NAMES.items()):
        found |= {name: (what, rank) for rank, name in enumerate(names)}
    return found


def bits_of(text: str) -> int | None:
    """The bits of reasons that are written as their names; None for other words."""
    names = [
        re.sub(r"nvmlclocks(?:event|throttle)reason", "", re.sub(r"[^a-z]", "", one.lower()))
        for one in re.split(r"[,;|+]", text)
    ]
    if any(name not in _SHORT for name in names):
        return None
    bits = 0
    for name in names:
        bits |= _SHORT[name]
    return bits
