"""The job played again: as it was it takes what it took, and changes give what they must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.made_up_lines import Steps, line_events
from traceanalyzer.analysis import Analysis, analyze_parts, load, parts_of
from traceanalyzer.ranks.replay.play import MARKS, Lines, Scenario, play, play_all
from traceanalyzer.ranks.replay.what_if import JobReplay

FIXTURES = Path(__file__).parents[1] / "fixtures"
JOBS = sorted(
    str(folder.relative_to(FIXTURES)) for part in ("multirank", "jobs") for folder in (FIXTURES / part).iterdir()
)
works = st.integers(0, 100)


@st.composite
def jobs(draw: st.DrawFn) -> list[Steps]:
    shape = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    lines = draw(st.integers(2, 4))
    return [[[(draw(works), draw(works)) for _ in range(n)] for n in shape] for _ in range(lines)]


def _ends(lines: Lines, time: np.ndarray) -> list[int]:
    return [int(value) for value in time[lines.kind == MARKS]]


@given(jobs())
def test_a_job_played_as_it_was_takes_what_it_took(job):
    lines = Lines.of(line_events(job))
    played = play(lines)
    assert played is not None
    assert (played.time == lines.time).all()
    assert not played.delay[lines.meeting[lines.meeting >= 0]].any()


@given(jobs(), st.integers(0, 3))
def test_nobody_is_later_without_a_rank_that_others_waited_for(job, gone):
    lines = Lines.of(line_events(job))
    absent = np.arange(len(lines)) == gone % len(lines)
    (played,) = play_all([Scenario(lines, absent=absent)])
    assert played is not None
    assert (played.time <= lines.time).all()


@given(jobs(), st.floats(0, 1))
def test_less_to_transfer_makes_no_step_longer(job, share):
    replay = JobReplay(line_events(job))
    less, all_of_it = replay.predict([replay.smaller(share), replay.smaller(1.0)])
    assert less is not None
    assert all_of_it is not None
    assert less.then <= all_of_it.then == less.now


@given(jobs())
def test_equal_work_is_the_mean_and_no_more_than_no_waiting_gives(job):
    replay = JobReplay(line_events(job))
    even = replay.balanced()
    assert even is not None
    assert even.then <= even.now
    alone = [play(Lines.of(line_events([line] * 2))) for line in job]
    fastest = min(_mean_step(job, played.time) for played in alone if played)
    assert even.then >= fastest - len(job[0]) * max(map(len, job[0]))


def _mean_step(job: list[Steps], time: np.ndarray) -> float:
    lines = Lines.of(line_events([job[0]] * 2))
    marks = time[(lines.kind == MARKS) & (lines.step >= 0) & (lines.line == 0)]
    return float(np.diff(marks).mean())


def test_ranks_with_equal_work_take_the_mean():
    busy = [[(400, 0)]] * 4
    idle = [[(100, 0)]] * 4
    replay = JobReplay(line_events([busy, idle, idle, idle]))
    even, gone = replay.balanced(), replay.without((0, 0))
    assert even is not None
    assert gone is not None
    assert (even.now, even.then) == (410, 185)
    assert (gone.now, gone.then) == (410, 110)


def test_transfers_that_nobody_waits_for_cost_nothing():
    replay = JobReplay(line_events([[[(100, 0)]] * 3] * 2, transfer=50))
    hidden, half = replay.predict([replay.hiding(), replay.smaller(0.5)])
    assert hidden is not None
    assert half is not None
    assert (hidden.now, hidden.then, half.then) == (150, 100, 125)


@given(st.lists(jobs(), min_size=2, max_size=4))
def test_scenarios_played_at_once_are_as_played_alone(several):
    scenarios = [Scenario(Lines.of(line_events(job)), balanced=at % 2 == 1) for at, job in enumerate(several)]
    for scenario, together in zip(scenarios, play_all(scenarios), strict=True):
        (alone,) = play_all([scenario])
        assert alone is not None
        assert together is not None
        for column in ("time", "ends", "state", "before", "delay", "last"):
            assert (getattr(alone, column) == getattr(together, column)).all(), column


def test_lines_that_wait_for_each_other_in_a_circle_are_not_played():
    table = line_events([[[(10, 0), (10, 0)]]] * 2)
    first = table.slice(0, 6)
    # The second line has the two collectives the other way around.
    turned = table.slice(6, 6).take(pa.array([2, 3, 0, 1, 4, 5]))
    assert play(Lines.of(pa.concat_tables([first, turned]))) is None
    circle = JobReplay(pa.concat_tables([first, turned]))
    assert circle.predict([circle.hiding()]) == [None]


@pytest.fixture(scope="module", params=JOBS)
def analysis(request: pytest.FixtureRequest) -> Analysis:
    return analyze_parts(parts_of(load([FIXTURES / request.param])))


def test_recorded_jobs_are_played_as_they_were(analysis):
    replay = analysis.result.job.replay
    assert replay is not None
    assert replay.error <= 0.01
    assert all(one.step_ns <= replay.step_ns for one in replay.without)
