"""The roofline: what a kernel computes for each byte, how fast, and the roofs above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceanalyzer.names import readable_name
from traceanalyzer.result.sections import Point, Scatter

MOST_POINTS = 40
_MARGIN = 4.0
_TERA = 1e12


def roofline(rows: Sequence[dict[str, Any]], whose: str = "") -> Scatter | None:
    """Points of kernels whose operations and bytes were counted; None without any. Roofs are the peaks at the clocks that the GPU ran
    at while it was profiled: bandwidth times intensity, up to the peak of each kind of operation (Williams, Waterman and Patterson,
    Roofline, CACM 2009)."""
    known = [row for row in rows if (row["flop_rate"] or 0) > 0 and (row["dram_rate"] or 0) > 0][:MOST_POINTS]
    if not known:
        return None
    points = [_point(row) for row in known]
    left, right = min(point.x for point in points) / _MARGIN, max(point.x for point in points) * _MARGIN
    bandwidth = max((row["dram_peak"] for row in known if row["dram_peak"]), default=0.0) / _TERA
    peaks: dict[str, float] = {}
    for row in known:
        if row["flop_peak"]:
            peaks[row["flop_kind"]] = max(peaks.get(row["flop_kind"], 0.0), row["flop_peak"] / _TERA)
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    if bandwidth:
        # Where the highest roof begins, so that both are seen on either side.
        ridge = max(peaks.values(), default=right * bandwidth) / bandwidth
        left, right = min(left, ridge / _MARGIN), max(right, ridge * _MARGIN)
        lines.append(("DRAM", [(left, left * bandwidth), (ridge, ridge * bandwidth)]))
    for kind, peak in sorted(peaks.items()):
        lines.append((kind, [(peak / bandwidth if bandwidth else left, peak), (right, peak)]))
    return Scatter(f"Roofline{whose}", "FLOP per byte of DRAM", "TFLOP/s", points, lines)


def _point(row: dict[str, Any]) -> Point:
    label = readable_name(row["name"], 50)
    return Point(label, row["flop_rate"] / row["dram_rate"], row["flop_rate"] / _TERA, max(row["weight"], 1.0))
