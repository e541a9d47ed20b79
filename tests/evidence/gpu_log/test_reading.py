"""Logs of GPUs: the same values come out of every way to write them, and what cannot be read is said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.evidence.gpu_log import logs
from tests.evidence.gpu_log.logs import ALL, LOGS, START_S, read, write
from traceanalyzer.evidence import gpu_log
from traceanalyzer.evidence.gpu_log.reading.fields import field_of
from traceanalyzer.evidence.gpu_log.reading.values import factor_of, usual_factor

SECOND = 1_000_000_000
MIB = 1 << 20
MIDDLE = {
    "gpu": 0,
    "time_ns": (START_S + 10) * SECOND,
    "utilization": 0.98,
    "sm_clock": 1_900,
    "sm_clock_max": 1_980,
    "power": 650.25,
    "power_limit": 700,
    "temperature": 60,
    "memory_used": 40_000 * MIB,
    "memory_total": 81_559 * MIB,
    "reasons": 0,
    "pcie_gen": 5,
    "pcie_gen_max": 5,
    "pcie_width": 16,
    "pcie_width_max": 16,
}
OLD = {"reasons": "clocks_throttle_reasons.active", "sm": "clocks.sm [MHz]", "gpu": "index", "limit": "power.limit [W]"}
WAYS = {
    "as it is": {},
    "columns the other way round": {"columns": ALL[::-1]},
    "old names": {"names": OLD},
    "no units": {"units": False},
    "no spaces": {"parted": ","},
    "no spaces, no units": {"parted": ",", "units": False},
    "semicolons": {"parted": ";"},
    "tabs": {"parted": "\t"},
    "decimal comma and semicolons": {"parted": ";", "comma": True},
    "decimal comma": {"comma": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_nvidia_smi_gives_the_same(tmp_path, way):
    sink, marks = read(write(tmp_path, "gpu.csv", logs.smi(logs.rows(), **WAYS[way])))
    found = sink.rows()
    assert len(found) == 200 and not sink.notes
    assert {name: found[100][name] for name in MIDDLE} == pytest.approx(MIDDLE)
    assert (marks.producer, marks.clock, marks.clock_base_ns) == ("nvidia-smi", "local", None)


@pytest.mark.parametrize(("encoding", "end"), [("utf-16", "\r\n"), ("utf-8-sig", "\r\n"), ("utf-8", "\r\n")])
def test_as_windows_writes_it(tmp_path, encoding, end):
    text = logs.smi(logs.rows()).replace("\n", end)
    found = read(write(tmp_path, "gpu.csv", text, encoding))[0].rows()
    assert len(found) == 200 and found[100]["power"] == pytest.approx(650.25)


def test_words_for_no_value(tmp_path):
    lines = logs.smi(logs.rows()).split("\n")
    lines[100] = lines[100].replace("650.25 W", "[N/A]")
    lines[101] = lines[101].replace("98 %", "[Not Supported]").replace("650.25 W", "[Unknown Error]")
    lines[102] = lines[102].replace("98 %", "busy")
    lines[103] = "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error"
    sink, _ = read(write(tmp_path, "gpu.csv", "\n".join(lines)))
    found = sink.rows()
    assert len(found) == 199
    assert found[99]["power"] is None and found[100]["power"] is None and found[100]["utilization"] is None
    assert [(code, count) for code, _, _, count in sink.notes] == [("TRC001", 1), ("TRC001", 1)]
    assert sink.said("lines of a log") and sink.said("values of a log")


def test_reasons_in_columns_of_their_own(tmp_path):
    head = (
        "timestamp, utilization.gpu [%], clocks_event_reasons.supported, clocks_event_reasons.sw_power_cap, "
        "clocks_throttle_reasons.hw_thermal_slowdown"
    )
    text = f"{head}\n2026/11/28 16:00:00.000, 9 %, 0x1ff, Active, Not Active\n2026/11/28 16:00:01.000, 9 %, 0x1ff, Not Active, Active\n"
    assert [row["reasons"] for row in read(write(tmp_path, "gpu.csv", text))[0].rows()] == [0x4, 0x40]


def test_a_logger_that_began_again_with_other_columns(tmp_path):
    first, second = logs.rows(50), logs.rows(50, start_s=START_S + 60)
    text = logs.smi(first) + logs.smi(second, [name for name in ALL if name != "limit"])
    found = read(write(tmp_path, "gpu.csv", text))[0].rows()
    assert len(found) == 100 and found[10]["power_limit"] == 700 and found[60].get("power_limit") is None


def test_the_last_line_of_a_logger_that_was_ended(tmp_path):
    text = logs.smi(logs.rows(20))
    sink, _ = read(write(tmp_path, "gpu.csv", text[:-40]))
    assert len(sink.rows()) == 19 and sink.notes[0][:2] == ("TRC001", "info") and sink.said("cut")


def test_gpus_that_are_not_named_are_numbered(tmp_path):
    columns = [name for name in ALL if name != "gpu"]
    made = logs.rows(100, gpus=4, temp=lambda gpu: 60 + gpu)
    sink, _ = read(write(tmp_path, "gpu.csv", logs.smi(made, columns)))
    assert {(row["gpu"], row["temperature"]) for row in sink.rows() if row["utilization"] > 0.5} == {
        (gpu, 60.0 + gpu) for gpu in range(4)
    }
    assert sink.said("rows of 4 GPUs that do not say which")
    # One row is missing here and there: nothing tells whose the others are.
    holed = [row for number, row in enumerate(made) if number % 9]
    sink, _ = read(write(tmp_path, "holes.csv", logs.smi(holed, columns)))
    assert {row.get("gpu") for row in sink.rows()} == {None} and sink.said("rows of several GPUs")


@pytest.mark.parametrize("options", ["DT", "T", ""])
def test_dmon(tmp_path, options):
    sink, marks = read(write(tmp_path, "dmon.log", logs.dmon(gpus=2, options=options)))
    found = sink.rows()
    assert len(found) == 80
    own = [row for row in found if row["gpu"] == 1]
    assert [own[0][name] for name in ("power", "utilization", "sm_clock", "mem_clock", "reasons")] == pytest.approx(
        [690, 0.99, 1_500, 2_619, 4]
    )
    assert own[7]["time_ns"] - own[0]["time_ns"] == 7 * SECOND
    assert marks.clock == ("local" if options == "DT" else "none")
    assert own[0]["timed"] is (options != "") and sink.said("no times") is (options == "")
    if options == "DT":
        assert own[0]["time_ns"] == START_S * SECOND


def test_dmon_over_midnight_without_dates(tmp_path):
    text = logs.dmon(40, options="T", step_s=3600)
    found = read(write(tmp_path, "dmon.log", text))[0].rows()
    assert {later["time_ns"] - sooner["time_ns"] for sooner, later in pairwise(found)} == {3600 * SECOND}


def test_dmon_as_csv(tmp_path):
    text = "#gpu, pwr, gtemp, sm, mclk, pclk\n#Idx, W, C, %, MHz, MHz\n0, 690, 60, 99, 2619, 1500\n0, 691, 60, 98, 2619, 1485\n"
    assert [row["sm_clock"] for row in read(write(tmp_path, "dmon.csv", text))[0].rows()] == [1_500, 1_485]


@pytest.mark.parametrize("comments", [True, False])
def test_dcgm(tmp_path, comments):
    sink, marks = read(write(tmp_path, "dcgm.prom", logs.dcgm(comments=comments)))
    found = sink.rows()
    assert len(found) == 80 and {row["uuid"] for row in found} == {"GPU-0-x", "GPU-1-x"} == set(marks.gpus) - {
        "0-x",
        "1-x",
    }
    row = found[3]
    assert row["time_ns"] == (START_S + 3) * SECOND and row["model"] == "NVIDIA H100" and marks.clock == "epoch"
    assert [row[name] for name in ("sm_clock", "power", "utilization", "reasons")] == pytest.approx(
        [1_395, 696.5, 0.99, 4]
    )
    assert (row["memory_used"], row["memory_total"]) == (40_000 * MIB, 81_000 * MIB)
    # The name of a node or pod is neither kept nor, where there are ids, used.
    assert marks.host is None and not any(value == "n" for value in row.values())


def test_scrapes_without_times_follow_each_other(tmp_path):
    sink, marks = read(write(tmp_path, "dcgm.prom", logs.dcgm(times=False)))
    assert len(sink.rows()) == 80 and marks.clock == "none" and sink.said("no times")
    assert {row["timed"] for row in sink.rows()} == {False}


def test_what_does_not_look_usual_is_left_to_the_parser(tmp_path):
    usual = logs.dcgm(5)
    odd = usual + (
        'DCGM_FI_DEV_GPU_TEMP{gpu = "0", UUID="GPU-0-x", modelName="a \\"b\\" {c} \\\\ d"}   61   1795881600000\n'
        'DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1-x",} 0x1p3 1795881600000\n'
        "DCGM_FI_DEV_GPU_TEMP{gpu= 7\n"
    )
    sink, _ = read(write(tmp_path, "dcgm.prom", odd))
    assert {row.get("temperature") for row in sink.rows() if row["uuid"] == "GPU-0-x"} >= {61.0}
    assert any(code == "TRC001" and "lines" in message for code, _, message, _ in sink.notes)


def test_values_and_labels_are_those_of_prometheus_own_parser(tmp_path):
    """Line by line, on a real scrape: what is read at once agrees with what the parser says of each line."""
    text = (LOGS / "gemm_sustained.dcgm.prom").read_text()
    want: dict[tuple[int, str], float] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            told = field_of(one.name)
            if told and told.what in MIDDLE and one.timestamp:
                factor = factor_of(told.what, told.unit) or usual_factor(told.what, 1_000, True)
                want[round(float(one.timestamp) * 1_000) * 1_000_000, told.what] = one.value * factor
    found = {
        (row["time_ns"], name): row[name]
        for row in read(LOGS / "gemm_sustained.dcgm.prom")[0].rows()
        for name in MIDDLE
        if name in row
    }
    assert len(want) == 192 and {key: found[key] for key in want} == pytest.approx(want)


def test_other_exporters(tmp_path):
    text = "".join(
        f'nvidia_smi_{name}{{uuid="aa-b"}} {value}\n'
        for name, value in (
            ("clocks_current_sm_clock_hz", 1.395e9),
            ("power_draw_watts", 690.5),
            ("utilization_gpu_ratio", 0.99),
            ("memory_used_bytes", 5e9),
            ("temperature_gpu", 60),
            ("pcie_link_gen_current", 4),
        )
    )
    (row,) = read(write(tmp_path, "a.metrics", "# HELP nvidia_smi_clocks_current_sm_clock_hz It\n" + text))[0].rows()
    found = [row[name] for name in ("sm_clock", "power", "utilization", "memory_used", "temperature", "pcie_gen")]
    assert found == pytest.approx([1_395, 690.5, 0.99, 5e9, 60, 4])


def test_parts_of_a_gpu_are_not_taken_for_it(tmp_path):
    text = logs.dcgm(3, gpus=1, comments=False)
    mig = text.replace('gpu="0"', 'gpu="0",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"').replace("} 99", "} 7")
    found = read(write(tmp_path, "dcgm.prom", text + mig))[0].rows()
    assert [row["utilization"] for row in found] == pytest.approx([0.99] * 3)


def test_range_queries(tmp_path):
    result = [
        {
            "metric": {"__name__": f"DCGM_FI_DEV_{name}", "gpu": gpu, "UUID": f"GPU-{gpu}"},
            "values": [[START_S + 15 * n + 0.5, value] for n in range(20)],
        }
        for name, value in logs.DCGM.items()
        for gpu in "01"
    ]
    result.append({"metric": {"gpu": "0"}, "values": [[START_S, "1"]]})
    result[0]["values"][4][1] = "NaN"
    sink, marks = read(
        write(tmp_path, "a.json", json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    )
    found = sink.rows()
    assert len(found) == 40 and marks.clock == "epoch" and sink.said("series without a name")
    assert found[1]["time_ns"] == (START_S + 15) * SECOND + SECOND // 2 and {row.get("model") for row in found} == {
        None
    }


KEYS = {
    "ours": {
        "timestamp": START_S,
        "gpu": 0,
        "gpu_util_pct": 98,
        "sm_clock_mhz": 1900,
        "power_w": 650.25,
        "memory_used_bytes": 5 * MIB,
    },
    "another": {
        "time": START_S,
        "index": 0,
        "utilization.gpu": 98,
        "clocks.sm": 1900,
        "power_mw": 650_250,
        "memory_used_mib": 5,
    },
    "raw NVML": {
        "ts": START_S * 1_000,
        "device": "cuda:0",
        "gpuUtil": 98,
        "smClock": 1900,
        "power_usage": 650_250,
        "mem_used": 5 * MIB * 1000,
    },
    "texts": {
        "datetime": "2026-11-28T16:00:00Z",
        "gpu_id": "0",
        "util": "98 %",
        "sm_clock": "1900 MHz",
        "power": "650.25 W",
        "memory_used": "5 MiB",
    },
    "nested": {
        "timestamp": START_S,
        "gpus": [
            {"utilization": {"gpu": 98}, "clocks": {"sm": 1900}, "power": {"draw": 650.25}, "memory": {"used": 5}}
        ],
    },
    "by name": {
        "time_ns": START_S * SECOND,
        "gpu0": {"utilization": 98, "sm_clock": 1900, "power": 650.25, "memory_used": 5},
    },
}


@pytest.mark.parametrize("way", KEYS)
def test_json_with_whatever_keys(tmp_path, way):
    assert datetime.fromtimestamp(START_S, UTC).isoformat() == "2026-11-28T16:00:00+00:00"
    (row,) = read(write(tmp_path, "a.jsonl", json.dumps(KEYS[way]) + "\n"))[0].rows()
    assert row["time_ns"] == START_S * SECOND and row["gpu"] == 0
    assert [row[name] for name in ("utilization", "sm_clock", "power")] == pytest.approx([0.98, 1_900, 650.25])
    assert row["memory_used"] in (5 * MIB, 5_000 * MIB)


def test_json_lists_processes_and_reasons(tmp_path):
    row = {
        "timestamp": START_S,
        "gpu_util": 5,
        "sm_clock": 1500,
        "processes": [{"pid": 7}, {"pid": 8}],
        "throttle_reasons": ["SwPowerCap", "HwThermalSlowdown"],
    }
    (found,) = read(write(tmp_path, "a.json", json.dumps([row], indent=1)))[0].rows()
    assert (found["processes"], found["reasons"]) == (2, 0x44)


def test_json_with_damage(tmp_path):
    lines = [json.dumps({"timestamp": START_S + n, "gpu_util_pct": 50, "sm_clock_mhz": 1500}) for n in range(20)]
    lines[3] = lines[3].replace("1500", "NaN")
    lines[5] = "{broken"
    lines[6] = "[1, 2]"
    lines[7] = lines[7].replace(str(START_S + 7), '"never"')
    sink, _ = read(write(tmp_path, "a.jsonl", "\n".join(lines) + "\n" + lines[0][:30]))
    found = sink.rows()
    assert len(found) == 17 and found[3]["sm_clock"] is None and sink.said("cut")
    assert [count for code, _, message, count in sink.notes if "lines" in message] == [3]


@pytest.mark.parametrize("name", ["nvidia_smi.csv", "nvml.jsonl", "dcgm.prom", "dmon.log", "query_range.json"])
def test_samples_of_the_kind_are_read(name):
    assert read(Path(gpu_log.__file__).parent / "samples" / name)[0].rows()
