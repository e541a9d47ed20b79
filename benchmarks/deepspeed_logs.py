"""What reading a log of DeepSpeed's of 100 MB takes: with much else in it, with nothing else, and a flops profile as large."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import measure
from tests.evidence.deepspeed_log.logs import many_timers, mlp, profile

BYTES = 100_000_000
LOGGER = "[2023-06-21 07:39:09,443] [INFO] [logging.py:96:log_dist] [Rank 0] rank=0 "
OTHERS = (
    " 3%|###        | 12/345 [00:07<06:50,  1.23s/it]\r 4%|####       |",
    "{'loss': 2.31, 'learning_rate': 5e-05}",
)


def _dense() -> list[str]:
    return many_timers(500, prefix=LOGGER)


def _mixed() -> list[str]:
    return [line for one in _dense() for line in (one, *OTHERS)]


def _profile() -> list[str]:
    return profile(mlp(blocks=2000))


LOGS: dict[str, Callable[[], list[str]]] = {"timers": _dense, "timers among others": _mixed, "flops profiles": _profile}


def deepspeed_logs(folder: Path) -> None:
    for name, made in LOGS.items():
        path = folder / "log.txt"
        text = "\n".join(made()) + "\n"
        path.write_text(text * (BYTES // len(text) + 1))
        print(f"DeepSpeed log, {name}, {path.stat().st_size / 1e6:,.0f} MB")
        measure("analyze", sys.executable, "-m", "traceanalyzer", "analyze", str(path), "-f", "json")
        path.unlink()
