"""Jobs as StragglerAnalysis publishes them, made up, as the benchmark plays them: what steps take is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.straggler_jobs import Operations, delays, planned, transfers
from benchmarks.stragglers import Job

# (kind, number, when it starts, when it ends) of each worker, by (rank, stage).
Worker = list[tuple[str, int, int, int]]


def _operations(workers: dict[tuple[int, int], Worker], steps: int = 1) -> Operations:
    rows = [
        (step, rank, stage, kind, number, start, end)
        for step in range(steps)
        for (rank, stage), worker in sorted(workers.items())
        for kind, number, start, end in sorted(worker)
    ]
    step, rank, stage, kind, number, start, end = zip(*rows, strict=True)
    numbers = (np.array(column, np.int64) for column in (step, rank, stage, 2 * np.array(rank) + np.array(stage)))
    return Operations(*numbers, np.array(kind), *(np.array(column, np.int64) for column in (number, start, end)))


def _alone(forward: int, done: int) -> Worker:
    """Of two ranks without a pipeline, one that computes so long forwards, and 100 backwards; all have done so at `done`."""
    own = 10 + forward + 100
    return [
        ("params-all-gather", 0, 0, 10),
        ("forward-compute", 0, 10, 10 + forward),
        ("backward-compute", 0, 10 + forward, own),
        ("gc", 0, own, own),
        ("layernorm-grads-all-reduce", 0, own, own),
        ("grads-reduce-scatter", 0, own, done + 20),
        ("optimizer-clip-main-grad", 0, done + 20, done + 25),
        ("optimizer", 0, done + 25, done + 35),
    ]


def test_the_slowest_rank_sets_the_step_and_the_mean_what_it_could_be():
    job = Job("made up", _operations({(0, 0): _alone(100, 310), (1, 0): _alone(200, 310)}, steps=3))
    assert job.recorded.tolist() == job.played.tolist() == job.played_as_recorded.tolist() == [345] * 3
    assert job.without_stragglers.tolist() == [345 - 50] * 3
    slow, fast = (job.only(job.operations.rank == rank) for rank in (1, 0))
    # The ideal of the one is slower than the other is.
    assert (slow, fast) == (345 / 295, 1.0)
    assert job.recovered(job.operations.rank == 1) == 1.0


def _stage(first: bool, forward: int, backward: int, pause: int, send: int = 4) -> Worker:
    """Of two stages with one batch; a message takes `send`, and the first is sent after a `pause`."""
    sent = forward + pause + send
    back = sent + forward + backward
    arrived = back + send
    own: Worker
    if first:
        own = [
            ("params-all-gather", 0, 0, 0),
            ("forward-compute", 0, 0, forward),
            ("forward-send", 0, forward + pause, sent),
            ("backward-recv", 0, 0, arrived),
            ("backward-compute", 0, arrived, arrived + backward),
        ]
    else:
        own = [
            ("params-all-gather", 0, 0, 0),
            ("forward-recv", 0, 0, sent),
            ("forward-compute", 0, sent, sent + forward),
            ("backward-compute", 0, sent + forward, back),
            ("backward-send", 0, back, arrived),
        ]
    now, done = (arrived + backward if first else back), arrived + backward
    own += [("gc", 0, now, now), ("layernorm-grads-all-reduce", 0, now, now)]
    own += [("embedding-grads-all-reduce", 0, now, done + 3), ("grads-reduce-scatter", 0, done + 3, done + 5)]
    return [*own, ("optimizer-clip-main-grad", 0, done + 5, done + 6), ("optimizer", 0, done + 6, done + 8)]


@pytest.mark.parametrize("pause", [0, 9])
def test_stages_wait_for_messages_and_a_pause_before_one_is_the_hosts(pause):
    operations = _operations({(0, stage): _stage(stage == 0, 50, 70, pause) for stage in (0, 1)})
    job = Job("made up", operations)
    took = 50 + 4 + 50 + 70 + 4 + 70 + 8
    assert job.played.tolist() == [took]
    assert job.recorded.tolist() == job.played_as_recorded.tolist() == [took + pause]
    sends = operations.kind == "forward-send"
    assert delays(operations, planned(operations))[sends].tolist() == [pause]
    moved = np.char.endswith(operations.kind, "-send") | np.char.endswith(operations.kind, "-recv")
    assert transfers(operations, planned(operations))[moved].tolist() == [4] * 4


def test_workers_that_do_not_do_the_same_are_refused():
    workers = {(0, 0): _alone(100, 310), (1, 0): [*_alone(200, 310)[:-1], ("other", 0, 335, 345)]}
    with pytest.raises(ValueError, match="not all workers"):
        planned(_operations(workers))
