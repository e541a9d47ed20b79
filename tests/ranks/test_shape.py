"""The shape of a job: what exposed communication is made of, whether lateness is anyone's doing, stages of a pipeline, hosts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.analysis import analyze
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.ledger.tables import LEDGER_INTERVALS
from traceanalyzer.derive.steps.tables import STEP_LEDGER
from traceanalyzer.model.schema import PROCESSES
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.shape.hosts import hosts_of
from traceanalyzer.ranks.shape.lateness import PATTERNS, Patterns, patterns
from traceanalyzer.ranks.shape.noise import expected_wait
from traceanalyzer.ranks.shape.stages import interleaved, stages_of, uneven_words
from traceanalyzer.result.document import Result

MS = 1_000_000
STRAGGLER = FIXTURES / "multirank" / "gpu_straggler.slow"
PIPELINE = FIXTURES / "multirank" / "pipeline_bubble.slow"


def of_arrivals(arrivals: np.ndarray, steps: np.ndarray | None = None) -> tuple[Patterns, np.ndarray]:
    """The patterns of a job whose ranks (columns) come to one collective a step (rows) at these times in ns, and the waits."""
    count, ranks = arrivals.shape
    last = arrivals.max(axis=1, keepdims=True)
    instance = np.repeat(np.arange(count), ranks)
    step = instance if steps is None else np.repeat(steps, ranks)
    late = np.repeat(arrivals.argmax(axis=1), ranks)
    waits = (last - arrivals).ravel()
    return patterns(instance, step, np.tile(np.arange(ranks), count), late, waits), waits


def shares(found: Patterns, waits: np.ndarray) -> dict[str, float]:
    return {name: float(waits[found.pattern == at].sum() / waits.sum()) for at, name in enumerate(PATTERNS)}


@pytest.mark.parametrize("ranks", [2, 4, 64])
@pytest.mark.parametrize("steps", [4, 12])
def test_noise_blames_nobody_and_a_straggler_is_found(ranks: int, steps: int) -> None:
    random = np.random.default_rng(ranks * steps)
    blamed = 0
    for _ in range(60):
        noise = random.integers(0, 12 * MS, (steps, ranks))
        blamed += bool(of_arrivals(noise)[0].late)
        slow = noise + np.where(np.arange(ranks) == 1, 40 * MS, 0)
        (late,) = of_arrivals(slow)[0].late
        assert late.gpu == 1 and late.led == late.occasions == steps
    assert blamed <= 8


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([12.2, 19.0, 16.2], "persistent"),
        ([1.2, 9.2, 9.5, 9.7], "persistent"),  # the recording begins within the first step
        ([0.1, 1.4, 1.8], "jitter"),
        ([1.0, 1.2, 0.9, 1.1, 1.3, 450.0], "rare"),
        ([5.0, 8.0], None),
    ],
)
def test_what_one_of_two_ranks_causes_in_every_step(waits: list[float], expected: str | None) -> None:
    arrivals = np.column_stack((np.zeros(len(waits)), waits)) * MS
    found, waited = of_arrivals(arrivals.astype(np.int64))
    most = {name: share for name, share in shares(found, waited).items() if share >= 0.5}
    assert list(most) == ([expected] if expected else [])


def test_a_first_step_in_which_another_one_is_late_hides_no_straggler() -> None:
    arrivals = np.array([[4, 0], [0, 40], [0, 44], [0, 44]]) * MS
    found, _ = of_arrivals(arrivals)
    assert [(late.gpu, late.led, late.occasions) for late in found.late] == [(1, 3, 4)]


def test_groups_are_judged_apart() -> None:
    """Of two groups of two one has a straggler."""
    random = np.random.default_rng(5)
    noise = random.integers(0, MS, (8, 4))
    noise[:, 3] += 20 * MS
    instance = np.repeat(np.arange(16), 2)
    gpu = np.tile([0, 1, 2, 3], 8)
    halves = noise.reshape(16, 2)
    late = np.repeat(halves.argmax(axis=1), 2) + np.where(np.repeat(np.arange(16) % 2, 2), 2, 0)
    waits = (halves.max(axis=1, keepdims=True) - halves).ravel()
    found = patterns(instance, np.repeat(np.arange(8), 4), gpu, late, waits)
    assert [one.gpu for one in found.late] == [3]
    assert set(found.pattern[gpu < 2].tolist()) == {PATTERNS.index("jitter")}


def test_without_steps_each_collective_counts_and_what_does_not_match_has_no_pattern() -> None:
    arrivals = np.array([[0, 10 * MS]] * 6)
    found, _ = of_arrivals(arrivals, np.full(6, NULL))
    assert found.occasions == 6 and [late.gpu for late in found.late] == [1]
    nothing = patterns(*(np.array([NULL, NULL]) for _ in range(5)))
    assert nothing.pattern.tolist() == [NULL, NULL] and nothing.late == []


@given(st.integers(2, 5), st.integers(1, 8), st.randoms(use_true_random=False))
def test_names_of_gpus_do_not_matter(ranks: int, steps: int, random: object) -> None:
    seed = random.randrange(1 << 30)  # type: ignore[attr-defined]
    arrivals = np.random.default_rng(seed).permutation(ranks * steps).reshape(steps, ranks) * MS
    order = np.random.default_rng(seed).permutation(ranks)
    found, waits = of_arrivals(arrivals)
    other, others = of_arrivals(arrivals[:, order])
    assert shares(found, waits) == pytest.approx(shares(other, others))
    assert {late.gpu for late in found.late} == {int(order[late.gpu]) for late in other.late}


def test_waiting_of_noise_is_that_of_all_combinations() -> None:
    own = np.array([[10.0, 12, 17], [5, 5, 8], [7, 9, np.nan], [1, 2, 4]])
    left = [row - np.median(row) for row in own[[0, 1, 3]]]  # the third has too few steps
    expected = np.mean([3 * max(several) - sum(several) for several in product(*left)]) * 3
    assert expected_wait(own) == round(expected)
    assert expected_wait(own[:1]) is None and expected_wait(own[:, :2]) is None


@pytest.fixture(scope="module")
def straggler() -> Result:
    return analyze(ta.load(STRAGGLER))


@pytest.fixture(scope="module")
def pipeline() -> Result:
    return analyze(ta.load(PIPELINE))


@pytest.mark.parametrize("job", ["straggler", "pipeline"])
def test_exposed_communication_is_waiting_and_transfer(job: str, request: pytest.FixtureRequest) -> None:
    result: Result = request.getfixturevalue(job)
    for one in result.devices:
        assert one.exposed_wait_ns is not None and one.exposed_transfer_ns is not None
        assert one.exposed_wait_ns + one.exposed_transfer_ns == one.exposed_communication_ns
    assert result.job
    assert sum(axis.exposed_ns for axis in result.job.axes) == sum(
        one.exposed_communication_ns for one in result.devices
    )
    for axis in result.job.axes:
        assert axis.wait_ns is not None and axis.transfer_ns is not None and axis.wait_share is not None
        assert axis.wait_ns + axis.transfer_ns == axis.exposed_ns
        assert axis.wait_per_step_ns is not None and axis.transfer_per_step_ns is not None
        assert axis.wait_per_step_ns + axis.transfer_per_step_ns == axis.exposed_per_step_ns


def test_one_rank_alone_is_not_parted() -> None:
    (one,) = analyze(ta.load(next(STRAGGLER.glob("rank1.*")))).devices
    assert one.exposed_communication_ns and one.exposed_wait_ns is None and one.exposed_transfer_ns is None


def test_a_straggler_is_late_in_every_step(straggler: Result) -> None:
    assert straggler.job and straggler.job.lateness
    told = straggler.job.lateness
    assert told.waited_ns == told.persistent_ns + told.rare_ns + told.jitter_ns + told.untold_ns
    assert told.persistent_ns >= 0.99 * told.waited_ns and not told.is_jitter
    (late,) = told.ranks
    assert (late.rank, late.led_count, late.step_count) == (2, 3, 3) and late.chance < 0.001


def test_axes_of_a_pipeline_and_its_stages(pipeline: Result) -> None:
    job = pipeline.job
    assert job and job.pipeline
    assert [axis.parallelism for axis in job.axes] == ["pipeline parallel", "synchronization"]
    assert (job.pipeline.stages, job.pipeline.micro_batches, job.pipeline.schedule_share) == (4, 1, 0.75)
    assert job.pipeline.interleaved is False and not job.pipeline.uneven
    assert 0.6 < job.pipeline.wait_share <= job.pipeline.empty_share < 0.8


def test_lines_of_steps_add_up(straggler: Result) -> None:
    assert straggler.job
    for row in straggler.job.steps.rows:
        for at, step in enumerate(row.step_ns):
            assert step is None or sum(times[at] or 0 for times in row.lines_ns.values()) == step
    assert straggler.job.steps.lines_left == []


def steps_of(rank: int, compute: int, exposed: int) -> list[dict[str, object]]:
    """Three steps of 10 ms, and one of which the recording lacks a part."""
    return [
        {
            "rank": rank,
            "device": 0,
            "index": n,
            "start_ns": n * 10 * MS,
            "end_ns": (n + 1) * 10 * MS,
            "compute": compute,
        }
        | {"exposed_communication": exposed, "idle_host_work": 10 * MS - compute - exposed, "complete": n > 0}
        for n in range(4)
    ]


def test_a_stage_with_more_to_compute_and_what_equal_ones_would_take() -> None:
    rows = [*steps_of(0, 9 * MS, MS // 2), *steps_of(1, 3 * MS, 7 * MS)]
    tiles = [
        {
            "rank": 1,
            "device": 0,
            "line": "exposed_communication",
            "start_ns": n * 10 * MS,
            "end_ns": n * 10 * MS + 6 * MS,
        }
        for n in range(4)
    ]
    found = stages_of(
        np.array([0, 1]),
        pa.Table.from_pylist(rows, schema=STEP_LEDGER.schema),
        pa.Table.from_pylist(tiles, schema=LEDGER_INTERVALS.schema),
    )
    assert found is not None and found.uneven and found.gpus == [(0, 0), (1, 0)]
    assert found.compute.tolist() == [9 * MS, 3 * MS] and found.wait.tolist() == [0, 6 * MS]
    assert found.balanced_step == 7 * MS and found.uneven_share == 1
    assert uneven_words(found, ["rank 0", "rank 1"]) == (
        "Rank 1 waits 6 ms of each 10 ms step for rank 0, which computes 9 ms of it, rank 1 3 ms: "
        "the stages of the pipeline are uneven. "
        "Equal ones would take about 7 ms a step."
    )
    assert (
        stages_of(np.array([0]), pa.Table.from_pylist(rows, schema=STEP_LEDGER.schema), LEDGER_INTERVALS.empty())
        is None
    )


@pytest.mark.parametrize(
    ("peers", "group", "expected"),
    [
        ([(0, 1), (1, 2), (2, 3), (3, 2)], "[0, 1, 2, 3]", False),
        ([(0, 1), (3, 0)], "[0, 1, 2, 3]", True),
        ([(4, 6), (6, 8), (8, 4)], "[4, 6, 8]", True),
        ([(0, 1), (1, 0)], "[0, 1]", None),
        ([(0, 1)], None, None),
        ([(0, 1)], "no list", None),
    ],
)
def test_whether_ranks_have_several_stages(
    peers: list[tuple[int, int]], group: str | None, expected: bool | None
) -> None:
    ranks, others = np.array(peers).T
    assert interleaved(ranks, others, [group] * len(peers)) is expected


def recorded(*rows: tuple[int, int, str | None]) -> pa.Table:
    names = ("rank", "pid", "host")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=PROCESSES.schema)


def on(path: str, rank: int) -> Input:
    return Input(path, "", 0, "kineto", "", rank, 4, rank, None)


def test_hosts_are_numbers_by_their_lowest_rank() -> None:
    inputs = [on(f"r{rank}.json", rank) for rank in range(4)]
    said = recorded((0, 1, "zeta"), (1, 1, "alpha"), (2, 2, "zeta"), (3, 2, "alpha"))
    assert hosts_of(said, inputs) == {0: 1, 1: 2, 2: 1, 3: 2}
    assert hosts_of(recorded((0, 1, "zeta"), (1, 1, None), (2, 2, "zeta"), (3, 2, "zeta")), inputs) == {}


def test_the_name_that_pytorch_gives_a_trace_tells_its_host() -> None:
    named = [on(f"node{rank}_{40 + rank}.1699999999999.pt.trace.json", rank) for rank in range(2)]
    assert hosts_of(recorded((0, 40, None), (1, 41, None)), named) == {0: 1, 1: 2}
    assert hosts_of(recorded((0, 40, None), (1, 7, None)), named) == {}
