"""The figures of a capture: they add up as the ledger does, and what is not known is not there, with a reason."""

from __future__ import annotations

import pytest

import traceanalyzer as ta
from tests.support.captures import capture
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from tests.support.results import result_of
from traceanalyzer.result.captures.metrics import (
    RULE_FIGURES,
    figure,
    figure_names,
    figures_of,
    gains,
    metrics_of,
    why_missing,
)
from traceanalyzer.result.document import Result
from traceanalyzer.vocabulary.lines import IDLE

FILES = ("captured/feed_named.json.gz", "multirank/gpu_straggler.slow", "nsys/launch_storm.slow.sqlite")


@pytest.fixture(scope="module", params=FILES)
def result(request) -> Result:
    return result_of(FIXTURES / request.param)


def test_they_add_up(result):
    found = metrics_of(result)
    lines = (
        "compute_share",
        "exposed_communication_share",
        "exposed_memcpy_share",
        "exposed_memset_share",
        "idle_share",
    )
    assert sum(found[line].value for line in lines) == pytest.approx(1, abs=1e-5)
    assert sum(found[f"idle.{cause}_share"].value for cause in IDLE) == pytest.approx(
        found["idle_share"].value, abs=1e-5
    )
    assert found["idle_share"].value + found["busy_share"].value == pytest.approx(1, abs=1e-5)
    assert found["recoverable_share"].value <= 1


def test_they_say_what_the_result_says(result):
    found = metrics_of(result)
    assert found["max_gap"].value == max(device.max_gap_ns for device in result.devices)
    assert sum(found[f"findings.{level}"].value for level in ("info", "low", "medium", "high")) == len(result.findings)
    spoke = {finding.rule for finding in result.findings}
    assert {rule for rule, _, name in (one.partition(".") for one in found) if name == "findings"} == spoke
    for rule in spoke:
        mine = [finding for finding in result.findings if finding.rule == rule]
        assert found[f"{rule}.findings"].value == sum(map(gains, mine))
    ids = [rule.rule for rule in result.rules]
    assert set(found) <= set(figure_names(ids))
    assert all(value.unit == figure(name, ids).unit for name, value in found.items())


def test_the_worst_gpu_is_named():
    found = metrics_of(result_of(FIXTURES / "multirank" / "gpu_straggler.slow"))
    assert (found["COM005.share"].where, found["waiting_share"].where) == ("rank 2", "most for rank 2")
    assert metrics_of(result_of(FIXTURES / FILES[0]))["idle_share"].where is None


def test_nothing_of_a_trace_without_gpu_work(tmp_path):
    trace = KinetoTrace().range("aten::add", 0, 10, category="cpu_op")
    assert metrics_of(ta.analyze(ta.load(trace.write(tmp_path / "t.json")))) == {}


def test_one_rank_of_a_job_does_not_know_who_waits(tmp_path):
    trace = (
        KinetoTrace()
        .op(0, 10)
        .op(10, 30, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    )
    assert "waiting_share" not in metrics_of(ta.analyze(ta.load(trace.write(tmp_path / "t.json"))))


def test_every_figure_that_is_missing_has_a_reason():
    bare = capture(steps=0, rules={"INP001": "could_not_judge"}, reasons={"INP001": "clocks run apart"})
    for name in figure_names(["INP001", "XYZ001"]):
        assert name not in figures_of(bare)
        assert why_missing(bare, name)
    assert why_missing(bare, "INP001.share") == "INP001 could not judge: clocks run apart"
    assert why_missing(bare, "XYZ001.share") == "it was made without the rule XYZ001"
    assert why_missing(bare, "step.mean") == "no steps are marked"


def test_names_are_unambiguous():
    names = figure_names(["INP001"])
    assert len(names) == len(set(names))
    assert figure("findings.share", ["INP001"]) is None and figure("INP001.share", []) is None
    assert not {name for name in RULE_FIGURES if "." in name}


def test_a_rule_that_found_nothing_has_zeros():
    found = figures_of(capture(rules={"INP001": "clean", "COM002": "could_not_judge"}, metrics={"step.count": 5}))
    assert [found[f"INP001.{name}"].value for name in ("share", "per_step", "findings")] == [0, 0, 0]
    assert "COM002.share" not in found
    assert "INP001.per_step" not in figures_of(capture())
