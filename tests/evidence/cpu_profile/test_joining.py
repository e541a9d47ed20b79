"""A profile on the clock of its trace: its samples name the idle time of the launching thread, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.cli.test_cli import run as run_cli
from tests.evidence.cpu_profile import makers as make
from tests.support.kineto import KinetoTrace
from traceanalyzer.evidence.cpu_profile.joining import _sampled, fits
from traceanalyzer.model.trace import Trace

EPOCH = 1_795_884_000 * 10**9
STEPS, STEP_US = 20, 10_000
PERIOD_US = 500


def trace(path: Path, base: int | None = EPOCH, pid: int = 100) -> Path:
    """A kernel of 1 ms every 10 ms, launched just before; in between the launching thread records nothing."""
    made = KinetoTrace()
    for n in range(STEPS):
        at = n * STEP_US
        made.op(at, at + 1000, launch=(at - 20, at - 15))
    if base is not None:
        made.metadata["baseTimeNanoseconds"] = base
    for event in made.events:
        if event["pid"] == 100:
            event["pid"] = event["tid"] = pid
    return made.write(path)


def samples() -> list[make.Stack]:
    """Of each 10 ms the last 8 in merge, and 2 in step."""
    found: list[make.Stack] = []
    for n in range(STEPS * STEP_US // PERIOD_US):
        inside = n * PERIOD_US % STEP_US
        found.append(make.WORK if inside >= 2000 else (make.MAIN, make.STEP))
    return found


def profile(path: Path, start: int = EPOCH, **more: Any) -> Path:
    return make.write(path, make.speedscope(samples(), PERIOD_US * 1000, start, **more))


@pytest.fixture
def run(tmp_path: Path, capsysbinary: Any) -> Any:
    def analyze(*arguments: object) -> dict[str, Any]:
        out = tmp_path / "result.json"
        code, _, errors = run_cli(capsysbinary, "analyze", *arguments, "-f", "json", "-o", out)
        assert code == 0, errors
        return json.loads(out.read_text())  # type: ignore[no-any-return]

    return analyze


def test_samples_on_the_clock_name_idle_time(tmp_path, run):
    found = run(trace(tmp_path / "t.json"), profile(tmp_path / "p.json"))
    (own,) = found["evidence"]
    assert (own["clock"], own["shift_ns"]) == ("epoch", 0)
    assert found["verdict"]["headline"].startswith("tokenize → merge (data.py:17) leaves GPU 0 idle ")
    assert found["findings"][0]["rule"] == "HST001"
    assert "CPU samples put" in found["findings"][0]["message"]


def test_an_offset_does_the_same(tmp_path, run):
    given = trace(tmp_path / "t.json"), profile(tmp_path / "p.json", start=0)
    none = run(*given)
    (own,) = none["evidence"]
    assert own["shift_ns"] is None and own["placed_by"]
    assert "merge (data.py:17)" not in none["findings"][0]["message"]
    found = run(*given, "--offset", "p.json=0ms")
    assert found["evidence"][0]["clock"] == "--offset"
    assert "merge (data.py:17)" in found["verdict"]["headline"]
    late = run(*given, "--offset", "p.json=+10s")
    assert "merge" not in late["findings"][0]["message"]


def idle(tmp_path: Path, *paths: Path) -> tuple[pa.Table, pa.Table, pa.Table]:
    import traceanalyzer as ta
    from traceanalyzer.analysis import parts_of
    from traceanalyzer.analysis.evidence import place_evidence
    from traceanalyzer.config import Config

    loaded = ta.load(list(paths))
    (part,) = place_evidence(parts_of(loaded), Config(), None, {}).traces
    catalog = part.catalog(Config())
    return catalog.table("call_trees"), catalog.table("cpu_clock"), catalog.table("ledger")


@pytest.mark.parametrize("form", ["speedscope", "viztracer", "pprof"])
def test_the_idle_tree_adds_up_to_the_sampled_idle_time(tmp_path, form):
    path = tmp_path / "p"
    if form == "speedscope":
        profile(path)
    elif form == "pprof":
        make.write(path, make.pprof(samples(), PERIOD_US * 1000, EPOCH))
    else:
        calls = []
        for n in range(STEPS):
            own = {"cat": "FEE", "ph": "X", "pid": 100, "tid": 100}
            calls.append(own | {"ts": n * STEP_US + 2000.0, "dur": 8000.0, "name": "merge (data.py:17)"})
            calls.append(own | {"ts": float(n * STEP_US), "dur": STEP_US - 0.001, "name": "step (train.py:45)"})
        data = make.viztracer(base=EPOCH)
        data["traceEvents"] = calls
        make.write(path, data)
    trees, clock, ledger = idle(tmp_path, trace(tmp_path / "t.json"), path)
    nodes = [row for row in trees.to_pylist() if row["tree"] == "idle"]
    sampled = sum(row["self_ns"] for row in nodes if row["kind"] == "sample")
    (told,) = clock.to_pylist()
    assert told["on_clock"] and told["gap"] is None
    assert told["idle"] == ledger["idle"].to_pylist()[0]
    # What the tree shows is what is said to be sampled, but for what API calls cover.
    assert abs(sampled - told["sampled_idle"]) <= PERIOD_US * 1000
    # Of each gap at most one period is of no sample: what lies nearer to one outside of it.
    assert 0 <= told["idle"] - told["sampled_idle"] <= (STEPS - 1) * PERIOD_US * 1000
    merge = sum(row["total_ns"] for row in nodes if "merge" in row["name"])
    # Of the 9 ms of a gap 8 are in merge.
    assert merge == pytest.approx(8e6 * (STEPS - 1), rel=0.05)
    assert all("): " not in row["name"] for row in nodes)


def test_a_profile_of_another_process_is_judged_alone(tmp_path, run):
    found = run(
        trace(tmp_path / "t.json", pid=555), profile(tmp_path / "p.json", name='Process 100 Thread 100 "MainThread"')
    )
    (own,) = found["evidence"]
    assert own["placed_by"] is None and "of another run" in own["note"]
    assert "merge" not in found["findings"][0]["message"]


def test_a_profile_that_ended_before_says_so(tmp_path, run):
    trees, clock, _ = idle(
        tmp_path, trace(tmp_path / "t.json"), profile(tmp_path / "p.json", start=EPOCH - 3_200_000_000)
    )
    (told,) = clock.to_pylist()
    assert told["on_clock"] and told["gap"] == 3_000_000_000
    assert not [row for row in trees.to_pylist() if row["kind"] == "sample"]


def test_other_threads_do_not_name_the_idle_time_of_the_launching_one(tmp_path, run):
    found = run(trace(tmp_path / "t.json"), profile(tmp_path / "p.json", name='Process 100 Thread 103 "loader"'))
    assert "merge" not in found["verdict"]["headline"].partition(". ")[0]
    assert "merge" not in found["findings"][0]["message"]


def test_whose_it_is():
    def tables(pid: int | None, tid: int | None, name: str | None) -> Trace:
        return Trace(
            (),
            {
                "profile_threads": pa.table(
                    {"process": pa.array([pid], pa.int64()), "tid": pa.array([tid], pa.int64()), "name": [name]}
                )
            },
        )

    theirs = Trace((), {"processes": pa.table({"pid": pa.array([100], pa.int64())})})
    assert fits(tables(100, 7, "a"), theirs) is True
    assert fits(tables(None, 100, "MainThread"), theirs) is True
    assert fits(tables(None, 100, "python"), theirs) is True
    assert fits(tables(None, 101, "MainThread"), theirs) is None
    assert fits(tables(101, 101, "MainThread"), theirs) is False
    assert fits(tables(None, None, None), theirs) is None


def test_stretches_become_samples_at_regular_times():
    start, length, stack = (
        np.array([0, 1_000_000, 5_000_000]),
        np.array([1_000_000, 1_000_000, 500_000]),
        np.array([1, 2, 3]),
    )
    at, of = _sampled(start, length, stack)
    assert (np.diff(at) >= 1000).all()
    counts = {one: int((of == one).sum()) for one in (1, 2, 3)}
    assert counts[1] == counts[2] == 2 * counts[3]


PROFILER = "/venv/lib/python3.12/site-packages/torch/profiler/profiler.py"
STARTING = (make.MAIN, make.At("_KinetoProfile.start_trace", PROFILER, 260))
STOPPING = (make.MAIN, make.At("_KinetoProfile.stop_trace", PROFILER, 278))
BEFORE = [(make.MAIN, make.STEP)] * 37


def recorded(length: int, rounds: int = 1) -> list[make.Stack]:
    return [*BEFORE, *([*[STARTING] * 5, *samples()[:length], *[STOPPING] * 6] * rounds), *BEFORE]


def test_the_start_and_end_of_the_profiler_put_it_on_the_clock(tmp_path, run):
    # The trace begins at its first launch and ends with its last kernel, after 191.02 ms.
    given = trace(tmp_path / "t.json"), tmp_path / "p.json"
    make.write(given[1], make.speedscope(recorded(382), PERIOD_US * 1000))
    found = run(*given)
    (own,) = found["evidence"]
    assert own["clock"] == "cpu_profile" and own["clock_error_ns"] == 2 * PERIOD_US * 1000 + 20_000
    # 42 samples before the trace's own first moment, 20 us before its clock's zero.
    assert own["shift_ns"] == -42 * PERIOD_US * 1000 - 10_000
    assert "merge (data.py:17)" in found["verdict"]["headline"]


@pytest.mark.parametrize("stacks", [recorded(330), recorded(382, rounds=2), [*BEFORE, *samples(), *[STOPPING] * 5]])
def test_no_fit_or_more_than_one_is_none(tmp_path, run, stacks):
    given = trace(tmp_path / "t.json"), tmp_path / "p.json"
    make.write(given[1], make.speedscope(stacks, PERIOD_US * 1000))
    (own,) = run(*given)["evidence"]
    assert own["placed_by"] and own["clock"] is None and own["shift_ns"] is None


def test_a_clock_that_is_worse_than_the_pauses_is_not_used(tmp_path, run):
    given = trace(tmp_path / "t.json"), tmp_path / "p.json"
    coarse = [stack for number, stack in enumerate(recorded(382)) if number % 10 == 0]
    make.write(given[1], make.speedscope(coarse, 10 * PERIOD_US * 1000))
    (own,) = run(*given)["evidence"]
    assert own["clock"] is None


def test_perf_names_the_thread_alone(tmp_path, run):
    """By default `perf script` prints no process, and its clock is its own."""
    text = make.perf_script(samples(), PERIOD_US * 1000).replace(" 100/100 ", "    100 ")
    given = trace(tmp_path / "t.json"), make.write(tmp_path / "p.txt", text)
    (own,) = run(*given)["evidence"]
    assert own["placed_by"] and own["shift_ns"] is None
    found = run(*given, "--offset", "p.txt=-5s")
    assert found["verdict"]["headline"].startswith("tokenize → merge (data.py) leaves")
