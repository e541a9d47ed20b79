"""The ledgers of many GPUs: the few that get a bar, how all of them spread, and one row for each."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.report.palette import BY_KEY, Swatch
from traceanalyzer.result.document import Device, Result, Steps
from traceanalyzer.result.gpus import SIDE_BY_SIDE, gpu_namer, notable_gpus, spread, steps_of_gpus

MOST_ROWS = 1024
DRAWN = 8
"""Of many GPUs so many get a bar."""


@dataclass(frozen=True)
class SpreadView:
    """One ledger line over all GPUs: shares of their windows, and who has least and most of it; nobody where all have the same."""

    swatch: Swatch
    least: float
    least_name: str
    median: float
    most: float
    most_name: str


@dataclass(frozen=True)
class GpuRow:
    """One GPU as a row of the table of all of them: shares of its window, and its median step in ns (None: no steps)."""

    label: str
    window_ns: int
    kernels: int
    compute: float
    communication: float
    copies: float
    idle: float
    median_step_ns: int | None


@dataclass(frozen=True)
class ManyGpus:
    """`count` GPUs; `rows` are at most MOST_ROWS of them."""

    count: int
    spreads: list[SpreadView]
    rows: list[GpuRow]


def gpus_to_show(result: Result) -> tuple[list[Device], list[Steps]]:
    """The GPUs whose ledgers and steps are drawn: all of them, or of many those that differ most."""
    count = len(result.devices)
    devices = [result.devices[at] for at in notable_gpus(result, count if count <= SIDE_BY_SIDE else DRAWN)]
    keys = {(device.rank, device.device) for device in devices}
    return devices, [steps for steps in result.steps if (steps.rank, steps.device) in keys]


def many_gpus(result: Result) -> ManyGpus | None:
    """None where every GPU is drawn."""
    devices = result.devices
    if len(devices) <= SIDE_BY_SIDE:
        return None
    namer = gpu_namer(devices)
    names = [namer(device.rank, device.device) for device in devices]
    spreads = []
    for one in spread(devices):
        ends = (names[one.least_at], names[one.most_at]) if one.least < one.most else ("", "")
        swatch = BY_KEY.get(one.line, BY_KEY["idle.unattributed"])
        spreads.append(SpreadView(swatch, one.least, ends[0], one.median, one.most, ends[1]))
    rows = [_row(*gpu) for gpu in zip(devices, names, steps_of_gpus(result), strict=True)]
    return ManyGpus(len(devices), spreads, rows[:MOST_ROWS])


def _row(device: Device, name: str, steps: Steps | None) -> GpuRow:
    window = max(device.window_ns, 1)
    return GpuRow(
        label=name,
        window_ns=device.window_ns,
        kernels=device.kernel_count,
        compute=device.compute_ns / window,
        communication=device.exposed_communication_ns / window,
        copies=(device.exposed_memcpy_ns + device.exposed_memset_ns) / window,
        idle=device.idle_ns / window,
        median_step_ns=steps.median_ns if steps else None,
    )
