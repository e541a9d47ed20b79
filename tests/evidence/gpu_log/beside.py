"""Made-up traces that run for some seconds, for logs to be beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.evidence.gpu_log.logs import START_S
from tests.support.kineto import KinetoTrace

BEGIN_S = 6.0
"""Seconds after START_S at which traces begin: logs of 20 s have load from 2 s to 18 s."""


def trace(
    path: Path,
    device: int = 0,
    visible: int = 1,
    rank: int | None = None,
    seconds: float = 4.0,
    busy: float = 0.9,
    slow: Sequence[int] = (),
) -> Path:
    """Kernels, one each 10 ms that takes `busy` of that; those numbered `slow` take ten times as long."""
    made = KinetoTrace()
    made.metadata["deviceProperties"] = [
        {"id": number, "name": "NVIDIA H100", "numSms": 132, "totalGlobalMem": 85 << 30} for number in range(visible)
    ]
    made.metadata["baseTimeNanoseconds"] = START_S * 1_000_000_000
    if rank is not None:
        made.metadata["distributedInfo"] = {"rank": rank, "world_size": 2}
    at = BEGIN_S * 1e6
    number = 0
    while at < (BEGIN_S + seconds) * 1e6:
        length = 10_000 * busy * (10 if number in slow else 1)
        made.op(at, at + length, launch=(at - 200, at - 190), device=device, grid=[1000, 1, 1], block=[256, 1, 1])
        at += max(10_000, length + 1_000)
        number += 1
    return made.write(path)
