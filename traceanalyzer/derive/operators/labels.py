"""Patterns of operators in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.names import brief_name
from traceanalyzer.units import format_duration


def pattern(row: Mapping[str, Any]) -> str:
    what = f"{brief_name(row['operator'])} {row['detail'] or ''}".rstrip()
    times = f", {row['count']:,} times in {format_duration(row['duration'])}" if row["count"] > 1 else ""
    where = f", at {brief_name(row['source'])}" if row["source"] else ""
    return f"{what}{times}, {format_duration(row['gpu_time'])} on the GPU{where}"
