"""Communication kernels in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.names import brief_name
from traceanalyzer.units import format_duration


def communication(row: Mapping[str, Any]) -> str:
    exposed = row["exposed"] if row["exposed"] is not None else row["duration"]
    much = "all of it" if exposed == row["duration"] else format_duration(exposed)
    return f"{format_duration(row['duration'])}, {much} exposed: {brief_name(row['name'])}"
