"""Cause and effect: an operation before its launch, or after the wait for it, says that the clocks disagree."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.analysis import analyze
from traceanalyzer.catalog.catalog import Catalog


def judged(trace: KinetoTrace, tmp_path):
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    return Catalog(loaded), analyze(loaded)


def with_waits(drift: float) -> KinetoTrace:
    """Ten kernels, each followed by a wait that returns as the kernel ends, on a GPU whose records lie `drift` us late."""
    trace = KinetoTrace()
    for n in range(10):
        start = n * 1000.0
        trace.op(start + 20 + drift, start + 520 + drift, launch=(start, start + 5))
        trace.call("cudaDeviceSynchronize", start + 10, start + 525)
    return trace


def test_kernels_before_their_launches(tmp_path):
    trace = KinetoTrace()
    for n in range(10):
        start = n * 1000.0
        launch = (start + 8, start + 12) if n == 4 else (start - 20, start - 15)
        trace.op(start, start + 500, launch=launch)
    catalog, result = judged(trace, tmp_path)
    assert [(h.code, h.severity, h.count) for h in result.health] == [("TRC005", "low", 1)]
    assert "by up to 8 us:" in result.health[0].message
    launches = catalog.table("launches")
    assert launches.num_rows == 9
    assert min(launches["queue_delay"].to_pylist()) == 20_000
    # The gap before that kernel has no cause; the kernel itself is as long as it is.
    assert result.devices[0].idle_by_cause_ns["unattributed"] == 500_000
    assert result.devices[0].compute_ns == 10 * 500_000


def test_a_gpu_clock_that_runs_away(tmp_path):
    catalog, result = judged(with_waits(3000), tmp_path)
    assert [(h.code, h.severity, h.count) for h in result.health] == [("TRC005", "medium", 10)]
    assert catalog.table("launches").num_rows == 0
    assert result.devices[0].idle_by_cause_ns["unattributed"] == result.devices[0].idle_ns == 9 * 500_000
    assert {f.rule for f in result.findings} == {"GAP001", "TRC005"}


@pytest.mark.parametrize("drift", [0, 10])
def test_no_word_of_clocks_that_agree(tmp_path, drift):
    catalog, result = judged(with_waits(drift), tmp_path)
    assert catalog.table("clocks").num_rows == 0
    assert not [h for h in result.health if h.code == "TRC005"]


def test_several_devices_are_not_judged_by_one_wait(tmp_path):
    trace = with_waits(0).op(0, 90_000, launch=(-9, -8), device=1)
    assert judged(trace, tmp_path)[0].table("clocks").num_rows == 0


@pytest.mark.parametrize("file", sorted(p.name for p in (FIXTURES / "kineto").iterdir()))
def test_no_false_alarm(file):
    assert Catalog(ta.load(FIXTURES / "kineto" / file)).table("clocks").num_rows == 0
