"""What to log next time so that a log of GPUs tells more: the whole command."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.result.recording.diagnosis import Setting

COMMAND = (
    "Q=timestamp,index,uuid,utilization.gpu,utilization.memory,memory.used,memory.total,temperature.gpu; "
    "Q=$Q,power.draw,enforced.power.limit,power.default_limit,clocks.sm,clocks.max.sm,clocks.mem,clocks_throttle_reasons.active; "
    "Q=$Q,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max; "
    "nvidia-smi --query-gpu=$Q --format=csv -lms 100 > gpu.csv"
)
_LACKS: tuple[tuple[str, str, str, list[str]], ...] = (
    (
        "utilization",
        "utilization.gpu",
        "when the GPU was under load, without which nothing can be judged",
        ["PWR001", "PWR002", "PWR003"],
    ),
    ("sm_clock", "clocks.sm", "whether clocks were held down", ["PWR001"]),
    (
        "reasons",
        "clocks_throttle_reasons.active",
        "what held clocks down: the power cap, heat or the hardware",
        ["PWR001"],
    ),
    ("sm_clock_max", "clocks.max.sm", "how high the clock can be, and so what holding it down costs", []),
    ("power_limit", "enforced.power.limit", "whether power was at its limit", []),
    ("memory_total", "memory.total", "how full the memory was", []),
    (
        "pcie_gen",
        "pcie.link.gen.current and pcie.link.width.current",
        "whether the PCIe link was slower than it can be",
        ["PWR003"],
    ),
    ("uuid", "uuid", "which GPU of the machine it is, where a trace says that too", []),
    ("pcie_gen_max", "pcie.link.gen.max and pcie.link.width.max", "how fast the PCIe link can be", []),
)
_SLOW_NS = 500_000_000
_LEAST = 10


def advice(samples: pa.Table) -> Iterator[Setting]:
    """One setting for what is missing together, and one for a rate that is too slow."""
    if not samples.num_rows:
        return
    lacks = [one for one in _LACKS if samples[one[0]].null_count == samples.num_rows]
    if not pc.all(samples["timed"]).as_py():
        yield Setting(
            "times",
            COMMAND,
            "when each sample was taken, and so what ran then",
            "nothing",
            None,
            ["PWR001", "PWR002", "PWR003"],
        )
    if lacks:
        gives = "; ".join(f"{column}: {what}" for _, column, what, _ in lacks)
        rules = sorted({rule for *_, needed in lacks for rule in needed})
        yield Setting(
            "what the log lacks",
            COMMAND,
            gives,
            "a thread that asks the driver, some percent of one CPU core",
            None,
            rules,
        )
    interval = _interval(samples)
    if interval is not None and interval > _SLOW_NS:
        yield Setting(
            "a faster rate",
            COMMAND,
            f"ten samples under load in a second; one each {interval / 1e9:.3g} s says nothing of what is shorter",
            "some percent of one CPU core",
            "Use is a mean of up to a second, and power of most GPUs of one second, however often they are asked for.",
            ["PWR001", "PWR002", "PWR003"],
        )


def _interval(samples: pa.Table) -> int | None:
    """The usual time between samples of one GPU, in ns."""
    found = []
    for _, rows in frames.together(
        *(frames.codes(samples, name)[0] for name in ("log", "uuid")), frames.ints(samples, "gpu")
    ):
        apart = np.diff(np.sort(frames.ints(samples, "time_ns")[rows]))
        if (apart > 0).any():
            found.append(int(np.median(apart[apart > 0])))
    return min(found, default=None)
