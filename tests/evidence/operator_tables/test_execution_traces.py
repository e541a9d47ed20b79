"""Execution traces: every version of their schema, what they tell alone, and what they add to the trace of the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.evidence.operator_tables.made import execution, node, old_node, product, read, write
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.operator_tables import KIND
from traceanalyzer.evidence.operator_tables.joining import enriched, fits
from traceanalyzer.ingest.bytes.source import source_of

FOLDER = FIXTURES / "evidence" / "operator_tables"
REAL, BARE = FOLDER / "execution_trace.json.gz", FOLDER / "without_shapes.pt.trace.json.gz"
ROOT = "[pytorch|profiler|execution_trace|process]"


class TestReal:
    @needs_corpus
    def test_the_share_of_the_peak_is_that_of_recorded_shapes(self):
        whole = ta.analyze(ta.load(CORPUS / "extras" / "stack_memory.pt.trace.json.gz")).roofline
        assert whole and whole[0].flops == 5_754_585_088
        assert ta.analyze(ta.load([BARE, REAL])).roofline == whole
        assert not ta.analyze(ta.load(BARE)).roofline

    def test_alone(self):
        result = ta.analyze(ta.load(REAL))
        assert result.verdict.headline == (
            "1,872 operators (87 different) were recorded, which compute 5.75 GFLOP: an execution trace holds no times; give the "
            "Kineto trace of the same run beside it."
        )
        assert result.health == [] and result.devices == []

    def test_it_names_its_process(self):
        sink, marks = read(REAL)
        assert (marks.pids, marks.producer, sink.notes) == ((3008,), "PyTorch execution trace", [])
        (whole,) = sink.rows("execution_traces")
        assert (whole["schema"], whole["pid"], whole["nodes"], whole["threads"]) == (
            "1.1.1-chakra.0.0.4",
            3008,
            1882,
            2,
        )

    def test_rules_about_shapes_can_judge_the_trace_beside_it(self):
        def outcomes(*paths: Path) -> dict[str, str]:
            return {one.rule: one.outcome for one in ta.analyze(ta.load([*paths])).rules}

        without, beside = outcomes(BARE), outcomes(BARE, REAL)
        shaped = {f"OPR{number:03}" for number in (1, 2, 4, 5)}
        assert {without[rule] for rule in shaped} == {"not_applicable"}
        assert {beside[rule] for rule in shaped} == {"clean"}

    @needs_corpus
    def test_shapes_and_types_are_those_that_the_profiler_records(self):
        whole = ta.load(CORPUS / "extras" / "stack_memory.pt.trace.json.gz").table("host_ranges")
        made = enriched(read(REAL)[0], ta.load(BARE))["host_ranges"]
        assert made["shapes"].equals(whole["shapes"])
        other = [(a, b) for a, b in zip(made["dtypes"].to_pylist(), whole["dtypes"].to_pylist(), strict=True) if a != b]
        # An empty list does not say of what it is one.
        assert len(other) == 2 and all(len(json.loads(a)) == len(json.loads(b)) for a, b in other)

    def test_what_the_trace_has_stays(self):
        trace = ta.load(BARE)
        ranges = trace.table("host_ranges")
        own = read(REAL)[0]
        once = enriched(own, trace)["host_ranges"]
        assert once.schema == ranges.schema and once.drop(["shapes", "dtypes", "arguments"]).equals(
            ranges.drop(["shapes", "dtypes", "arguments"])
        )


@pytest.mark.parametrize("schema", ["1.0.1", "1.0.2-chakra.0.0.4", "1.1.1-chakra.0.0.4"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_schema(tmp_path, schema, ascii_only):
    nodes = [product(3, 1, name="aten::mm"), node(4, "näme", [], [], rf=2, scope=7), node(1, ROOT, [], [])]
    nodes = [old_node(one) for one in nodes] if schema == "1.0.1" else nodes
    path = write(tmp_path / "et.json", json.dumps(execution(nodes, schema), ensure_ascii=ascii_only))
    assert KIND.sniff(source_of(path, path, None))
    sink, _ = read(path)
    first, second = sink.rows("execution_nodes")
    assert (first["name"], first["record_function"], first["operator"]) == ("aten::mm", 1, True)
    assert (first["shapes"], first["dtypes"]) == ("[[8, 16], [16, 4]]", '["float", "float"]')
    assert (second["name"], second["operator"], second["shapes"]) == ("näme", False, None)


def test_inputs_as_kineto_writes_them(tmp_path):
    types = [
        "Tensor(c10::Half)",
        "GenericList[Int,Int]",
        "GenericList[Tensor(float),Tensor(float)]",
        "Bool",
        "None",
        "Device",
    ]
    types += ["Tensor(nullptr (uninitialized))", "Double"]
    shapes = [[2, 3], [[], []], [[4], [5, 6]], [], [], [], [], []]
    one = node(3, "aten::convolution", shapes, types, rf=1)
    one["inputs"]["values"] = [
        [1, 2, 0, 6, 2, "cuda:0"],
        [1, 1],
        [[1, 2, 0, 4, 4, "cuda:0"]] * 2,
        True,
        "<None>",
        "cuda:0",
        [],
        0.5,
    ]
    (row,) = read(write(tmp_path / "et.json", execution([one])))[0].rows("execution_nodes")
    assert json.loads(row["shapes"]) == [[2, 3], [], [[4], [5, 6]], [], [], [], [], []]
    assert json.loads(row["dtypes"]) == ["c10::Half", "ScalarList", "TensorList", "Scalar", "", "", "", "Scalar"]
    assert json.loads(row["arguments"]) == ["", "[1, 1]", "", "True", "", "cuda:0", "", "0.5"]


def test_collectives(tmp_path):
    more = {"collective_name": "allreduce", "pg_name": "0", "in_msg_nelems": 1024, "dtype": "Float", "pg_size": 8}
    nodes = [node(n, "record_param_comms", [], [], rf=n, **more) for n in (3, 4)]
    result = ta.analyze(ta.load(write(tmp_path / "et.json", execution(nodes))))
    assert result.verdict.headline.startswith(
        "2 operators (1 different) were recorded: an execution trace holds no times"
    )


def test_what_runs_within_what_is_counted_is_not_counted_twice(tmp_path):
    nodes = [
        product(5, 3, parent=4),
        node(4, "aten::linear", [[8, 16], [4, 16]], ["Tensor(float)"] * 2, 3, 2),
        product(6, 4),
    ]
    headline = ta.analyze(ta.load(write(tmp_path / "et.json", execution(nodes)))).verdict.headline
    assert "which compute 2.05 kFLOP" in headline  # two products of 8 x 16 by 16 x 4


class TestDamage:
    @pytest.fixture
    def text(self) -> str:
        return json.dumps(execution([product(n, n) for n in range(3, 9)]))

    def test_a_process_that_was_killed(self, tmp_path, text):
        sink, _ = read(write(tmp_path / "et.json", text[: text.index('"id": 7') + 100]))
        assert [row["node"] for row in sink.rows("execution_nodes")] == [3, 4, 5, 6]
        assert ("TRC001", "medium") in [note[:2] for note in sink.notes]

    @pytest.mark.parametrize("bare", ["nan", "-inf", "NaN", "Infinity"])
    def test_numbers_that_are_no_json(self, tmp_path, text, bare):
        sink, _ = read(write(tmp_path / "et.json", text.replace("[0, 0, 0, 1, 4", f"[0, 0, {bare}, 1, 4", 1)))
        assert len(sink.rows("execution_nodes")) == 6
        assert [(severity, count) for _, severity, _, count in sink.notes] == [("low", 1)]

    def test_one_damaged_node(self, tmp_path, text):
        sink, _ = read(write(tmp_path / "et.json", text.replace('"aten::mm"', '"a "b"', 1)))
        assert [row["node"] for row in sink.rows("execution_nodes")] == [4, 5, 6, 7, 8]
        assert [(severity, count) for _, severity, _, count in sink.notes] == [("low", 1)]

    def test_of_two_in_one_file_the_first_is_read(self, tmp_path, text):
        sink, _ = read(write(tmp_path / "et.json", text + "\n" + text))
        assert len(sink.rows("execution_nodes")) == 6
        assert [(severity, message[:26]) for _, severity, message, _ in sink.notes] == [
            ("medium", "the file holds several exe")
        ]

    @pytest.mark.parametrize("nodes", [[], [{}], [3], "x"])
    def test_without_a_node_it_is_refused(self, tmp_path, nodes):
        path = write(tmp_path / "et.json", {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes})
        if nodes == [{}]:
            assert read(path)[0].rows("execution_nodes")[0]["name"] == ""
            return
        with pytest.raises(InputError, match="without a node"):
            read(path)

    @pytest.mark.parametrize("shapes", [[[-1], [2]], [["a"], [2]], "x", [[2]], [[1 << 70], [2]], None])
    def test_shapes_that_are_none(self, tmp_path, shapes):
        one = product(3, 1)
        one["inputs"]["shapes"] = shapes
        assert read(write(tmp_path / "et.json", execution([one])))[0].rows("execution_nodes")[0]["shapes"] is None


def a_trace(path: Path, names: list[str], pid: int = 100, first: int = 1, shapes: bool = False) -> Path:
    made = KinetoTrace()
    for at, name in enumerate(names):
        args: dict[str, Any] = {"Record function id": first + at, "External id": first + at}
        args |= {"Input Dims": [[1, 2], [2, 3]], "Input type": ["float", "float"]} if shapes else {}
        made.add(cat="cpu_op", name=name, pid=pid, tid=pid, ts=10 * at, dur=5, args=args)
    made.add(ph="M", name="process_name", pid=pid, args={"name": "python"})
    return made.op(0, 10).write(path)


class TestWhose:
    NAMES = ("aten::mm", "aten::add", "aten::relu", "aten::sum") * 3

    def et(self, folder: Path, names: tuple[str, ...] = NAMES, pid: int = 100, first: int = 1) -> Path:
        nodes = [product(10 + at, first + at, name=name) for at, name in enumerate(names)]
        return write(folder / "et.json", execution(nodes, pid=pid))

    def test_ids_and_names_agree(self, tmp_path):
        trace = ta.load(a_trace(tmp_path / "t.json", list(self.NAMES)))
        own = read(self.et(tmp_path))[0]
        assert fits(own, trace) is True
        shapes = enriched(own, trace)["host_ranges"].filter(trace.table("host_ranges")["record_function"].is_valid())[
            "shapes"
        ]
        assert set(shapes.to_pylist()) == {"[[8, 16], [16, 4]]"}

    def test_other_names_are_another_run(self, tmp_path):
        trace = ta.load(a_trace(tmp_path / "t.json", list(self.NAMES[::-1])))
        own = read(self.et(tmp_path, tuple(f"{name}_" for name in self.NAMES)))[0]
        assert fits(own, trace) is False and enriched(own, trace) == {}

    def test_no_ids_in_common_tell_nothing(self, tmp_path):
        trace = ta.load(a_trace(tmp_path / "t.json", list(self.NAMES), first=1000))
        own = read(self.et(tmp_path))[0]
        assert fits(own, trace) is None and enriched(own, trace) == {}

    def test_recorded_shapes_are_kept(self, tmp_path):
        trace = ta.load(a_trace(tmp_path / "t.json", list(self.NAMES), shapes=True))
        assert enriched(read(self.et(tmp_path))[0], trace) == {}

    def test_of_two_ranks_the_process_tells(self, tmp_path):
        a_trace(tmp_path / "a.json", list(self.NAMES), pid=100)
        a_trace(tmp_path / "b.json", list(self.NAMES), pid=200)
        self.et(tmp_path, pid=200)
        (one,) = ta.analyze(ta.load([tmp_path / "a.json", tmp_path / "b.json", tmp_path / "et.json"])).evidence
        assert one.placed_by and one.note is None

    def test_of_two_that_are_alike_none_is_taken(self, tmp_path):
        for name in "ab":
            a_trace(tmp_path / f"{name}.json", list(self.NAMES), pid=100)
        self.et(tmp_path)
        (one,) = ta.analyze(ta.load([tmp_path / "a.json", tmp_path / "b.json", tmp_path / "et.json"])).evidence
        assert one.placed_by is None


def test_a_table_and_its_trace(tmp_path):
    result = ta.analyze(ta.load([BARE, REAL, FOLDER / "key_averages.txt"]))
    assert [(one.kind, bool(one.placed_by), one.note) for one in result.evidence] == [
        ("operator_tables", True, None)
    ] * 2
    assert "PyTorch" not in result.verdict.headline and "no times" not in result.verdict.headline
    assert {one.rule for one in result.rules if one.outcome == "not_applicable"} >= {"OPR006", "OPR007", "OPR008"}


def test_a_table_of_another_run(tmp_path):
    other = FIXTURES / "kineto" / "launch_storm.slow.pt.trace.json.gz"
    (one,) = ta.analyze(ta.load([other, FOLDER / "key_averages.txt"])).evidence
    assert one.placed_by is None and one.note == "what it holds is of another run than the traces"
