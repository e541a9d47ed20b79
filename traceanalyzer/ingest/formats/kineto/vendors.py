"""Work of devices that are neither CUDA nor HIP GPUs: it is not read, and the trace must say so."""

from __future__ import annotations

import re
from collections import Counter

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.vocabulary.health import GPU_WORK_MISSING, NOT_ALL_READ
from traceanalyzer.vocabulary.levels import HIGH, INFO

# Categories by how they begin, and names of processes that stand for such a device.
_BY_CATEGORY = {
    "xpu_": "an XPU",
    "mtia_": "an MTIA accelerator",
    "hpu_": "an HPU",
    "glow_": "a Glow accelerator",
    "privateuse1_": "an accelerator outside of PyTorch (privateuse1)",
}
_BY_PROCESS = (
    (re.compile(r"/device:TPU:\d+|TPU:? ?\d+"), "a TPU"),
    (re.compile(r"/device:XPU:\d+"), "an XPU"),
    (re.compile(r"/device:(?!CPU|GPU)\w+:\d+"), "an accelerator"),
    (re.compile(r"Ascend Hardware"), "an Ascend NPU"),
    # CUDA events around operators: they take in the time in which the GPU waits.
    (re.compile(r"CUDA functions", re.IGNORECASE), "a GPU, timed operator by operator by the old autograd profiler"),
)


def by_category(category: str | None) -> str | None:
    """The device whose work the events of a category are; None for all others."""
    return next((device for start, device in _BY_CATEGORY.items() if (category or "").startswith(start)), None)


def by_process(name: str) -> str | None:
    """The device that a process of this name stands for; None for the host and for GPUs."""
    return next((device for pattern, device in _BY_PROCESS if pattern.search(name)), None)


class Vendors:
    """Counts the events of each such device."""

    def __init__(self) -> None:
        self._events: Counter[str] = Counter()

    def met(self, device: str, events: int) -> None:
        self._events[device] += events

    def report(self, sink: Sink, other_work: bool) -> None:
        """`other_work` says that the trace has work of CUDA or HIP as well."""
        for device, count in sorted(self._events.items()):
            message = f"the trace holds work of {device}, which is not read yet"
            if other_work:
                sink.health(NOT_ALL_READ, INFO, f"{message}: only the other devices are judged", count)
            else:
                sink.health(GPU_WORK_MISSING, HIGH, f"{message}: nothing about its use can be judged", count)
