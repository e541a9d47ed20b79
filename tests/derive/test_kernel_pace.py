"""The same kernels in an early and a later part of a run."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog

NAMES = ("gemm", "softmax", "norm", "gelu")


def run(factor, *, names=NAMES, blocks=None, count: int = 400, side: bool = False) -> KinetoTrace:
    """Kernels of 1 ms in turn; `factor` gives how many times as long, `blocks` how many blocks, by name and by part of the run."""
    trace, at = KinetoTrace(), 0.0
    for n in range(count):
        name = names[n % len(names)]
        length = 1000 * factor(name, n / count)
        grid = [blocks(name, n / count) if blocks else 64, 1, 1]
        trace.op(at, at + length, launch=(at - 20, at - 15), name=name, grid=grid, block=[128, 1, 1])
        if side:
            trace.op(
                at, at + length, launch=(at - 12, at - 8), name="other", stream=9, grid=[7, 1, 1], block=[128, 1, 1]
            )
        at += length + 5
    return trace


def pace(trace: KinetoTrace, tmp_path) -> list[dict]:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json"))).table("kernel_pace").to_pylist()


def fired(trace: KinetoTrace, tmp_path) -> list:
    result = ta.analyze(ta.load(trace.write(tmp_path / "trace.json")))
    return [finding for finding in result.findings if finding.rule == "STP003"]


def later(factor: float, since: float = 0.5):
    return lambda name, part: factor if part >= since else 1.0


def test_clocks_fall_in_the_middle(tmp_path):
    trace = run(later(1.3))
    (row,) = pace(trace, tmp_path)
    assert (row["names"], row["slower_names"], row["slower"], row["alike"], row["larger"]) == (4, 4, 1, 1, 0)
    assert row["ratio"] == pytest.approx(1.3, rel=0.01)
    # The cut lies within a twentieth of the run of where it really is.
    assert row["before"] == pytest.approx(201e6, abs=25e6)
    (finding,) = fired(trace, tmp_path)
    assert (finding.severity, finding.saving.recoverable_ns) == ("low", None)
    assert "4 of 4 compared, and about alike" in finding.message
    assert any("nvidia-smi" in text for advice in finding.recommend for text in advice.values())


@pytest.mark.parametrize(
    "trace",
    [
        run(later(1.0)),
        run(later(0.7)),  # Warm-up: faster later.
        run(lambda name, part: 2.0 if name == "softmax" and part > 0.5 else 1.0),  # Data of one kernel.
        run(lambda name, part: 1 + part * (1 + NAMES.index(name))),  # Longer work, each by another factor.
        run(later(1.4), names=("gemm",)),
        run(later(1.4), count=100),  # Less than 100 ms of either.
        run(
            later(1.5), blocks=lambda name, part: 64 if name != "gelu" or part < 0.5 else 96
        ),  # The grids of one kind show it.
        run(later(1.4), side=True),  # Others run beside them.
    ],
)
def test_silent(trace, tmp_path):
    assert fired(trace, tmp_path) == []


def test_kernels_that_run_seldom_are_not_compared(tmp_path):
    assert pace(run(later(1.0), count=4), tmp_path) == []
