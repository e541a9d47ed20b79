"""What an export holds beside CUDA and the host: other contexts on the GPU, graphics, the network, and what is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.nsys.nsys_export import Collected, Row, Tables, global_id, kernel, make_export, read


def export(tmp_path: Path, tables: Tables) -> Collected:
    return read(make_export(tmp_path / "a.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1000, 9000)], **tables}))


def said(found: Collected, words: str) -> list[tuple[str, str, int, str | None]]:
    return [
        (code, severity, count, example)
        for code, severity, message, count, example in found.messages
        if words in message
    ]


def switch(time: int, pid: int, **more: Any) -> Row:
    row = {
        "tag": 8,
        "vmId": 1,
        "seqNo": time,
        "contextId": pid,
        "timestamp": time,
        "globalPid": global_id(pid),
        "gpuId": 0,
    }
    return row | more


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ([switch(2000, 7), switch(3000, 99), switch(4000, 99)], [("TRC006", "low", 2, "process 99")]),
        # Before the first and after the last operation nobody asks.
        ([switch(2000, 7), switch(500, 99), switch(9999, 99)], []),
        ([switch(2000, 7), switch(3000, 7)], []),
        # Another GPU, and a container whose processes have other numbers outside.
        ([switch(2000, 7), switch(3000, 99, gpuId=1)], []),
        ([switch(2000, 1007), switch(3000, 1099)], []),
        ([switch(2000, 7), switch(3000, 99, globalPid=None)], []),
    ],
)
def test_contexts_of_other_processes(tmp_path: Path, switches: list[Row], expected: list[Any]) -> None:
    found = export(tmp_path, {"GPU_CONTEXT_SWITCH_EVENTS": switches})
    assert said(found, "contexts of other processes") == expected


def test_switches_without_a_time_are_named(tmp_path: Path) -> None:
    row = {key: value for key, value in switch(2000, 99).items() if key != "timestamp"}
    found = export(tmp_path, {"GPU_CONTEXT_SWITCH_EVENTS": [row]})
    assert said(found, "without a needed column") == [("TRC001", "low", 1, "GPU_CONTEXT_SWITCH_EVENTS without time")]


def test_graphics_has_its_time(tmp_path: Path) -> None:
    rows = [
        {"start": 0, "end": 1_500_000},
        {"start": 5, "end": 500_005},
        {"start": 9, "end": None},
        {"start": 9, "end": 1},
    ]
    found = export(tmp_path, {"VULKAN_WORKLOAD": rows, "DX12_API": [{"start": 1, "end": 2}]})
    told = "4 Vulkan workloads on the GPU that took 2 ms, 1 Direct3D 12 calls on the host"
    assert said(found, "graphics work is not read") == [("TRC001", "low", 4, told)]


def test_graphics_with_absurd_times(tmp_path: Path) -> None:
    rows = [{"start": -(1 << 62), "end": 1 << 62}] * 9
    assert said(export(tmp_path, {"VULKAN_WORKLOAD": rows}), "graphics work is not read")


def metric(start: int, value: int, place: int = 0, device: int = 11, port: int = 1) -> Row:
    row = {"start": start, "end": start + 1000, "globalId": device, "portId": port, "metricsListId": 5}
    return row | {"metricsIdx": place, "value": value}


def network(rows: list[Row], table: str = "NET_NIC_METRIC") -> Tables:
    listed = {"metricsListId": 5, "description": ""}
    return {
        table: rows,
        "TARGET_INFO_NETWORK_METRICS": [
            {**listed, "metricsIdx": 0, "name": "IB: Bytes sent", "unit": "B/ms"},
            {**listed, "metricsIdx": 1, "name": "IB: Send waits", "unit": ""},
        ],
        "NIC_ID_MAP": [{"nicId": 3, "globalId": 11}],
        "TARGET_INFO_NIC_INFO": [{"globalId": 0, "nicId": 3, "name": "mlx5_0"}],
    }


def test_counters_of_network_cards(tmp_path: Path) -> None:
    found = export(tmp_path, network([metric(10, 7), metric(10, 3, place=1), metric(20, 9, device=12, place=2)]))
    rows = {
        (r["time_ns"], r["metric"], r["unit"], r["value"], r["device"]) for r in found.table("counters").to_pylist()
    }
    assert rows == {
        (10, "mlx5_0 port 1: IB: Bytes sent", "B/ms", 7.0, None),
        (10, "mlx5_0 port 1: IB: Send waits", None, 3.0, None),
        (20, "network card port 1: metric 2", None, 9.0, None),
    }


def test_counters_of_switches_and_without_names(tmp_path: Path) -> None:
    found = export(tmp_path, {"NET_IB_SWITCH_METRIC": [metric(10, 7)]})
    assert found.column("counters", "metric") == ["InfiniBand switch port 1: metric 0"]


def test_a_network_table_without_values_is_named(tmp_path: Path) -> None:
    row = {key: value for key, value in metric(1, 2).items() if key != "value"}
    assert (
        said(export(tmp_path, {"NET_NIC_METRIC": [row]}), "without a needed column")[0][3]
        == "NET_NIC_METRIC without value"
    )


def test_what_is_not_read_is_listed_by_kind(tmp_path: Path) -> None:
    one = {"start": 1, "end": 2}
    tables = {"CUBLAS_EVENTS": [one] * 2, "CUDNN_EVENTS": [one], "SYSCALL": [one], "PMU_EVENTS": []}
    ((code, severity, count, example),) = said(export(tmp_path, tables), "is not read: what is said")
    assert (code, severity, count, example) == ("TRC009", "info", 4, "3 calls of CUDA's libraries, 1 system calls")
