"""What is read of each form: pickles of PyTorch and of Python, JSON, all versions, Inspector, nccl-tests."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.evidence.nccl_records.made import (
    LINK_TEXT,
    MS,
    START,
    as_json,
    dump,
    entry,
    frame,
    inspector,
    link_json,
    pickled,
    read,
    rounds,
)
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import pickles

WHOLE = dump(rounds(3), status={"0": (3, -1, 2)})


def _read(folder: Path, content: bytes) -> Any:
    path = folder / "file"
    path.write_bytes(content)
    return read(path)


@pytest.mark.parametrize("form", ["torch", 2, 3, 4, 5])
def test_a_pickle_in_any_form(tmp_path: Path, form: str | int) -> None:
    data = pickled(WHOLE) if form == "torch" else pickle.dumps(WHOLE, form)  # type: ignore[arg-type]
    sink, marks = _read(tmp_path, data)
    calls = sink.rows("nccl_calls")
    assert [row["sequence"] for row in calls] == [1, 2, 3]
    assert calls[0] | {"bus_bandwidth": None} == {
        "entry": 0,
        "group": "0",
        "sequence": 1,
        "p2p_sequence": None,
        "operation": "all_reduce",
        "peer": None,
        "dtype": "Float",
        "sizes": "[1024] -> [1024]",
        "in_elements": 1024,
        "out_elements": 1024,
        "bytes": 4096,
        "state": "completed",
        "created_ns": START + 10 * MS,
        "started_ns": None,
        "completed_ns": START + 11 * MS,
        "duration": None,
        "bus_bandwidth": None,
        "timed_out": False,
        "place": "train.py:12 (step)",
    }
    assert sink.rows("nccl_groups") == [
        {
            "group": "0",
            "description": "default_pg",
            "ranks": "[0, 1]",
            "size": 2,
            "last_enqueued": 3,
            "last_started": None,
            "last_completed": 2,
        }
    ]
    assert (marks.producer, marks.world_size, marks.rank, marks.versions) == (
        *("PyTorch flight recorder 2.10", 2, None),
        {"NCCL": "2.28.9"},
    )
    assert sink.notes == []


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_wherever_a_block_ends(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = _read(tmp_path, pickled(WHOLE))
    monkeypatch.setattr(pickles, "BLOCK_BYTES", block)
    for data in (pickled(WHOLE), pickle.dumps(WHOLE, 4)):
        sink, _ = _read(tmp_path, data)
        assert sink.rows("nccl_calls") == whole.rows("nccl_calls")


def test_json_says_the_same_but_for_places(tmp_path: Path) -> None:
    whole, _ = _read(tmp_path, pickled(WHOLE))
    sink, _ = _read(tmp_path, as_json(WHOLE))
    assert sink.rows("nccl_groups") == whole.rows("nccl_groups")
    assert sink.rows("nccl_calls") == [row | {"place": None} for row in whole.rows("nccl_calls")]
    assert sink.notes == []


def test_json_without_calls(tmp_path: Path) -> None:
    sink, _ = _read(tmp_path, as_json(dump(None, status={"0": (18, -1, 18)})))
    assert sink.rows("nccl_calls") == []
    assert sink.rows("nccl_groups")[0]["last_enqueued"] == 18
    assert any("holds no calls" in message for _, _, message in sink.notes)


OLD = {"pg_config": None, "pg_status": None, "comm_lib_version": None}


def test_older_versions(tmp_path: Path) -> None:
    """1.x numbers calls by `seq_id` in a group of one name; before 2.2 nothing says who is a member, and 1.0 was a list."""
    old = {"seq_id": 7, "process_group": "0", "profiling_name": "nccl:all_reduce", "record_id": 6, "pg_id": 0}
    old |= {
        "time_created_ns": START,
        "input_sizes": [[3, 4]],
        "output_sizes": [[3, 4]],
        "state": "scheduled",
        "frames": [frame(3)],
    }
    for content in ({"version": "1.5", "entries": [old]}, [old]):
        sink, marks = _read(tmp_path, pickled(content))
        (row,) = sink.rows("nccl_calls")
        assert (row["group"], row["sequence"], row["in_elements"], row["dtype"], row["bytes"], row["place"]) == (
            *("0", 7, 12, None, None),
            "train.py:3 (step)",
        )
        assert marks.world_size is None
        (group,) = sink.rows("nccl_groups")
        assert (group["group"], group["size"]) == ("0", None)


def test_sends_and_receives(tmp_path: Path) -> None:
    calls = [
        entry(5, "send 1->3", is_p2p=True, p2p_seq_id=9, group=("4", "mesh_pp")),
        entry(5, "recv 1<-0", p2p_seq_id=10, group=("4", "mesh_pp")),
    ]
    sink, marks = _read(tmp_path, pickled(dump(calls, {"0": range(8), "4": (1, 3, 5, 7)})))
    assert [
        (row["operation"], row["peer"], row["sequence"], row["p2p_sequence"]) for row in sink.rows("nccl_calls")
    ] == [
        ("send", 3, None, 9),
        ("recv", 0, None, 10),
    ]
    assert (marks.rank, marks.rank_source) == (3, "content")


def test_a_call_with_times_of_the_gpu(tmp_path: Path) -> None:
    timed = entry(1, time_discovered_started_ns=START + 5, duration_ms=1.25)
    (row,) = _read(tmp_path, pickled(dump([timed])))[0].rows("nccl_calls")
    assert (row["started_ns"], row["duration"]) == (START + 5, 1_250_000)


def test_only_what_is_active(tmp_path: Path) -> None:
    sink, _ = _read(tmp_path, pickled(dump([entry(19, state="scheduled")], status={"0": (19, -1, 18)})))
    (row,) = sink.rows("nccl_dumps")
    assert row["active_only"] and row["lost_beginning"]
    assert any("holds nothing that was completed" in message for _, _, message in sink.notes)


STRANGE = [
    {"profiling_name": 5},
    {"process_group": ["a"]},
    {"collective_seq_id": "x"},
    {"collective_seq_id": -4},
    {"time_created_ns": 1e300},
    {"input_sizes": [[-1]], "output_sizes": [["a"]]},
    {"input_sizes": 7, "output_sizes": None},
    {"input_sizes": [[1 << 61, 1 << 61, 1 << 61]]},
    {"input_dtypes": [["nested"]]},
    {"frames": [{"name": 1}, 7, {"name": "f", "filename": "a.py", "line": -1}]},
    {"state": "exploded"},
    {"duration_ms": float("nan")},
    {"record_id": None},
    {"profiling_name": "nccl:\ud800"},
]


@pytest.mark.parametrize("strange", STRANGE, ids=",".join)
def test_values_of_another_type_count_as_absent(tmp_path: Path, strange: dict[str, Any]) -> None:
    sink, _ = _read(tmp_path, pickle.dumps(dump([entry(1, **strange), entry(2)]), 4))
    assert len(sink.rows("nccl_calls")) == 2
    for name, batches in sink.tables.items():
        for batch in batches:
            batch.validate(full=True)
            assert name


@pytest.mark.parametrize("version", ["v4.0", "v4.1", "v4.2", "v4.3"])
def test_inspector_of_any_version(tmp_path: Path, version: str) -> None:
    sink, marks = _read(tmp_path, inspector(version, [(1, 8192, 40), (2, 1 << 20, 60)], rank=1, start=True))
    calls = sink.rows("nccl_calls")
    assert [(row["group"], row["sequence"], row["bytes"], row["duration"], row["operation"]) for row in calls] == [
        ("0x7f8c496ae9f661", 1, 8192, 40_000, "all_reduce"),
        ("0x7f8c496ae9f661", 2, 1 << 20, 60_000, "all_reduce"),
    ]
    assert calls[0]["created_ns"] == START + 10 * MS
    assert calls[0]["completed_ns"] == START + 10 * MS + 45_000
    assert (marks.rank, marks.world_size, marks.pids, marks.clock) == (1, 2, (4243,), "epoch")
    assert sink.notes == []


def test_lines_of_inspector_that_cannot_be_read(tmp_path: Path) -> None:
    lines = inspector("v4.3", [(1, 8192, 40), (2, 8192, 40)])
    orphan = lines.splitlines(keepends=True)[2]
    sink, _ = _read(tmp_path, lines + orphan + b'{"coll_perf": {"coll": "AllReduce", "coll_s')
    assert len(sink.rows("nccl_calls")) == 2
    assert [(code, message.startswith("lines of NCCL Inspector")) for code, _, message in sink.notes] == [
        ("TRC001", True)
    ]


@pytest.mark.parametrize("content", [link_json([(1 << 20, 18.51, 56.64), (32 << 20, 142.0, 236.3)]), LINK_TEXT])
def test_results_of_nccl_tests(tmp_path: Path, content: bytes) -> None:
    sink, marks = _read(tmp_path, content)
    rows = sink.rows("nccl_link_tests")
    first = [row for row in rows if not row["in_place"]]
    assert [(row["operation"], row["gpus"], row["bytes"], row["duration"], row["bus_bandwidth"]) for row in first] == [
        ("all_reduce", 2, 1 << 20, 18_510, 56.64),
        ("all_reduce", 2, 32 << 20, 142_000, 236.3),
    ]
    assert (len(rows), marks.producer, marks.versions) == (4, "nccl-tests", {"NCCL": "2.28.9"})
    assert "SECRET" not in json.dumps(rows)


@pytest.mark.parametrize(
    "content",
    [
        pickled(WHOLE)[:300],
        as_json(WHOLE)[:700],
        pickle.dumps({"entries": 1, "pg_config": 2, "pg_status": 3}, 4)[:-1],
        link_json([(8, 1.0, 1.0)])[:-20],
        link_json([]),
        b"# nThread 1 nGpus 2 minBytes 8\n#\n",
        inspector("v4.0", [(1, 8192, 40)])[:200],
    ],
)
def test_what_is_cut_or_empty_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_other_files_are_not_taken(tmp_path: Path) -> None:
    from traceanalyzer.evidence.nccl_records import KIND
    from traceanalyzer.ingest.bytes.source import source_of

    path = tmp_path / "file"
    for content in (
        pickle.dumps({"segments": [], "device_traces": []}),
        b'{"schemaVersion": 1, "nccl_version": "2.1", "distributedInfo": {"pg_config": [], "pg_count": 1}, "traceEvents": []}',
        b'{"header": {"a": 1}}',
        b'{"version": 2, "start_time": "now"}',
        b"a text of nThread 1",
        b"[]",
    ):
        path.write_bytes(content)
        assert not KIND.sniff(source_of(path, path, None)), content


def test_samples_are_claimed_by_this_kind_alone() -> None:
    from traceanalyzer.evidence import nccl_records
    from traceanalyzer.ingest.bytes.source import source_of
    from traceanalyzer.model.kinds import EVIDENCE, FORMATS, kinds_of

    samples = sorted((Path(nccl_records.__file__).parent / "samples").iterdir())
    assert len(samples) == 5
    for path in samples:
        source = source_of(path, path, None)
        assert [kind.name for group in (FORMATS, EVIDENCE) for kind in kinds_of(group) if kind.sniff(source)] == [
            "nccl_records"
        ]
        assert read(path)[0].tables
