"""What sampled GPU metrics measure, told by their names, which differ between GPUs and releases of Nsight Systems."""

from __future__ import annotations

import re
from functools import cache

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Metric:
    """What is measured, in percent of the most there can be. Where nothing measures the whole, what measures its parts adds up."""

    kind: str
    whole: bool
    pattern: re.Pattern[str]


def _metric(kind: str, pattern: str, whole: bool = True) -> Metric:
    return Metric(kind, whole, re.compile(pattern, re.IGNORECASE))


_MEMORY = r"^(?:DRAM|VRAM|HBM|Device Memory)"
# Read from the top. Reads and writes share one memory; requests, responses, user data and protocol of a direction share one link.
METRICS = (
    _metric("sms_active", r"^SMs? Active\b"),
    _metric("sm_issue", r"^SMs? (?:Issue|Instructions? Issued)\b"),
    _metric("tensor_active", r"^(?:SM )?Tensor (?:Pipe )?Active\b"),
    _metric("warps_in_flight", r"^Compute Warps in Flight\b"),
    _metric("dram", rf"{_MEMORY} (?:Bandwidth|Throughput)\b"),
    _metric("dram", rf"{_MEMORY} (?:Read|Write) (?:Bandwidth|Throughput)\b", whole=False),
    _metric("pcie_in", r"^PCIe (?:RX|Read) (?:Throughput|Bandwidth)\b"),
    _metric("pcie_out", r"^PCIe (?:TX|Write) (?:Throughput|Bandwidth)\b"),
    _metric("nvlink_in", r"^NVLink (?:RX (?:Bandwidth|Throughput)|bytes received)\b"),
    _metric("nvlink_out", r"^NVLink (?:TX (?:Bandwidth|Throughput)|bytes transmitted)\b"),
    _metric("nvlink_in", r"^NVLink RX (?:Requests|Responses)\b", whole=False),
    _metric("nvlink_out", r"^NVLink TX (?:Requests|Responses)\b", whole=False),
)
KINDS = tuple(dict.fromkeys(metric.kind for metric in METRICS))
_UNIT = re.compile(r"\[[^\[\]]*\]\s*$")


@cache
def metric_of(name: str, unit: str | None) -> Metric | None:
    """What a metric in percent measures; None for other metrics and units. Early releases write no unit, and mean percent."""
    bare = unit is None and not _UNIT.search(name)
    if not bare and "%" not in (unit or name):
        return None
    return next((metric for metric in METRICS if metric.pattern.search(name)), None)
