"""Steps that nobody marked, where the time of each step went, and the steps that take longer than the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.steps import step_ledger
from traceanalyzer.derive.steps.repetition import Launches, find
from traceanalyzer.derive.steps.step_ledger import _places, line_times
from traceanalyzer.intervals import coverage
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.trace import Trace
from traceanalyzer.vocabulary.lines import HOST_WORK, LEDGER_LINES, SYNCHRONIZATION

COPY, FORWARD, BACKWARD, UPDATE = "Memcpy HtoD (Pinned -> Device)", "fprop", "layer_norm_backward", "multi_tensor_apply"
LAYERS = 6
LAYER = ["gemm", "softmax", "gelu", "norm"]
STEP = [COPY, "embed", *LAYER * LAYERS, "loss", *["dgemm", "softmax_backward", "dgelu"] * LAYERS, *[UPDATE] * 3]


def numbered(names: list[str]) -> Launches:
    """The launches of these kernels and copies."""
    known = sorted(set(names))
    kernel = np.array(["Memcpy" not in name for name in known], bool)
    update = np.array([name == UPDATE for name in known], bool)
    material = np.array([name == COPY or "backward" in name for name in known], bool)
    return Launches(np.array([known.index(name) for name in names], np.int64), len(known), kernel, update, material)


def starts(names: list[str]) -> list[int]:
    units = find(numbered(names))
    return [] if units is None else units.start.tolist()


def test_steps_repeat():
    assert starts(STEP * 5) == [n * len(STEP) for n in range(5)]
    assert find(numbered(STEP * 5)).end[-1] == 5 * len(STEP)


def test_a_capture_that_begins_and_ends_within_a_step_has_whole_periods_only():
    assert starts((STEP * 6)[20:-10]) == [n * len(STEP) for n in range(5)]


def test_work_before_the_first_step_is_in_none():
    start_up = ["normal", "fill"] * len(STEP)
    assert starts(start_up + STEP * 9) == [len(start_up) + n * len(STEP) for n in range(9)]


@pytest.mark.parametrize("extra", [["log"], [*STEP[:27], "metric"]])
def test_what_happens_every_few_steps_makes_no_longer_steps(extra):
    names, expected = [], []
    for n in range(30):
        expected.append(len(names))
        names += STEP + (extra if n % 5 == 4 else [])
    assert starts(names) == expected


def test_steps_of_a_few_launches_more_or_less():
    names, expected = [], []
    for n in range(12):
        expected.append(len(names))
        names += [*STEP[:10], *["pad"] * (n * 7 % 5), *STEP[10:]]
    assert starts(names) == expected


def test_gradients_are_accumulated_over_several_batches():
    step = STEP[:-3] * 4 + [UPDATE] * 3
    assert starts(step * 4) == [n * len(step) for n in range(4)]


@pytest.mark.parametrize(
    "names",
    [
        STEP,
        STEP * 2,
        ["gemm"] * 500,
        [COPY, "gemm"] * 100,
        ["embed", *[*LAYER, "add", "norm2", "gemm2", "gelu2", "add2"] * 24, "head"],
        # Layers that load something from the host are layers still: what is before and after them says so.
        ["embed", "gather", *[COPY, *LAYER, "add", "norm2", "gemm2"] * 24, "head", "argmax"],
        [COPY, "embed", *[*LAYER, "add", "norm2", "gemm2", "gelu2"] * 24, "head"] * 2,
        [],
    ],
    ids=["one", "two", "uniform", "tiny", "layers", "loading layers", "two of inference", "nothing"],
)
def test_what_are_no_steps(names):
    assert starts(names) == []


def test_names_in_no_order_are_no_steps():
    draw = np.random.default_rng(3).integers(0, 40, 4000)
    assert starts([f"{UPDATE if n % 2 else 'backward'}{n}" for n in draw]) == []


def training(
    names: list[list[str]], *, launched: bool = True, pauses: dict[int, str] | None = None, kernel: int = 900
) -> KinetoTrace:
    """Steps of kernels, one a millisecond; before the last kernel of a step with a pause the host is in that range for 300 ms."""
    trace, time = KinetoTrace(), 0
    for n, step in enumerate(names):
        for position, name in enumerate(step):
            if pauses and n in pauses and position == len(step) - 1:
                trace.range(pauses[n], time, time + 300_000)
                time += 300_000
            category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            launch = (time + 10, time + 15) if launched else None
            trace.op(time + 20, time + 20 + kernel, launch=launch, name=name, category=category)
            time += 1000
    return trace


def table(trace: KinetoTrace, tmp_path, name: str = "step_stats") -> list[dict]:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json"))).table(name).to_pylist()


@pytest.mark.parametrize("launched", [True, False])
def test_found_steps_are_steps_like_others(tmp_path, launched):
    rows = table(training([STEP] * 4, launched=launched), tmp_path)
    assert [row["method"] for row in rows] == ["repetition"] * 4
    assert [row["end_ns"] for row in rows] == [(n * len(STEP) - 1) * 1_000_000 + 920_000 for n in range(1, 5)]
    assert [row["start_ns"] for row in rows] == [20_000, *(row["end_ns"] for row in rows[:-1])]
    assert {row["gpu_op_count"] for row in rows} == {len(STEP)}
    assert [row["complete"] for row in rows] == [False, True, True, True]


def test_checkpoints_are_no_longer_steps(tmp_path):
    names = [STEP + (["Memcpy DtoH (Device -> Pageable)"] * 200 if n % 5 == 4 else []) for n in range(15)]
    assert len(table(training(names), tmp_path)) == 15


def test_marked_steps_are_believed(tmp_path):
    trace = training([STEP] * 4)
    half = len(STEP) * 2000
    rows = table(trace.range("step 0", 0, half).range("step 1", half, 2 * half), tmp_path)
    assert [row["method"] for row in rows] == ["annotation"] * 2


def test_work_queued_before_the_capture_is_in_no_step(tmp_path):
    trace = training([STEP] * 4)
    for n in range(10):
        trace.op(-20_000 + n * 1000, -19_100 + n * 1000, name="queued")
    (steps,) = ta.analyze(ta.load(trace.write(tmp_path / "trace.json"))).steps
    assert (steps.count, steps.method, steps.outside_op_count) == (4, "repetition", 10)


def stripped(path) -> tuple[list[dict], list[dict]]:
    """The steps of a trace as marked, and as found once the marks are gone."""
    trace = ta.load(path)
    bare = Trace(trace.inputs, {**trace.tables, "steps": EVENT_TABLES["steps"].empty()})
    return tuple(Catalog(t).table("step_stats").to_pylist() for t in (trace, bare))


def compare(paths) -> tuple[int, int]:
    """How many traces with three marked steps or more were cut right and how many not at all; any other cut fails."""
    right = none = 0
    for path in paths:
        marked, found = stripped(path)
        if len(marked) < 3:
            assert not found, path
            continue
        if found:
            assert [row["done_ns"] for row in found] == [row["done_ns"] for row in marked], path
        right, none = right + bool(found), none + (not found)
    return right, none


def test_fixtures_without_their_marks():
    right, none = compare([*sorted(FIXTURES.glob("captured/*.gz")), *sorted(FIXTURES.glob("kineto/*.gz"))])
    assert right >= 8 and none > 0


@needs_corpus
def test_corpus_without_its_marks():
    paths = [*CORPUS.glob("kineto/*.gz"), *CORPUS.glob("multirank/*/rank0*.gz"), *CORPUS.glob("nsys/*.sqlite")]
    right, _ = compare(sorted(paths))
    assert right >= 30


def test_lines_of_the_ledger_make_up_each_step(tmp_path):
    rows = table(training([STEP] * 8, pauses={4: "save"}), tmp_path, "step_ledger")
    lines = [name for name in rows[0] if name.startswith(("compute", "exposed_", "idle_"))]
    assert all(sum(row[line] for line in lines) == row["end_ns"] - row["start_ns"] for row in rows)
    assert rows[4]["idle_host_work"] - rows[3]["idle_host_work"] == 300_000_000


def test_a_pause_at_a_rhythm(tmp_path):
    trace = training([STEP] * 18, pauses={5: "save", 10: "save", 15: "save"})
    slow = [row for row in table(trace, tmp_path, "step_ledger") if row["slow"]]
    assert [row["index"] for row in slow] == [5, 10, 15]
    assert {(row["line"], row["rhythm"]) for row in slow} == {("idle.host_work", "every 5th")}
    assert all(row["excess"] == 300_000_000 and "save" in row["reason"] for row in slow)
    result = ta.analyze(ta.load(tmp_path / "trace.json"))
    assert result.steps[0].slow_count == 3
    (finding,) = [f for f in result.findings if f.rule == "STP001"]
    assert finding.message.startswith(
        "3 of 18 steps on GPU 0 are slow, every 5th: 300 ms more each, mostly host work in save"
    )
    assert {e.label.split(":")[0] for e in finding.evidence} == {"step 5", "step 10", "step 15"}


@pytest.mark.parametrize(
    ("count", "pauses"),
    [
        (12, {}),
        (12, {0: "warm-up", 1: "warm-up", 2: "warm-up"}),
        (4, {2: "one of too few"}),
        (12, dict.fromkeys(range(12), "always")),
    ],
    ids=["even", "warm-up", "few", "always"],
)
def test_no_slow_steps(tmp_path, count, pauses):
    rows = table(training([STEP] * count, pauses=pauses), tmp_path, "step_ledger")
    assert len(rows) == count and not any(row["slow"] for row in rows)


def stretches(parts):
    """Start and end of stretches, one after another, from their lengths."""
    bounds = np.cumsum([0, *(length for length, *_ in parts)])
    return bounds[:-1], bounds[1:]


lengths = st.integers(1, 9)


@given(
    st.lists(st.tuples(lengths, st.sampled_from([*LEDGER_LINES[:3], LEDGER_LINES[-1]])), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(-5, 90), st.integers(-5, 90)), max_size=6),
)
def test_the_time_on_each_line_is_what_its_tiles_cover(tiles, asked):
    low, high = stretches(tiles)
    start, end = (np.array([one[at] for one in asked], np.int64) for at in range(2))
    line = np.array([name for _, name in tiles])
    table = pa.table({"line": pa.array(line).dictionary_encode(), "start_ns": low, "end_ns": high})
    expected = [coverage(start, end, (low[line == name], high[line == name])) for name in LEDGER_LINES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_ledger, "BLOCK", 4)
        found = line_times(start, end, table)
    assert found.tolist() == np.array(expected).T.reshape(-1, len(LEDGER_LINES)).tolist()


@given(
    st.lists(
        st.tuples(lengths, st.sampled_from([HOST_WORK, SYNCHRONIZATION]), st.sampled_from(["b", "a", "c", None])),
        min_size=1,
        max_size=20,
    ),
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([HOST_WORK, SYNCHRONIZATION])), max_size=5),
)
def test_the_place_of_a_slow_step_is_that_of_most_of_its_time_on_the_line(gaps, steps):
    low, high = stretches(gaps)
    start, end = stretches(steps)
    names = ["b", "a", "c"]
    place = pa.DictionaryArray.from_arrays(
        pa.array([None if p is None else names.index(p) for *_, p in gaps], pa.int32()), names
    )
    cause = pa.array([line.cause for _, line, _ in gaps]).dictionary_encode()
    table = pa.table({"cause": cause, "place": place, "start_ns": low, "end_ns": high})
    expected = []
    for first, last, (_, line) in zip(start.tolist(), end.tolist(), steps, strict=True):
        inside = [n for n, at in enumerate(low.tolist()) if first <= at < last and gaps[n][1] is line]
        times = {name: sum(gaps[n][0] for n in inside if gaps[n][2] == name) for name in names}
        best = max(times, key=times.__getitem__)
        expected.append(best if times[best] else None)
    assert _places(start, end, [line.name for _, line in steps], table) == expected
