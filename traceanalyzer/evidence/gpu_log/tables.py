"""The table of a log of GPUs: one row a sample, with all that was measured then.

Times are nanoseconds since the epoch less the marks' `clock_base_ns`, or by a wall clock of an unknown zone, or counted from the first.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.units import Unit


def _measure(name: str, doc: str, unit: Unit | None = None) -> Column:
    # Seven digits are more than any of these tools measures; bytes are counted.
    exact = name.startswith(("memory_used", "memory_total", "pcie_rx", "pcie_tx"))
    return Column(name, pa.float64() if exact else pa.float32(), unit, f"{doc}; null when not recorded")


MEASURED = (
    _measure("sm_clock", "clock of the multiprocessors in MHz (of graphics where only that is logged)"),
    _measure("sm_clock_max", "the highest that this clock can be, in MHz"),
    _measure("mem_clock", "clock of the memory in MHz"),
    _measure("mem_clock_max", "the highest that this clock can be, in MHz"),
    _measure("power", "power in W; of most GPUs the mean of the second before"),
    _measure("power_limit", "limit of power in W that is enforced"),
    _measure("power_limit_default", "limit of power in W that the GPU has unless another is set"),
    _measure("temperature", "temperature of the GPU in degrees Celsius"),
    _measure("memory_temperature", "temperature of its memory in degrees Celsius"),
    _measure("utilization", "part of the time before in which any kernel ran", "share"),
    _measure("memory_utilization", "part of the time before in which memory was read or written", "share"),
    _measure("memory_used", "memory in use", "bytes"),
    _measure("memory_total", "memory of the device", "bytes"),
    _measure("reasons", "why clocks are below the highest: the bits of NVML's nvmlClocksEventReasons"),
    _measure("processes", "processes that use the GPU", "count"),
    _measure("pcie_gen", "generation of PCIe that the link runs at"),
    _measure("pcie_gen_max", "the highest that it can"),
    _measure("pcie_width", "lanes of PCIe that the link runs with"),
    _measure("pcie_width_max", "the most that it can"),
    _measure("pcie_rx", "bytes a second that the GPU receives over PCIe"),
    _measure("pcie_tx", "bytes a second that it sends"),
    _measure("sm_active", "multiprocessors that have work, of all, as DCGM profiles", "share"),
    _measure("tensor_active", "tensor cores that have work, of all, likewise", "share"),
    _measure("dram_active", "part of the time in which device memory moves data, likewise", "share"),
    _measure("pstate", "performance state, 0 is the fastest"),
)
SAMPLES = TableSpec(
    "gpu_log_samples",
    "one sample of a GPU in a log of clocks, power and use",
    (
        Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown"),
        Column("log", NAME, None, "name of the file that holds it"),
        Column("tool", NAME, None, "what wrote it: nvidia-smi, nvidia-smi dmon, NVML, DCGM or Prometheus"),
        Column(
            "timed",
            pa.bool_(),
            None,
            "false: the log has no times, so that samples are only known to follow each other",
        ),
        Column("gpu", pa.int32(), None, "index of the GPU in its machine, as the log counts; null when not recorded"),
        Column("uuid", NAME, None, "unique id of the GPU; null when not recorded"),
        Column("bus", NAME, None, "PCI bus id; null when not recorded"),
        Column("model", NAME, None, "marketing name; null when not recorded"),
        Column("time_ns", pa.int64(), "ns", "when it was sampled"),
        *MEASURED,
    ),
)
TABLES = (SAMPLES,)
