"""Sampled GPU metrics, joined with what ran, and what rules say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import Tables, kernel, make_export, memcpy, runtime
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.kernels.metric_names import metric_of

KIND = 0x1000000000000
MS = 1_000_000
REAL = CORPUS / "nsys" / "dataloader.slow.gpu-metrics.sqlite"


def sampled(metrics: dict[str, Any], until: int, interval: int = 100_000, start: int = 0) -> Tables:
    """Samples from `start` on; a value is a number, or a function of the time stamp."""
    rows = [
        {"timestamp": time, "typeId": KIND, "metricId": number, "value": value(time) if callable(value) else value}
        for time in range(start, until, interval)
        for number, value in enumerate(metrics.values())
    ]
    names = [{"typeId": KIND, "metricId": number, "metricName": name} for number, name in enumerate(metrics)]
    return {"GPU_METRICS": rows, "TARGET_INFO_GPU_METRICS": names}


def kernels(count: int, length: int = MS, apart: int = 0, **more: Any) -> Tables:
    """Kernels one after another, each launched before."""
    step = length + apart
    rows = [kernel(n * step, n * step + length, correlation=n + 1, **more) for n in range(count)]
    calls = [runtime(n * step - 2000, n * step - 1000, correlation=n + 1) for n in range(count)]
    gpu = {"id": 0, "name": "NVIDIA H100", "smCount": 132, "totalMemory": 80 << 30}
    return {"CUPTI_ACTIVITY_KIND_KERNEL": rows, "CUPTI_ACTIVITY_KIND_RUNTIME": calls, "TARGET_INFO_GPU": [gpu]}


def table(path: Path, tables: Tables) -> list[dict[str, Any]]:
    return Catalog(ta.load(make_export(path / "report.sqlite", tables))).table("gpu_metrics").to_pylist()


def found(path: Path, tables: Tables) -> dict[str, str]:
    """Of the rules about metrics those that fired, with their message, and those that could not judge."""
    result = ta.analyze(ta.load(make_export(path / "report.sqlite", tables)))
    said = {finding.rule: finding.message for finding in result.findings}
    unjudged = {one.rule: one.outcome for one in result.rules if one.outcome == "could_not_judge"}
    return {rule: text for rule, text in (said | unjudged).items() if rule.startswith("MET")}


@pytest.mark.parametrize(
    ("name", "unit", "kind"),
    [
        ("SMs Active [Throughput %]", "Throughput %", "sms_active"),
        ("SM Active", None, "sms_active"),
        ("SM Issue [Throughput %]", "Throughput %", "sm_issue"),
        ("Compute Warps in Flight [Throughput %]", "Throughput %", "warps_in_flight"),
        ("Compute Warps in Flight [Avg]", "Avg", None),
        ("Unallocated Warps in Active SMs [Throughput %]", "Throughput %", None),
        ("DRAM Read Bandwidth [Throughput %]", "Throughput %", "dram"),
        ("DRAM Write Throughput", None, "dram"),
        ("PCIe RX Throughput [Throughput %]", "Throughput %", "pcie_in"),
        ("PCIe Write Throughput", None, "pcie_out"),
        ("NVLink TX Responses User Data [Throughput %]", "Throughput %", "nvlink_out"),
        ("NVLink RX Bandwidth", None, "nvlink_in"),
        ("NVLink bytes transmitted", None, "nvlink_out"),
        ("NVLink RX Requests Protocol Data [Throughput %]", "Throughput %", "nvlink_in"),
        ("VRAM Read Bandwidth", None, "dram"),
        ("Tensor Active / FP16 Active", None, "tensor_active"),
        ("GPC Clock Frequency [MHz]", "MHz", None),
        ("Tensor Active [Throughput %]", "Throughput %", "tensor_active"),
    ],
)
def test_names_of_metrics(name, unit, kind):
    metric = metric_of(name, unit)
    assert (metric.kind if metric else None) == kind


def test_a_sample_tells_of_the_time_that_follows_it(tmp_path):
    # Kernels of 1 ms with 1 ms between: SMs are active from each time stamp on at which one begins.
    metrics = {"SMs Active [Throughput %]": lambda time: 80 if time // MS % 2 == 0 else 0}
    rows = {
        (row["ran"], row["name"]): row for row in table(tmp_path, kernels(10, apart=MS) | sampled(metrics, 20 * MS))
    }
    assert rows["compute", None]["mean"] == pytest.approx(0.8)
    assert (rows["compute", None]["samples"], rows["compute", None]["time"]) == (100, 10 * MS)
    assert rows["window", None]["mean"] == pytest.approx(0.8 * 100 / 190)
    assert rows["kernel", "f<int>(int)" if ("kernel", "f<int>(int)") in rows else "void f<int>(int)"]["median"] == 0.8


def test_parts_of_one_memory_add_up_and_wholes_do_not(tmp_path):
    metrics = {"DRAM Read Bandwidth [Throughput %]": 50, "DRAM Write Bandwidth [Throughput %]": 30}
    (row,) = (row for row in table(tmp_path, kernels(10) | sampled(metrics, 10 * MS)) if row["ran"] == "compute")
    assert (row["mean"], row["near"]) == (pytest.approx(0.8), 10 * MS)
    whole = {"DRAM Bandwidth [Throughput %]": 60, **metrics}
    (tmp_path / "whole").mkdir()
    (row,) = (
        row for row in table(tmp_path / "whole", kernels(10) | sampled(whole, 10 * MS)) if row["ran"] == "compute"
    )
    assert row["mean"] == pytest.approx(0.6)


def test_lost_samples_are_not_stretched(tmp_path):
    tables = kernels(10) | sampled({"SM Active": 50}, 10 * MS)
    tables["GPU_METRICS"] = [row for row in tables["GPU_METRICS"] if not 2 * MS <= row["timestamp"] < 8 * MS]
    (row,) = (row for row in table(tmp_path, tables) if row["ran"] == "compute")
    assert row["time"] == 4 * MS


def test_metrics_of_another_gpu_are_not_this_ones(tmp_path):
    tables = kernels(10) | sampled({"SM Active": 3}, 10 * MS)
    for rows in ("GPU_METRICS", "TARGET_INFO_GPU_METRICS"):
        for row in tables[rows]:
            row["typeId"] = KIND + 1
    assert table(tmp_path, tables) == []


def test_a_busy_gpu_that_is_empty(tmp_path):
    metrics = {"SMs Active [Throughput %]": 9, "DRAM Read Bandwidth [Throughput %]": 3}
    said = found(tmp_path, kernels(50) | sampled(metrics, 50 * MS))
    assert list(said) == ["MET001"]
    assert "Only 9.0% of the multiprocessors (SMs) of GPU 0 are active" in said["MET001"]


def test_samples_between_kernels_say_nothing_of_kernels(tmp_path):
    metrics = {"SMs Active [Throughput %]": lambda time: 95 if time // MS % 4 == 0 else 0}
    assert found(tmp_path, kernels(20, apart=3 * MS) | sampled(metrics, 80 * MS)) == {}


def test_samples_slower_than_the_kernels_could_not_be_judged(tmp_path):
    tables = kernels(200, length=20_000, apart=80_000)
    metrics = {"SMs Active [Throughput %]": 9, "DRAM Read Bandwidth [Throughput %]": 80}
    assert found(tmp_path, tables | sampled(metrics, 20 * MS)) == {
        "MET001": "could_not_judge",
        "MET002": "could_not_judge",
    }


def test_short_kernels_without_gaps_are_judged_together(tmp_path):
    # Of 10 us each, 200 ns apart, with samples every 100 us.
    said = found(tmp_path, kernels(1000, length=10_000, apart=200) | sampled({"SM Active": 12}, 10 * MS))
    assert "Only 12% of the multiprocessors (SMs) of GPU 0 are active" in said["MET001"]


def test_memory_near_its_peak(tmp_path):
    metrics = {"DRAM Read Bandwidth [Throughput %]": 55, "DRAM Write Bandwidth [Throughput %]": 33, "SM Active": 99}
    said = found(tmp_path, kernels(50) | sampled(metrics, 50 * MS))
    assert list(said) == ["MET002"]
    assert "reads and writes take 88% of its bandwidth on average" in said["MET002"]


def test_a_link_near_its_peak(tmp_path):
    tables = kernels(2)
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = [memcpy(2 * MS, 42 * MS, correlationId=77, bytes=1 << 30, src=1)]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(runtime(MS, MS + 1000, correlation=77, name=4))
    metrics = {"PCIe RX Throughput [Throughput %]": lambda time: 88 if time >= 2 * MS else 1, "SM Active": 99}
    said = found(tmp_path, tables | sampled(metrics, 42 * MS))
    assert list(said) == ["MET003"]
    assert said["MET003"].startswith(
        "PCIe to GPU 0 carries as much as it can for 95% of the time, mostly for Memcpy HtoD"
    )


@needs_corpus
def test_a_real_capture_shows_the_blocks_of_its_kernels():
    """A batch norm of 72 blocks on 132 multiprocessors keeps about half of them active."""
    rows = Catalog(ta.load(REAL)).table("gpu_metrics").to_pylist()
    (norm,) = (r for r in rows if r["metric"] == "sms_active" and "batch_norm_backward" in (r["name"] or ""))
    assert 0.45 < norm["median"] < 0.6
    (every,) = (r for r in rows if r["metric"] == "sms_active" and r["ran"] == "compute")
    assert 0.7 < every["mean"] < 0.85
