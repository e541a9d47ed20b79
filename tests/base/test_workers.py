"""Work in other processes: results in order, errors as they are, and one line for workers that are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.support.kineto import KinetoTrace
from traceanalyzer.errors import InputError, WorkerError
from traceanalyzer.workers import WORTH_BYTES, jobs_for, map_parts, processes_for, workers


def work(item: int) -> int:
    """Ends soonest for what comes last."""
    time.sleep(0.02 * (4 - item))
    return item * item


def fail_at_two(item: int) -> int:
    if item == 2:
        raise InputError("two.json: cannot be read")
    return item


def die_at_one(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_results_are_in_order_and_errors_arrive(jobs):
    done: list[None] = []
    with workers(jobs) as executor:
        assert (executor is None) == (jobs != 2)
        assert map_parts(executor, work, range(5), lambda: done.append(None)) == [0, 1, 4, 9, 16]
        assert len(done) == 5
        with pytest.raises(InputError, match=r"^two\.json: cannot be read$"):
            map_parts(executor, fail_at_two, range(5))
        assert map_parts(executor, work, []) == []


def test_a_worker_that_is_killed_is_one_line():
    with workers(2) as executor, pytest.raises(WorkerError, match=r"file 1.*was killed at .*memory") as caught:
        map_parts(executor, die_at_one, range(40), name=lambda item: f"file {item}")
    assert "\n" not in str(caught.value) and "file 5" not in str(caught.value)


def test_processes_are_for_what_is_worth_them(monkeypatch):
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 8)
    assert jobs_for([]) == jobs_for([900_000] * 8) == jobs_for([1 << 40]) == 1
    assert jobs_for([900_000] * 512) == 8
    assert jobs_for([WORTH_BYTES] * 3) == 3


def test_copies_hold_no_more_than_fits(monkeypatch):
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 64)
    assert processes_for([]) == processes_for([5 << 20] * 64) == 16
    assert processes_for([5 << 20, 300 << 20]) == 3
    assert processes_for([3 << 30] * 2) == 1
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 2)
    assert processes_for([5 << 20] * 64) == 2


def test_no_more_processes_than_files(monkeypatch):
    """A process of a cluster takes seconds to start, so that many without work may end in a timeout."""
    monkeypatch.setattr("traceanalyzer.workers.cpus", lambda: 8)
    assert jobs_for([1] * 4, 99) == jobs_for([1] * 4, 99, "local") == jobs_for([1] * 4, None, "local") == 4
    assert jobs_for([1] * 512, None, "local") == 8
    assert jobs_for([1], 2) == 1


@pytest.mark.parametrize(("address", "words"), [("somewhere", "neither an address"), ("x://y", "no Dask scheduler")])
def test_an_address_that_is_none_is_refused(address, words):
    with pytest.raises(WorkerError, match=words), workers(2, address):
        pass


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkerError, match=r'pip install "traceanalyzer\[cluster\]"'), workers(scheduler="local"):
        pass
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    from traceanalyzer.ingest.storing import find_inputs

    with pytest.raises(InputError, match=r's3://b/x: .*pip install "traceanalyzer\[cluster\]"'):
        find_inputs(["s3://b/x"])


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_workers_too(tmp_path, stop):
    """A terminal interrupts all processes at once; what ends a job may know only the first."""
    (tmp_path / "in").mkdir()
    for rank in range(2):
        made = KinetoTrace()
        for n in range(100_000):
            made.op(2 * n, 2 * n + 1)
        made.write(tmp_path / "in" / f"rank{rank}.json")
    command = [sys.executable, "-m", "traceanalyzer", "ingest", tmp_path / "in", "-o", tmp_path / "s", "-j", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(600):
        if list(tmp_path.glob(".s.parts/*/rows")):  # both sides are at work
            break
        time.sleep(0.05)
    (os.killpg if stop == signal.SIGINT else os.kill)(process.pid, stop)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + stop and b"Traceback" not in said
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.killpg(process.pid, 0)
            time.sleep(0.05)
    assert not (tmp_path / "s").exists() and not list(tmp_path.glob(".s.parts/*-*"))
