"""Whose allocations the GPU waits for: calls of the driver in a trace, found in the snapshot beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import traceanalyzer as ta
from tests.evidence.snapshot_program import MiB, Program, line
from tests.evidence.test_snapshot_answers import judged
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.derive.ledger.tables import GAPS
from traceanalyzer.evidence.memory_snapshot.answers.calls import (
    APART,
    calls_of_allocators,
    event_of_call,
    memory_gaps,
)
from traceanalyzer.evidence.memory_snapshot.answers.reserve import snapshot_traffic
from traceanalyzer.model.placed import PLACED
from traceanalyzer.model.schema import API_CALLS, TableSpec
from traceanalyzer.result.document import Finding, Result

MEMORY = FIXTURES / "evidence" / "memory"
CALL = 200_000
"""How long a call takes, in ns."""


def table(spec: TableSpec, rows: list[dict[str, object]]) -> pa.Table:
    plain = pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in spec.schema])
    rows = [{**dict.fromkeys(plain.names), "rank": 0, "process": 1, "thread": 1, **row} for row in rows]
    made = [{name: row[name] for name in plain.names} for row in rows]
    return pa.Table.from_pylist(made, schema=plain).cast(spec.schema)


def placed(on_clock: bool = True) -> pa.Table:
    return table(PLACED, [{"kind": "memory_snapshot", "path": "s.pickle", "placed_by": "rank", "on_clock": on_clock}])


def pause(start: int, end: int, **more: object) -> dict[str, object]:
    return {"device": 0, "cause": "memory_management", "start_ns": start, "end_ns": end, **more}


def call(name: str, start: int, end: int, **more: object) -> dict[str, object]:
    return {"class": "memory", "name": name, "start_ns": start, "end_ns": end, **more}


def program() -> tuple[dict[str, pa.Table], int, int]:
    """One that gets memory at train.py:7, and later gives it back at train.py:8; and when."""
    it = Program()
    it.begin()
    it.event("segment_alloc", 64 * MiB, line("train.py", 7))
    it.free(*(it.alloc(MiB, line("train.py", 7)) for _ in range(3000)))
    it.event("segment_free", 64 * MiB, line("train.py", 8))
    tables = it.tables()
    got, freed = [row["time_ns"] for row in tables["snapshot_events"].to_pylist() if "segment" in row["kind"]]
    assert freed - got > 3 * CALL
    return tables, got, freed


def asked(gaps: list[dict[str, object]], calls: list[dict[str, object]], on_clock: bool = True) -> list[str | None]:
    tables, _, _ = program()
    found = memory_gaps(table(GAPS, gaps), judged(tables), table(API_CALLS, calls), placed(on_clock))
    return found["asked_by"].to_pylist()  # type: ignore[no-any-return]


def test_what_is_got_is_recorded_after_its_call_and_what_is_given_back_before_it():
    _, got, freed = program()
    pauses = [pause(got - CALL, got), pause(freed + 1_500, freed + CALL)]
    calls = [call("cudaMalloc", got - CALL, got - 1_000), call("cudaFree", freed + 1_500, freed + CALL)]
    assert asked(pauses, calls) == ["train.py:7 (step)", "train.py:8 (step)"]
    assert asked(pauses, calls[::-1]) == ["train.py:7 (step)", "train.py:8 (step)"]
    assert asked(pauses, [{**one, "name": "cudaFree"} for one in calls[:1]]) == [None, None]


@pytest.mark.parametrize(
    ("more", "on_clock"),
    [
        ({"thread": 2}, True),
        ({"name": "cudaMallocHost"}, True),
        ({"class": "launch"}, True),
        ({}, False),
    ],
)
def test_no_line_is_said_of_another_call(more, on_clock):
    _, got, _ = program()
    one = call("cudaMalloc", got - CALL, got)
    assert asked([pause(got - CALL, got)], [one]) == ["train.py:7 (step)"]
    assert asked([pause(got - CALL, got)], [{**one, **more}], on_clock) == [None]


def test_no_line_is_said_of_a_call_at_another_time():
    _, got, _ = program()
    late = got + APART + 1
    assert asked([pause(late - CALL, late)], [call("cudaMalloc", late - CALL, late)]) == [None]


def test_of_several_calls_in_a_pause_the_longest_counts():
    _, got, freed = program()
    calls = [call("cudaMalloc", got - CALL, got), call("cudaFree", freed, freed + CALL // 2)]
    assert asked([pause(got - CALL, freed + CALL)], calls) == ["train.py:7 (step)"]
    assert asked([pause(got - CALL // 4, freed + CALL)], calls) == ["train.py:8 (step)"]


def test_other_idle_time_is_left_out():
    _, got, _ = program()
    gaps = [pause(got - CALL, got), pause(got, got + 5, cause="host_work")]
    assert asked(gaps, []) == [None]


def test_without_a_snapshot_there_is_no_line():
    found = memory_gaps(table(GAPS, [pause(0, 9)]), [], API_CALLS.empty(), PLACED.empty())
    assert found["asked_by"].to_pylist() == [None]
    assert found.drop_columns("asked_by").schema == GAPS.schema


def test_the_idle_time_of_each_line():
    tables, got, freed = program()
    gaps = [pause(got - CALL, got), pause(freed, freed + 7)]
    calls = [call("cudaMalloc", got - CALL, got), call("cudaFree", freed, freed + CALL)]
    rows = snapshot_traffic(judged(tables), table(GAPS, gaps), table(API_CALLS, calls), placed()).to_pylist()
    assert {row["place"]: row["idle"] for row in rows} == {"train.py:7 (step)": CALL, "train.py:8 (step)": 7}
    rows = snapshot_traffic(judged(tables), table(GAPS, gaps), table(API_CALLS, calls), placed(False)).to_pylist()
    assert {row["idle"] for row in rows} == {None}


def found(result: Result, rule: str) -> Finding | None:
    return next((one for one in result.findings if one.rule == rule), None)


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        # What one step of it does: four calls of cudaMalloc, as many of cudaFree for torch.cuda.empty_cache().
        (
            "empty",
            "in 15 gaps, most of it in cudaFree; 33% of it inside aten::empty; 51% of it for churn.py:22 (step).",
        ),
        (
            "grow",
            "in 5 gaps, most of it in cudaMalloc; 100% of it inside aten::empty; 100% of it for churn.py:12 (head).",
        ),
        ("fixed", None),
    ],
)
def test_the_line_that_the_gpu_waits_for(kind, end):
    trace, snapshot = (MEMORY / f"churn.{kind}.{suffix}.xz" for suffix in ("pt.trace.json", "snapshot.pickle"))
    alone, both = ta.analyze(ta.load(trace)), ta.analyze(ta.load([trace, snapshot]))
    told, said = found(alone, "MEM001"), found(both, "MEM001")
    assert [one for one in both.rules if one.outcome == "error"] == []
    assert (told is None, said is None) == (end is None, end is None)
    if end and told and said:
        assert said.message.endswith(end)
        assert told.message == said.message.rpartition("; ")[0] + "."
        assert told.metrics == said.metrics and told.saving == said.saving
    # What MEM001 says is not said again as a fault of its own.
    calls = found(both, "MEM009")
    assert calls is None or (calls.severity, "the GPU is idle" in calls.message) == ("info", False)
    assert (calls is None) == (kind != "empty")


def found_calls(trace: Path, snapshot: Path) -> tuple[int, int]:
    """How many calls the trace has that get or give back memory, and how many of them the snapshot tells of."""
    one, other = ta.load(trace), ta.load(snapshot)
    shift = (other.inputs[0].clock_base_ns or 0) - (one.inputs[0].clock_base_ns or 0)
    events = other.table("snapshot_events")
    at = events.schema.get_field_index("time_ns")
    events = events.set_column(at, events.schema.field(at), pc.add(events["time_ns"], shift))
    calls = calls_of_allocators(one.table("api_calls"), placed())[0]
    return calls.num_rows, int((event_of_call(events, calls) >= 0).sum())


@pytest.mark.parametrize(("kind", "calls"), [("empty", 40), ("grow", 5), ("fixed", 0)])
def test_every_call_of_a_real_trace_is_found(kind, calls):
    pair = [MEMORY / f"churn.{kind}.{suffix}.xz" for suffix in ("pt.trace.json", "snapshot.pickle")]
    assert found_calls(*pair) == (calls, calls)


@needs_corpus
@pytest.mark.parametrize(("name", "calls"), [("frag_growing.slow", 46), ("frag_growing.fixed", 0), ("healthy.slow", 0)])
def test_calls_that_the_gpu_does_not_wait_for(name, calls):
    pair = [
        CORPUS / "evidence" / "memory" / f"{name}.{suffix}" for suffix in ("pt.trace.json.gz", "snapshot.pickle.xz")
    ]
    assert found_calls(*pair) == (calls, calls)
    result = ta.analyze(ta.load(pair))
    assert found(result, "MEM001") is None and found(result, "MEM009") is None
