"""What a log adds to a trace's sampled values, and that no rule takes it for a profiler's metrics of the GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.evidence.gpu_log import logs
from tests.evidence.gpu_log.beside import BEGIN_S, trace
from tests.evidence.gpu_log.logs import START_S, write
from tests.support.kineto import KinetoTrace
from traceanalyzer.analysis import analyze_parts
from traceanalyzer.analysis.evidence import place_evidence
from traceanalyzer.analysis.parts import parts_of
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.derive.kernels.kernel_pace import SAMPLES
from traceanalyzer.derive.kernels.metric_names import METRICS
from traceanalyzer.evidence.gpu_log.counters import COUNTED
from traceanalyzer.report.html import render_html


def catalog(*paths: Path) -> Catalog:
    placed = place_evidence(parts_of(ta.load(list(paths))), Config(), None, {})
    (part,) = placed.traces
    return part.catalog(Config())


def test_samples_around_the_trace_are_its_counters(tmp_path):
    tables = catalog(trace(tmp_path / "t.json"), write(tmp_path, "gpu.csv", logs.smi(logs.rows())))
    rows = tables.table("counters").to_pylist()
    clock = [row for row in rows if row["metric"] == "SM clock (log)"]
    assert {(row["device"], row["unit"], row["value"]) for row in clock} == {(0, "MHz", 1_900.0)}
    # From 2 s before the first kernel to as long after the last; 4 s of the trace lie between.
    assert len(clock) == pytest.approx(80, abs=3)
    first = (tables.table("ledger")["start_ns"][0].as_py(), min(row["time_ns"] for row in clock))
    assert first[1] == pytest.approx(first[0] - 2e9, abs=1.1e8)
    assert {row["metric"] for row in rows} >= {
        "power (log)",
        "temperature (log)",
        "utilization (log)",
        "memory used (log)",
    }


def test_of_several_logs_the_one_with_most_samples_is_drawn(tmp_path):
    few = write(tmp_path, "a.csv", logs.smi(logs.rows(40, step_s=0.5)))
    many = write(tmp_path, "b.csv", logs.smi(logs.rows(400, step_s=0.05)))
    for order in ((few, many), (many, few)):
        rows = catalog(trace(tmp_path / "t.json"), *order).table("counters").to_pylist()
        times = [row["time_ns"] for row in rows if row["metric"] == "power (log)"]
        assert len(times) == len(set(times)) == pytest.approx(160, abs=5)


def test_nothing_is_added_where_clocks_do_not_meet(tmp_path):
    log = write(tmp_path, "dmon.log", logs.dmon(options=""))
    assert ta.analyze(ta.load([trace(tmp_path / "t.json"), log])).evidence[0].clock is None


def test_no_name_is_that_of_a_profilers_metric():
    assert not [name for name, _, _ in COUNTED.values() if any(metric.pattern.search(name) for metric in METRICS)]


def test_rules_about_metrics_do_not_judge_by_a_log(tmp_path):
    text = "".join(
        f'DCGM_FI_{name}{{gpu="0"}} {value} {round((START_S + n / 20) * 1000)}\n'
        for n in range(400)
        for name, value in (
            ("DEV_GPU_UTIL", 99),
            ("PROF_SM_ACTIVE", 0.05),
            ("PROF_DRAM_ACTIVE", 0.99),
            ("PROF_PCIE_RX_BYTES", 6e10),
        )
    )
    files = [trace(tmp_path / "t.json", busy=1.0), write(tmp_path, "dcgm.prom", text)]
    assert catalog(*files).table("gpu_metrics").num_rows == 0
    outcomes = {one.rule: one.outcome for one in ta.analyze(ta.load(files)).rules}
    assert {outcomes[rule] for rule in ("MET001", "MET002", "MET003")} == {"not_applicable"}


@pytest.mark.parametrize(("step_s", "told"), [(0.1, True), (1.5, False)])
def test_a_clock_is_told_by_three_samples_or_more(tmp_path, step_s, told):
    """Kernels of several names that take longer from the middle on, and clocks that fell just then."""
    run = KinetoTrace()
    run.metadata["baseTimeNanoseconds"] = START_S * 1_000_000_000
    for n in range(400):
        at, length = BEGIN_S * 1e6 + n * 10_000, 8_000 if n >= 200 else 5_000
        shape = {"grid": [99, 1, 1], "block": [256, 1, 1]}
        run.op(at, at + length, launch=(at - 200, at - 190), name=f"kernel_{n % 4}", **shape)
    made = run.write(tmp_path / "t.json")
    samples = logs.rows(int(20 / step_s), step_s=step_s)
    for row in samples:
        row["sm"] = 1_200 if row["time"] > START_S + BEGIN_S + 2 else 1_900
    files = [made, write(tmp_path, "gpu.csv", logs.smi(samples))]
    (pace,) = catalog(*files).table("kernel_pace").to_pylist()
    assert pace["ratio"] == pytest.approx(1.6) and (pace["clock_after"] is not None) is told
    (finding,) = [one for one in ta.analyze(ta.load(files)).findings if one.rule == "STP003"]
    assert ("The sampled clock fell meanwhile" in finding.message) is told and SAMPLES == 3


def test_the_timeline_has_lanes_of_them(tmp_path):
    found = analyze_parts(
        parts_of(ta.load([trace(tmp_path / "t.json"), write(tmp_path, "gpu.csv", logs.smi(logs.rows()))]))
    )
    assert {lane for section in found.sections for lane in section.lanes} == set()
    assert b"<html" in render_html(found.result, found.tables, sections=found.sections)
