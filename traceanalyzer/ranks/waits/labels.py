"""Waits for other ranks in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.units import format_duration


def wait(row: Mapping[str, Any]) -> str:
    what = "waiting" if row["wait"] is not None else "most likely waiting"
    what += f": {format_duration(row['duration'])}" + (f" for {row['late']}" if row["late"] else "")
    return what + (f" in {row['kind']}" if row["kind"] else "")
