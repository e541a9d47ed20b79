"""What a memory snapshot tells, of programs told by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.snapshot_program import MiB, Program, line
from tests.support.comparisons import capture
from traceanalyzer.derive.ledger.tables import GAPS, LEDGER
from traceanalyzer.derive.memory.tables import MEMORY_GROWTH, MEMORY_STATS
from traceanalyzer.evidence.memory_snapshot.answers.drawing import (
    kept_moments,
    snapshot_lanes,
    snapshot_levels,
    snapshot_paths,
)
from traceanalyzer.evidence.memory_snapshot.answers.failures import snapshot_ooms
from traceanalyzer.evidence.memory_snapshot.answers.growth import step_memory
from traceanalyzer.evidence.memory_snapshot.answers.history import curve
from traceanalyzer.evidence.memory_snapshot.answers.judged import Judged, judged_histories
from traceanalyzer.evidence.memory_snapshot.answers.peaks import snapshot_memory, snapshot_moments, snapshot_owners
from traceanalyzer.evidence.memory_snapshot.answers.periods import period_of
from traceanalyzer.evidence.memory_snapshot.answers.reserve import device_memory, snapshot_traffic
from traceanalyzer.model.placed import PLACED
from traceanalyzer.model.schema import API_CALLS, DEVICES, STEPS
from traceanalyzer.result.captures.capture import Value
from traceanalyzer.result.comparing.figures import figure_changes, figures_headline

Tables = dict[str, pa.Table]
NN = [("/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 134, "forward", False)]
ADAM = [("/venv/lib/python3.12/site-packages/torch/optim/adam.py", 178, "_init_group", False)]
MOVED = [("/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1370, "_apply", False)]
LOSS = [("/venv/lib/python3.12/site-packages/torch/nn/functional.py", 3504, "cross_entropy", False)]


def judged(tables: Tables, steps: pa.Table | None = None) -> list[Judged]:
    names = ("blocks", "events", "totals", "frames", "annotations")
    return judged_histories(*(tables[f"snapshot_{name}"] for name in names), STEPS.empty() if steps is None else steps)


def growth(tables: Tables) -> list[dict[str, Any]]:
    return step_memory(MEMORY_GROWTH.empty(), judged(tables), DEVICES.empty()).to_pylist()


def memory(tables: Tables) -> list[dict[str, Any]]:
    return snapshot_memory(judged(tables), DEVICES.empty()).to_pylist()


def owners(tables: Tables) -> list[dict[str, Any]]:
    return snapshot_owners(judged(tables)).to_pylist()


def training(steps: int = 6, keep: int = 0, marked: bool = True, program: Program | None = None) -> Program:
    """Parameters, optimizer state made in the first step, activations, and `keep` bytes a step that a list holds."""
    it = program or Program()
    it.alloc(10 * MiB, MOVED + line("train.py", 3, "model"))
    for step in range(steps):
        it.begin(marked)
        activations = [it.alloc(4 * MiB, NN + line("train.py", 10)) for _ in range(3)]
        if keep:
            it.alloc(keep, line("train.py", 11))
        gradient = it.alloc(10 * MiB)
        it.free(*activations)
        if not step:
            it.alloc(20 * MiB, ADAM + line("train.py", 12))
        it.free(gradient)
    return it


def test_a_list_keeps_one_block_a_step():
    rows = growth(training(keep=2 * MiB).tables())
    assert [row["growth"] for row in rows[1:]] == [2 * MiB] * 5
    assert {row["place"] for row in rows} == {"train.py:11 (step)"}
    assert {row["held"] for row in rows} == {6}
    assert all(row["lasting"] and row["stepwise"] for row in rows)
    assert memory(training(keep=2 * MiB).tables())[0]["rising"]


def test_optimizer_state_of_the_first_step_is_no_growth():
    rows = growth(training().tables())
    assert rows[0]["growth"] == 20 * MiB
    assert {row["growth"] for row in rows[1:]} == {0}
    assert not any(row["lasting"] for row in rows)


def test_flat_memory_says_what_stays():
    (row,) = memory(training().tables())
    assert row["flat"] and not row["rising"]
    assert (row["steady"], row["optimizer"], row["parameters"]) == (30 * MiB, 20 * MiB, 10 * MiB)
    assert row["lead"] + row["rest"] == (
        "Memory is flat: of the 30 MiB in use between steps 20 MiB are optimizer state (train.py:12 (step)) and 10 MiB parameters "
        "(train.py:3 (model)). The peak is 52 MiB. How much is reserved is not known"
    )


def test_who_owns_the_peak():
    rows = owners(training().tables())
    told = {(row["place"], row["what"]): (row["peak_bytes"], row["peak_blocks"]) for row in rows}
    assert told == {
        ("train.py:12 (step)", "optimizer state"): (20 * MiB, 1),
        ("train.py:10 (step)", "activations"): (12 * MiB, 3),
        ("train.py:3 (model)", "parameters"): (10 * MiB, 1),
        ("no Python frame (backward)", "backward"): (10 * MiB, 1),
    }
    assert sum(row["peak_bytes"] for row in rows) == memory(training().tables())[0]["peak_allocated"]
    backward = next(row for row in rows if row["what"] == "backward")
    assert backward["alike"] == "train.py:3 (model)"


def test_without_marks_the_sequence_of_allocations_tells_the_steps():
    rows = growth(training(keep=2 * MiB, marked=False).tables())
    assert {row["growth"] for row in rows} == {2 * MiB}
    assert len(rows) >= 3
    assert memory(training(marked=False).tables())[0]["method"] == "repetition"


def test_steps_of_the_trace_on_the_same_clock():
    tables = training(keep=2 * MiB, marked=False).tables()
    found = judged(tables)[0].history
    bounds = np.linspace(2, found.after, 7).astype(int) * 1_000_000
    steps = pa.Table.from_pylist(
        [
            {**dict.fromkeys(STEPS.schema.names), "rank": 0, "start_ns": int(a), "end_ns": int(b)}
            for a, b in pairwise(bounds.tolist())
        ],
        schema=STEPS.schema,
    )
    assert judged(tables, steps)[0].periods.method == "trace"


def test_steps_of_a_trace_at_another_time_are_not_used():
    steps = pa.Table.from_pylist(
        [
            {**dict.fromkeys(STEPS.schema.names), "rank": 0, "start_ns": 10**15 + i, "end_ns": 10**15 + i + 1}
            for i in range(5)
        ],
        schema=STEPS.schema,
    )
    assert judged(training(marked=False).tables(), steps)[0].periods.method == "repetition"


def test_what_is_collected_over_some_steps_and_then_released_is_no_leak():
    it = Program()
    held: list[int] = []
    for step in range(9):
        it.begin()
        it.free(it.alloc(8 * MiB, NN + line("train.py", 10)))
        held.append(it.alloc(2 * MiB, line("metrics.py", 4)))
        if step % 3 == 2:
            it.free(*held)
            held = []
    assert not any(row["lasting"] for row in growth(it.tables()))


def test_a_bounded_queue_that_is_full_is_no_leak():
    it, queue = Program(), []
    for _ in range(10):
        it.begin()
        it.free(it.alloc(8 * MiB, line("train.py", 10)))
        queue.append(it.alloc(2 * MiB, line("queue.py", 4)))
        if len(queue) > 3:
            it.free(queue.pop(0))
    rows = growth(it.tables())
    assert not any(row["lasting"] for row in rows)
    assert rows[-1]["growth"] == 0


def test_a_cache_that_grows_now_and_then():
    it = Program()
    for step in range(12):
        it.begin()
        it.free(it.alloc(8 * MiB, line("serve.py", 10)))
        if step % 2:
            it.alloc(4 * MiB, line("cache.py", 4, "get"))
    rows = growth(it.tables())
    assert {row["place"] for row in rows} == {"cache.py:4 (get)"}
    assert all(row["lasting"] for row in rows)


def test_a_rise_without_steps_is_said_to_have_none():
    it, generator = Program(), np.random.default_rng(1)
    for _ in range(300):
        for place in generator.integers(0, 40, 3).tolist():
            it.free(it.alloc(int(generator.integers(1, 9)) * MiB, line("serve.py", place)))
        if generator.random() < 0.5:
            it.alloc(MiB, line("cache.py", 4, "get"))
    rows = growth(it.tables())
    assert memory(it.tables())[0]["method"] is None
    assert rows and not any(row["stepwise"] for row in rows)
    assert {row["place"] for row in rows} == {"cache.py:4 (get)"}
    assert all(row["growth"] > 0 for row in rows[1:])


def test_a_program_that_loads_is_no_leak():
    it = Program()
    for place in range(300):
        it.alloc((place % 7 + 1) * MiB, line("load.py", place))
    assert growth(it.tables()) == []


def test_the_lost_beginning_is_said():
    it = training()
    it.alloc(50 * MiB, before=True)
    (row,) = memory(it.tables(lost=True))
    assert not row["whole"]
    places = {one["place"]: one["peak_bytes"] for one in owners(it.tables(lost=True))}
    assert places["from before the recorded history"] == 50 * MiB


def test_no_stacks_were_recorded():
    it = Program()
    for _ in range(5):
        it.begin()
        it.free(it.alloc(8 * MiB), it.alloc(8 * MiB))
    assert {row["place"] for row in owners(it.tables())} == {"no stack recorded"}
    assert not memory(it.tables())[0]["placed"]


def test_stacks_of_c_plus_plus():
    engine = [("engine.cpp", 0, "torch::autograd::Engine::thread_main()", False)]
    nccl = [("??", 0, "c10d::ProcessGroupNCCL::broadcast()", False)]
    library = [("/venv/lib/python3.12/site-packages/torch/cuda/graphs.py", 88, "capture", False)]
    it = Program()
    it.alloc(8 * MiB, engine)
    it.alloc(4 * MiB, nccl)
    it.alloc(2 * MiB, library)
    it.alloc(1 * MiB, engine + line("train.py", 3))
    assert [(row["place"], row["what"]) for row in owners(it.tables())] == [
        ("no Python frame (backward)", "backward"),
        ("no Python frame", None),
        ("graphs.py:88 (capture), in a library", None),
        ("train.py:3 (step)", None),
    ]


def test_several_gpus_are_told_apart():
    one, other = training(keep=2 * MiB), training(program=Program(device=1, first_stack=100))
    tables = one.tables(other)
    rows = growth(tables)
    assert {row["device"] for row in rows if row["lasting"]} == {0}
    assert [(row["device"], row["flat"]) for row in memory(tables)] == [(0, False), (1, True)]


def test_a_few_large_blocks_for_a_moment():
    it = Program()
    it.alloc(100 * MiB, MOVED + line("train.py", 3))
    for _ in range(5):
        it.begin()
        logits = it.alloc(200 * MiB, NN + line("train.py", 62))
        cast = it.alloc(400 * MiB, line("train.py", 63))
        softmax = it.alloc(400 * MiB, LOSS + line("train.py", 64))
        backward = [it.alloc(400 * MiB), it.alloc(400 * MiB)]
        it.free(*backward, softmax, cast, logits)
    rows = snapshot_moments(judged(it.tables())).to_pylist()
    first = rows[0]
    assert first["places"] == "train.py:63 (step), train.py:64 (step) and 2 with no Python frame (backward)"
    assert (first["blocks"], first["size"], first["bytes"], first["unplaced"]) == (4, 400 * MiB, 1600 * MiB, 2)
    assert (first["doubled"], first["half"], first["loss"]) == ("train.py:62 (step)", 200 * MiB, True)
    assert (rows[1]["places"], rows[1]["doubled"]) == ("train.py:62 (step)", None)


def test_blocks_that_stay_are_no_moment():
    it = Program()
    it.alloc(500 * MiB, line("train.py", 3))
    for _ in range(5):
        it.begin()
        it.free(it.alloc(20 * MiB, line("train.py", 4)))
    assert snapshot_moments(judged(it.tables())).num_rows == 0


def test_a_gather_is_told():
    gather = [
        ("/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", 9, "all_gather_into_tensor", False)
    ]
    it = Program()
    for _ in range(5):
        it.begin()
        it.free(it.alloc(500 * MiB, gather + line("train.py", 4)))
    (row,) = snapshot_moments(judged(it.tables())).to_pylist()
    assert row["gather"] and not row["loss"]


def fragmenting(grow: bool, free: bool = False) -> Program:
    """Each step takes a segment more, though nothing is kept; or the first step takes all."""
    it = Program()
    for step in range(6):
        it.begin()
        if grow or not step:
            it.event("segment_alloc", 64 * MiB, line("train.py", 7))
        block = it.alloc(32 * MiB, line("train.py", 7))
        it.free(block)
        if free:
            it.event("segment_free", 64 * MiB, line("train.py", 8))
    held = 0 if free else 64 * MiB * (6 if grow else 1)
    it.segment(1 << 30, held, 0, 32 * MiB)
    return it


def device(tables: Tables) -> dict[str, Any]:
    segments = tables["snapshot_segments"]
    (row,) = device_memory(MEMORY_STATS.empty(), judged(tables), segments, DEVICES.empty()).to_pylist()
    return row


def test_reserved_memory_that_grows_though_the_level_is_flat():
    row = device(fragmenting(grow=True).tables())
    assert (row["grows"], row["grown_steps"], row["place"]) == (64 * MiB, 5, "train.py:7 (step)")
    assert (row["peak_reserved"], row["peak_allocated"], row["unused"]) == (384 * MiB, 32 * MiB, 352 * MiB)
    assert row["whole_segments"] == 384 * MiB
    assert row["growing"] == (
        "Each of the last 5 steps takes 64 MiB more from the driver, most of it for train.py:7 (step), though as much is in use "
        "after each"
    )
    settled = device(fragmenting(grow=False).tables())
    assert settled["grows"] is None and settled["growing"] is None


def test_reserved_memory_that_follows_a_peak_is_no_fragmentation():
    it = Program()
    for step in range(6):
        it.begin()
        it.event("segment_alloc", 64 * MiB, line("train.py", 7))
        it.free(*[it.alloc(64 * MiB, line("train.py", 7)) for _ in range(step + 1)])
    assert device(it.tables())["grows"] is None


def test_private_pools_are_not_counted():
    it = fragmenting(grow=False)
    it.reserved_start = 500 * MiB
    it.segment(1 << 40, 500 * MiB, 0, 500 * MiB, pool="0:1")
    row = device(it.tables())
    assert (row["unused"], row["private"], row["whole_segments"]) == (32 * MiB, 500 * MiB, 64 * MiB)


def test_a_trace_speaks_for_gpus_without_a_snapshot():
    stats = pa.Table.from_pylist(
        [{**dict.fromkeys(MEMORY_STATS.schema.names), "rank": 0, "device": d, "peak_reserved": 5} for d in (0, 1)],
        schema=MEMORY_STATS.schema,
    )
    tables = training().tables()
    rows = device_memory(stats, judged(tables), tables["snapshot_segments"], DEVICES.empty()).to_pylist()
    assert [(row["device"], row["snapshot"]) for row in rows] == [(0, True), (1, False)]
    grown = pa.Table.from_pylist(
        [{**dict.fromkeys(MEMORY_GROWTH.schema.names), "rank": 0, "device": 1, "index": 0}], schema=MEMORY_GROWTH.schema
    )
    rows = step_memory(grown, judged(tables), DEVICES.empty()).to_pylist()
    assert {(row["device"], row["snapshot"]) for row in rows} == {(0, True), (1, False)}


def test_who_calls_the_driver_in_settled_steps():
    tables = fragmenting(grow=True, free=True).tables()
    rows = snapshot_traffic(judged(tables), GAPS.empty(), API_CALLS.empty(), PLACED.empty()).to_pylist()
    told = {row["place"]: (row["calls"], row["settled"], row["settled_freed"], row["busy_steps"]) for row in rows}
    assert told == {"train.py:7 (step)": (6, 5, 0, 5), "train.py:8 (step)": (6, 5, 5, 5)}
    assert {row["settled_steps"] for row in rows} == {5}
    assert {row["idle"] for row in rows} == {None}


def full(asked: int, free: int | None, after: bool = False) -> Tables:
    """60 MiB in use of 100 MiB reserved in two segments, 12 and 28 MiB free in one piece each, and a request that fails."""
    it = Program()
    it.event("segment_alloc", 50 * MiB)
    it.event("segment_alloc", 50 * MiB)
    it.alloc(38 * MiB, line("model.py", 9, "forward"), address=1 << 30)
    it.alloc(22 * MiB, line("train.py", 3), address=1 << 40)
    it.event("oom", asked, line("train.py", 41), device_free_bytes=free)
    it.event("oom", asked, line("train.py", 41), device_free_bytes=free)
    if after:
        it.alloc(MiB, line("train.py", 44), address=(1 << 40) + 22 * MiB)
    it.segment(1 << 30, 50 * MiB, 38 * MiB, 12 * MiB)
    it.segment(1 << 40, 50 * MiB, 22 * MiB, 28 * MiB)
    return it.tables()


@pytest.mark.parametrize(
    ("asked", "free", "fit", "fragmented", "limited"),
    [
        (30 * MiB, MiB, "Without fragmentation it would have fitted", True, False),
        (50 * MiB, MiB, "It would not have fitted without fragmentation either: 9 MiB were missing", False, False),
        (30 * MiB, None, "Without fragmentation it would have fitted", True, False),
        (30 * MiB, 40 * MiB, "The device had as much free", False, True),
    ],
)
def test_out_of_memory(asked, free, fit, fragmented, limited):
    tables = full(asked, free)
    (row,) = snapshot_ooms(judged(tables), tables["snapshot_segments"]).to_pylist()
    assert (row["asked"], row["allocated"], row["unused"], row["largest_free"]) == (asked, 60 * MiB, 40 * MiB, 28 * MiB)
    assert row["fit"].startswith(fit)
    assert (row["fragmented"], row["limited"], row["ended"], row["last"], row["times"]) == (
        fragmented,
        limited,
        True,
        True,
        2,
    )
    assert (row["place"], row["owner"], row["owner_bytes"]) == ("train.py:41 (step)", "model.py:9 (forward)", 38 * MiB)


def test_a_program_that_went_on_after_it():
    tables = full(30 * MiB, MiB, after=True)
    (row,) = snapshot_ooms(judged(tables), tables["snapshot_segments"]).to_pylist()
    assert not row["ended"]
    assert row["largest_free"] == 28 * MiB


def test_the_levels_drawn_add_up_to_what_is_in_use():
    tables = training(keep=2 * MiB).tables()
    (one,) = judged(tables)
    rows = snapshot_levels([one])
    times = {}
    for row in rows.to_pylist():
        times.setdefault(row["series"], []).append(row["bytes"])
    total = np.sum(list(times.values()), axis=0)
    assert total.max() == one.history.allocated.peak
    assert total[-1] == one.history.allocated.level[-1]
    paths = snapshot_paths([one], tables["snapshot_frames"]).to_pylist()
    assert sum(row["bytes"] for row in paths) == one.history.allocated.peak
    assert paths[0]["path"][-1] == "adam.py:178 (_init_group)"


def test_the_lanes_of_a_window_begin_with_what_holds_then():
    (one,) = judged(training().tables())
    changes = one.history.allocated
    at = one.history.time_at(changes.entry)
    plain = dict.fromkeys(LEDGER.schema.names, 0) | {"name": None}
    for start, held in ((int(at[5]) + 1, int(changes.level[5])), (int(at[6]), None)):
        window = {**plain, "start_ns": start, "end_ns": int(at[9]) + 1}
        rows = snapshot_lanes(
            [one], pa.Table.from_pylist([window], schema=LEDGER.schema), MEMORY_STATS.empty()
        ).to_pylist()
        told = [(row["time_ns"], row["allocated"]) for row in rows]
        first = [] if held is None else [(start, held)]
        assert told == first + [(int(at[i]), int(changes.level[i])) for i in range(6, 10)]


def test_without_a_history_the_snapshot_speaks():
    it = Program()
    it.alloc(5 * MiB, line("train.py", 3), before=True)
    (row,) = memory(it.tables())
    assert row["lead"] + row["rest"] == (
        "At the snapshot, of which no history was recorded, of 5 MiB in use 5 MiB (100%) come from train.py:3 (step). "
        "How much is reserved is not known"
    )
    assert not row["recorded"]


def test_without_a_history_reserved_is_what_the_snapshot_holds():
    it = Program()
    it.alloc(5 * MiB, line("train.py", 3), before=True)
    tables = it.tables()
    totals = tables["snapshot_totals"].to_pylist()
    tables["snapshot_totals"] = pa.Table.from_pylist(
        [{**totals[0], "reserved_bytes": 8 * MiB}], schema=tables["snapshot_totals"].schema
    )
    (row,) = memory(tables)
    assert (row["peak_reserved"], row["reserved"]) == (8 * MiB, 8 * MiB)
    assert row["rest"].endswith("8 MiB are reserved")


def test_no_snapshot():
    empty = training().tables()
    none = {name: table.slice(0, 0) for name, table in empty.items()}
    assert judged(none) == [] and growth(none) == [] and memory(none) == [] and owners(none) == []
    assert (
        snapshot_moments([]).num_rows
        == snapshot_traffic([], GAPS.empty(), API_CALLS.empty(), PLACED.empty()).num_rows
        == 0
    )
    assert snapshot_ooms([], none["snapshot_segments"]).num_rows == snapshot_levels([]).num_rows == 0


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=500), st.integers(1, 40))
def test_moments_keep_extremes(deltas, stretches):
    level = curve(np.arange(len(deltas)), np.array(deltas), 1000)
    kept = kept_moments(level, stretches)
    assert (np.diff(kept) > 0).all()
    assert level.at(kept).max() == level.level.max()
    assert level.at(kept).min() == level.level.min()
    assert level.at(kept)[-1] == level.level[-1]
    assert len(kept) <= 3 * stretches + 3


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(3, 6), st.lists(st.integers(9, 12), max_size=20)
)
def test_a_sequence_that_repeats_is_found(period, times, before):
    found = period_of(np.array([*before, *period * times]))
    assert found is not None and found <= len(period)


@given(st.lists(st.integers(0, 50), unique=True, max_size=50))
def test_what_never_repeats_has_no_period(tokens):
    assert period_of(np.array(tokens, np.int64)) is None


def test_comparing_says_whose_memory_grew():
    sides = [
        {"peak": 113, "growth": 0, "peak[a.py:1 (step)]": 65, "peak[b.py:2 (step)]": 48},
        {"peak": 257, "growth": 16, "peak[a.py:1 (step)]": 65, "peak[c.py:3 (step)]": 192},
    ]
    base, new = (
        capture(metrics={f"memory_snapshot.{name}": Value(value * MiB, "bytes") for name, value in held.items()})
        for held in sides
    )
    changes = figure_changes(base, new)
    assert [(one.name.partition(".")[2], one.base, one.new) for one in changes] == [
        ("peak", 113 * MiB, 257 * MiB),
        ("peak[c.py:3 (step)]", 0, 192 * MiB),
        ("peak[b.py:2 (step)]", 48 * MiB, 0),
        ("growth", 0, 16 * MiB),
    ]
    assert figures_headline(changes).startswith("How much more memory each step leaves in use on one GPU: 16 MiB")
