"""What is known of kernels in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.names import brief_name
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.lines import COMPUTE


def metric(row: Mapping[str, Any]) -> str:
    who = brief_name(row["name"]) if row["name"] else "all kernels" if row["ran"] == COMPUTE.name else "anything"
    mean = "" if row["mean"] is None else f" {format_share(row['mean'])} on average"
    return f"{who}: {row['recorded']}{mean} in {row['samples']:,} samples"


def attention(row: Mapping[str, Any]) -> str:
    rest = row["duration"] - row["matmul"]
    return f"{row['direction']}: {format_duration(rest)} between matrix products of {format_duration(row['matmul'])}"
