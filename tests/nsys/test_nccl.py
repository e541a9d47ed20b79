"""What NCCL's NVTX ranges say of collectives, and the kernels that get it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.nsys.nsys_export import STRINGS, Row, Tables, global_id, kernel, make_export, nvtx, read, runtime
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.ingest.formats.nsys.events import payloads

US, MB = 1000, 1 << 20
NAMES = STRINGS | {
    50: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    51: "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}
ONE, INIT, PEER = 16777221, 16777227, 16777230
COMMUNICATOR = 0xFEDCBA9876543210


def entries(schema: int, *fields: tuple[str, int, int | None], domain: int = 1) -> list[Row]:
    return [
        {"domainId": domain, "schemaId": schema, "idx": i, "flags": None, "type": kind, "name": name, "offset": offset}
        for i, (name, kind, offset) in enumerate(fields)
    ]


COMM, SIZE = ("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8)
SCHEMAS = [
    *entries(ONE, COMM, SIZE, ("Reduction operation", 16777236, 16)) * 2,
    *entries(INIT, COMM, ("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16)),
    *entries(PEER, COMM, SIZE, ("Peer rank", 5, 16)),
]


def blob(schema: int, *numbers: int, layout: str = "<QQQ", domain: int = 1, size: int = 24) -> bytes:
    return struct.pack("<QQQQ", domain, schema, size, 32 + size) + struct.pack(layout, *numbers).ljust(24, b"\0")


def init(ranks: int = 4) -> Row:
    return nvtx(1, 2, "ncclCommInitRank") | {
        "domainId": 1,
        "binaryData": blob(INIT, COMMUNICATOR, ranks, 0, 0, layout="<Qiii"),
    }


def call(name: str, start: int, end: int, size: int, schema: int = ONE, **more: Any) -> Row:
    data = blob(schema, COMMUNICATOR, size, 0)
    return nvtx(start * US, end * US, name) | {"domainId": 1, "binaryData": data} | more


def mark(name: str, start: int, end: int) -> Row:
    return nvtx(start * US, end * US, name) | {"domainId": 1, "binaryData": None}


def launched(*at: int, name: int = 50) -> Tables:
    """Kernels of 100 us, each launched at so many us."""
    kernels = [kernel((t + 10) * US, (t + 110) * US, correlation=n, demangledName=name) for n, t in enumerate(at, 1)]
    calls = [runtime(t * US, (t + 1) * US, correlation=n) for n, t in enumerate(at, 1)]
    return {"CUPTI_ACTIVITY_KIND_KERNEL": kernels, "CUPTI_ACTIVITY_KIND_RUNTIME": calls}


def with_payloads(tables: Tables, *ranges: Row) -> Tables:
    return tables | {"NVTX_EVENTS": list(ranges), "NVTX_PAYLOAD_SCHEMA_ENTRIES": SCHEMAS}


def communication(tmp_path: Path, tables: Tables) -> list[dict[str, Any]]:
    return Catalog(ta.load(make_export(tmp_path / "a.sqlite", tables, NAMES))).table("communication").to_pylist()


def test_the_call_around_a_launch_says_size_and_communicator(tmp_path: Path) -> None:
    (row,) = communication(tmp_path, with_payloads(launched(1000), init(), call("ncclAllReduce", 990, 1010, 64 * MB)))
    assert (row["kind"], row["bytes"], row["group"], row["group_size"]) == (
        *("all-reduce", 64 * MB, "0xfedcba9876543210", 4),
    )
    assert row["bus_bandwidth"] == pytest.approx(1.5 * 64 * MB / (100 * US))
    assert row["peer"] is None and row["group_ranks"] is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ncclAllReduce", (MB, MB, MB)),
        ("ncclAllGather", (4 * MB, MB, 4 * MB)),
        ("ncclReduceScatter", (4 * MB, 4 * MB, MB)),
        ("ncclAlltoAll", (4 * MB, 4 * MB, 4 * MB)),
        ("ncclBroadcast", (MB, MB, MB)),
        ("ncclGather", (None, None, None)),
    ],
)
def test_the_size_is_that_of_one_message(tmp_path: Path, name: str, told: tuple[int | None, ...]) -> None:
    found = read(make_export(tmp_path / "a.sqlite", with_payloads({}, init(), call(name, 990, 1010, MB))))
    (row,) = found.table("collectives").to_pylist()
    assert (row["bytes"], row["in_bytes"], row["out_bytes"]) == told
    assert (row["thread"], row["device"], row["name"]) == (8, None, name)


def test_without_the_number_of_ranks_a_gathered_size_is_not_known(tmp_path: Path) -> None:
    rows = [call("ncclAllGather", 990, 1010, MB), call("ncclAllReduce", 1020, 1030, MB)]
    found = read(make_export(tmp_path / "a.sqlite", with_payloads({}, *rows)))
    assert found.column("collectives", "bytes") == [None, MB]
    assert found.column("collectives", "group_size") == [None, None]
    rows += [init(4), init(8)]
    found = read(make_export(tmp_path / "b.sqlite", with_payloads({}, *rows)))
    assert found.column("collectives", "group_size") == [None, None]


def test_a_group_launches_when_it_ends(tmp_path: Path) -> None:
    group = [mark("ncclGroupStart", 980, 981), mark("ncclGroupEnd", 995, 1010)]
    rows = [call("ncclSend", 985, 986, 3 * MB, PEER), call("ncclRecv", 988, 989, MB, PEER)]
    (row,) = communication(tmp_path, with_payloads(launched(1000, name=51), init(), *group, *rows))
    assert (row["kind"], row["bytes"], row["in_bytes"], row["out_bytes"]) == ("send-receive", 3 * MB, 3 * MB, MB)
    assert row["group"] == "0xfedcba9876543210"


def test_calls_of_one_kind_that_share_a_kernel_add_up(tmp_path: Path) -> None:
    nested = [mark("ncclGroupStart", 970, 971), mark("ncclGroupStart", 980, 981), mark("ncclGroupEnd", 990, 991)]
    rows = [*nested, call("ncclAllReduce", 985, 986, MB), call("ncclAllReduce", 987, 988, 2 * MB)]
    (row,) = communication(tmp_path, with_payloads(launched(1000), init(), *rows, mark("ncclGroupEnd", 995, 1010)))
    assert (row["kind"], row["bytes"]) == ("all-reduce", 3 * MB)


def test_of_several_kernels_of_several_calls_nothing_is_said(tmp_path: Path) -> None:
    group = [mark("ncclGroupStart", 980, 981), mark("ncclGroupEnd", 995, 1010)]
    rows = [call("ncclAllReduce", 985, 986, MB), call("ncclAllReduce", 987, 988, 2 * MB)]
    told = communication(tmp_path, with_payloads(launched(1000, 1005), init(), *group, *rows))
    assert [(row["bytes"], row["group"]) for row in told] == [(None, None)] * 2


def test_two_kernels_of_one_call_share_its_communicator_and_not_its_size(tmp_path: Path) -> None:
    told = communication(tmp_path, with_payloads(launched(1000, 1005), init(), call("ncclAllReduce", 990, 1010, MB)))
    assert [(row["bytes"], row["group_size"]) for row in told] == [(None, 4)] * 2


def test_a_group_that_was_open_when_recording_began(tmp_path: Path) -> None:
    rows = [mark("ncclGroupEnd", 900, 910), call("ncclAllReduce", 990, 1010, MB)]
    (row,) = communication(tmp_path, with_payloads(launched(1000), init(), *rows))
    assert row["bytes"] == MB


def test_the_call_of_another_thread_says_nothing(tmp_path: Path) -> None:
    other = call("ncclAllReduce", 990, 1010, MB, globalTid=global_id(7, 9))
    (row,) = communication(tmp_path, with_payloads(launched(1000), init(), other))
    assert (row["kind"], row["bytes"]) == ("all-reduce", None)


@pytest.mark.parametrize(
    "data",
    [
        blob(ONE, COMMUNICATOR, MB, 0)[:40],
        blob(ONE, COMMUNICATOR, MB, 0, size=8),
        blob(ONE, COMMUNICATOR, MB, 0, domain=2),
        blob(12345, COMMUNICATOR, MB, 0),
        b"\0" * 56,
        "no hexadecimal",
        "ABC",
    ],
)
def test_a_payload_in_another_form_is_not_read_and_said(tmp_path: Path, data: Any) -> None:
    rows = with_payloads({}, call("ncclAllReduce", 990, 1010, MB, binaryData=data))
    found = read(make_export(tmp_path / "a.sqlite", rows))
    assert found.table("collectives").num_rows == 0
    assert [m[3] for m in found.messages if "form that is not known" in m[2]] == [1]


def test_hexadecimal_text_is_a_payload_too(tmp_path: Path) -> None:
    rows = with_payloads({}, call("ncclAllReduce", 990, 1010, MB, binaryData=blob(ONE, COMMUNICATOR, MB, 0).hex()))
    found = read(make_export(tmp_path / "a.sqlite", rows))
    assert found.column("collectives", "bytes") == [MB]


def test_a_schema_that_stands_for_two_layouts_tells_nothing(tmp_path: Path) -> None:
    rows = with_payloads({}, call("ncclAllReduce", 990, 1010, MB))
    rows["NVTX_PAYLOAD_SCHEMA_ENTRIES"] = [*SCHEMAS, *entries(ONE, SIZE, COMM)]
    assert read(make_export(tmp_path / "a.sqlite", rows)).table("collectives").num_rows == 0


def test_sizes_that_were_left_out_at_export_are_named(tmp_path: Path) -> None:
    rows = with_payloads({}, mark("ncclAllReduce", 990, 1010))
    found = read(make_export(tmp_path / "a.sqlite", rows))
    assert [m[0] for m in found.messages if "--include-blobs=true" in m[2]] == ["TRC009"]


def test_an_absurd_size_is_unknown(tmp_path: Path) -> None:
    rows = with_payloads({}, call("ncclAllReduce", 990, 1010, (1 << 64) - 1))
    assert read(make_export(tmp_path / "a.sqlite", rows)).column("collectives", "bytes") == [None]


def test_decoding_any_bytes(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    texts = pa.array([draw.bytes(int(n)).hex() for n in draw.integers(0, 80, 200)])
    schema = payloads.Schema({"a": (0, "<u8")})
    assert not list(payloads.decode(texts, np.zeros(200, np.int64), {(0, 0): schema}))
