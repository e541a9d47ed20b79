"""A trace as it would have been recorded on other nights: the same work, with all times stretched here and there."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tests.support.places import FIXTURES

FIXTURE = FIXTURES / "kineto" / "mask_sync.fixed.pt.trace.json.xz"
"""Steps in which the host launches kernels, one at a time, and the GPU is idle for two fifths."""
MOMENT = 1e-3
"""µs in which nothing else begins or ends."""
DAY_NS = 86_400 * 10**9
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Night:
    """`gaps` and `kernels` say how many times as long the time lasts in which the GPU is idle or not; `host` is the share of a step
    that a function of the host takes in it."""

    gaps: float = 1.0
    kernels: float = 1.0
    host: float = 0.0
    driver: int = 13000


def fixture() -> dict[str, Any]:
    """Its content."""
    with lzma.open(FIXTURE) as file:
        return json.load(file)  # type: ignore[no-any-return]


def recorded(trace: dict[str, Any], number: int, night: Night) -> dict[str, Any]:
    """The trace of a night. Its events keep their order: what changes is how fast time goes by, for all of them alike."""
    events = [one for one in trace["traceEvents"] if "ts" in one]
    busy = sorted((one["ts"], one["ts"] + one["dur"]) for one in events if one.get("cat") in KERNELS)
    steps = [one for one in events if one.get("cat") == "user_annotation" and one["name"].startswith("ProfilerStep")]
    calls = [_call(step, busy) for step in steps]
    before, after = _moments(min(one["ts"] for one in events), busy, calls, night)

    def at(time: float) -> float:
        return float(np.interp(time, before, after))

    def moved(one: dict[str, Any]) -> dict[str, Any]:
        start = at(one["ts"])
        return one | {"ts": start} | ({"dur": at(one["ts"] + one["dur"]) - start} if "dur" in one else {})

    others = [one for one in trace["traceEvents"] if "ts" not in one]
    called = [
        step | {"name": "tokenize", "ts": at(call), "dur": at(call + MOMENT) - at(call), "args": {}}
        for step, call in zip(steps, calls, strict=True)
        if night.host
    ]
    return trace | {
        "traceEvents": [*others, *map(moved, events), *called],
        "baseTimeNanoseconds": trace["baseTimeNanoseconds"] + number * DAY_NS,
        "cuda_driver_version": night.driver,
    }


def _moments(
    first: float, busy: list[tuple[float, float]], calls: list[float], night: Night
) -> tuple[list[float], list[float]]:
    """Moments of the trace and what they become; the last one lies behind all of it."""
    length = (busy[-1][1] - busy[0][0]) / len(calls)
    edges = sorted(
        {first, busy[-1][1] + 1e6, *(time for one in busy for time in one), *calls, *(t + MOMENT for t in calls)}
    )
    middles = (np.array(edges[:-1]) + edges[1:]) / 2
    starts, ends = (np.sort(side) for side in zip(*busy, strict=True))
    lasts = np.diff(edges) * np.where(
        starts.searchsorted(middles) > ends.searchsorted(middles), night.kernels, night.gaps
    )
    lasts[np.searchsorted(edges, calls)] += night.host * length
    return edges, [first, *(first + np.cumsum(lasts)).tolist()]


def _call(step: dict[str, Any], busy: list[tuple[float, float]]) -> float:
    """A moment of a step in which the GPU is idle."""
    inside = [one for one in busy if step["ts"] <= one[0] < step["ts"] + step["dur"]]
    return next(end + 2 for (_, end), (start, _) in pairwise(inside) if start - end > 5)
