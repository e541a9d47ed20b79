"""A month of made-up nights for the picture of a history's page: a new profiler, a new driver, a noisy night and a regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.history.nights import host_longer, night
from traceanalyzer.result.history.entry import Entry, Part

NIGHTS = 30
PROFILER, DRIVER, NOISY, SLOWER = 7, 14, 18, 23
LABELS = {"project": "llm", "config": "8gpu-bf16", "branch": "main", "host": "node1"}
SPREAD = 0.005
SAVED_NS, COST_NS = 1_500_000, 2_500_000
WORDS = "GPU 0 is idle {idle:.0f}% of the time; work on the host costs {host:.3g} ms of each {step:.3g} ms step."


def nights() -> list[Entry]:
    """By time."""
    random = np.random.default_rng(7)
    return [_night(number, random) for number in range(NIGHTS)]


def _night(number: int, random: np.random.Generator) -> Entry:
    entry = night(number, random)
    host, versions = 0, dict(entry.versions)
    if number >= SLOWER:
        entry = host_longer(entry, 0.08)
    if number >= DRIVER:
        host, versions["CUDA driver"] = host - SAVED_NS, "13.1"
    if number >= PROFILER:
        host, versions["profiler"] = host + COST_NS, "PyTorch profiler (Kineto, CUPTI 130100)"
    if number == NOISY:
        entry = host_longer(entry, 0.15)
    off = 1 + random.normal(0, SPREAD)
    lines = {**entry.lines, "idle.host_work": entry.lines["idle.host_work"] + host}
    lines = {name: round(ns * off) for name, ns in lines.items()}
    step = sum(lines.values())
    idle = lines["idle.host_work"]
    commit = f"{random.integers(1 << 48):012x}"
    return replace(
        entry,
        labels={**LABELS, "commit": commit},
        versions=versions,
        lines=lines,
        unit_ns=step,
        families=[Part(one.name, one.count, one.ns) for one in entry.kernels],
        headline=WORDS.format(idle=100 * idle / step, host=idle / 1e6, step=step / 1e6),
    )
