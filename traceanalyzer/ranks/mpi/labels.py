"""Waits in calls of MPI in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceanalyzer.names import brief_name
from traceanalyzer.units import format_duration


def wait(row: Mapping[str, Any]) -> str:
    if row["wait"] is None:
        return f"{format_duration(row['duration'])} in {brief_name(row['name'])}"
    return (
        f"waiting: {format_duration(row['duration'])}"
        + (f" for {row['late']}" if row["late"] else "")
        + f" in {brief_name(row['name'])}"
    )
