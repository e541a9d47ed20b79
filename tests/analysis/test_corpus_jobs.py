"""Every complete job at hand: its communication is matched, played again it takes what it took, and its path adds up."""

from __future__ import annotations

import pytest

from tests.support.places import CORPUS
from traceanalyzer.analysis import analyze, load
from traceanalyzer.result.document import Result

FOLDERS = ("multirank", "evidence/jobs", "public/kineto_multirank")
JOBS = sorted(
    str(job.relative_to(CORPUS)) for part in FOLDERS if (CORPUS / part).is_dir() for job in (CORPUS / part).iterdir()
)


@pytest.fixture(scope="module", params=[job for job in JOBS if (CORPUS / job).is_dir()])
def result(request: pytest.FixtureRequest) -> Result:
    return analyze(load(CORPUS / request.param))


def test_communication_that_all_ranks_recorded_is_matched(result):
    assert result.job is not None
    assert result.job.matched_share >= 0.98


def test_a_job_played_again_takes_what_it_took(result):
    assert result.job is not None
    replay = result.job.replay
    assert replay is not None
    assert replay.error <= 0.01
    would = [one.step_ns for one in replay.without]
    would += [step for step in (replay.balanced_step_ns, replay.overlapped_step_ns, replay.half_volume_step_ns) if step]
    assert all(0 < step <= replay.step_ns for step in would)


def test_waiting_and_transfer_add_up(result):
    for device in result.devices:
        parts = device.exposed_wait_ns, device.exposed_transfer_ns
        assert parts == (None, None) or sum(part or 0 for part in parts) == device.exposed_communication_ns


def test_the_critical_path_adds_up_and_gives_no_more_than_its_links(result):
    path = result.critical_path
    assert path is not None or all(one.count < 2 for one in result.steps)
    if path is not None:
        assert sum(link.ns for link in path.links) + path.left_ns == sum(kind.ns for kind in path.kinds) == path.ns
        assert all(link.gain_ns is None or 0 <= link.gain_ns <= link.ns for link in path.links)
