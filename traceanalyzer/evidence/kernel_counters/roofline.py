"""The roofline: what a kernel computes for each byte, how fast, and the roofs above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceanalyzer.names import readable_name
from traceanalyzer.result.sections import Point, Scatter

MOST_POINTS = 40
_MARGIN = 4.0


def roofline(rows: Sequence[dict[str, Any]], whose: str = "") -> Scatter | None:
    """Points of kernels whose operations and bytes were counted; None without any. Roofs are the peaks at the clocks that the GPU ran
    at while it was profiled: bandwidth times intensity, up to the peak of each kind of operation (Williams, Waterman and Patterson,
    Roofline, CACM 2009)."""
    known = [row for row in rows if (row["flop_rate"] or 0) > 0 and (row["dram_rate"] or 0) > 0][:MOST_POINTS]
    if not known:
        return None
    points = [
        Point(
            readable_name(row["name"], 50),
            row["flop_rate"] / row["dram_rate"],
            row["flop_rate"],
            max(row["weight"], 1.0),
        )
        for row in known
    ]
    left, right = min(point.x for point in points) / _MARGIN, max(point.x for point in points) * _MARGIN
    bandwidth = max((row["dram_peak"] for row in known if row["dram_peak"]), default=None)
    peaks: dict[str, float] = {}
    for row in known:
        if row["flop_peak"]:
            peaks[row["flop_kind"]] = max(peaks.get(row["flop_kind"], 0.0), row["flop_peak"])
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    if bandwidth:
        top = max(peaks.values(), default=bandwidth * right)
        ridge = top / bandwidth
        right = max(right, ridge * _MARGIN)
        left = min(left, ridge / _MARGIN)
        lines.append(("DRAM", [(left, left * bandwidth), (min(ridge, right), min(ridge, right) * bandwidth)]))
    for kind, peak in sorted(peaks.items()):
        start = peak / bandwidth if bandwidth else left
        lines.append((kind, [(min(start, right / _MARGIN), peak), (right, peak)]))
    return Scatter(f"Roofline{whose}", "FLOP per byte of DRAM", "FLOP per second", points, lines)
