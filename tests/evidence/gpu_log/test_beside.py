"""Logs beside traces: on which clock, of which GPU, and which of several is judged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.evidence.gpu_log import logs
from tests.evidence.gpu_log.beside import trace
from tests.evidence.gpu_log.logs import ALL, LOGS, START_S, write
from tests.support.strangers import Program
from traceanalyzer.analysis import analyze_parts
from traceanalyzer.analysis.parts import parts_of
from traceanalyzer.evidence.gpu_log.answers.gpus import OTHERS, Gpu, Log, matched
from traceanalyzer.evidence.placing import zone_shift
from traceanalyzer.model.schema import DEVICES
from traceanalyzer.result.document import Result

HOUR = 3_600_000_000_000


def result_of(*paths: Path) -> Result:
    return ta.analyze(ta.load(list(paths)))


def outcomes(result: Result) -> dict[str, str]:
    return {one.rule: one.outcome for one in result.rules if one.rule.startswith("PWR")}


def hot(gpu: int):
    """Values of a load under which one GPU of several is too hot."""
    return {"sm": lambda n: 900 if n == gpu else 1_900, "reasons": lambda n: 0x20 if n == gpu else 0}


@pytest.mark.parametrize("hours", [-11, -5, 0, 1, 5.5, 5.75, 14])
def test_the_only_time_zone_that_fits_is_taken(tmp_path, hours):
    log = write(tmp_path, "gpu.csv", logs.smi(logs.rows(), ahead_s=int(hours * 3600)))
    (one,) = result_of(trace(tmp_path / "t.json"), log).evidence
    sign, minutes = "-" if hours < 0 else "+", int(abs(hours) * 60)
    assert one.clock == f"reading its local times as UTC{sign}{minutes // 60:02}:{minutes % 60:02}"
    assert (one.placed_by, one.note) == ("overlap in time", None)


def test_no_zone_or_several_are_none():
    day = (0, 24 * HOUR)
    assert zone_shift((0, 10), (5, 6)) == 0 and zone_shift((HOUR, HOUR + 10), (5, 6)) == -HOUR
    assert zone_shift(day, (5, 6)) is None and zone_shift((0, 10), (20 * HOUR, 20 * HOUR + 1)) is None
    # A quarter of an hour that is no time zone's.
    assert zone_shift((HOUR // 4, HOUR // 4 + 10), (5, 6)) is None


def test_a_log_of_hours_asks_for_an_offset(tmp_path):
    made = logs.rows(400, step_s=60, start_s=START_S - 200 * 60)
    log = write(tmp_path, "gpu.csv", logs.smi(made, ahead_s=7200))
    files = [trace(tmp_path / "t.json"), log]
    alone = result_of(*files)
    assert alone.evidence[0].placed_by is None and "--offset" in (alone.evidence[0].note or "")
    found = analyze_parts(parts_of(ta.load(files)), None, offsets={"gpu.csv": -2 * HOUR}).result
    assert (found.evidence[0].clock, found.evidence[0].placed_by) == ("--offset", "overlap in time")


def test_each_rank_hears_of_its_own_gpu(tmp_path):
    files = [trace(tmp_path / f"r{rank}.json", rank, visible=2, rank=rank) for rank in (0, 1)]
    log = write(tmp_path, "node.csv", logs.smi(logs.rows(gpus=2, **hot(1))))
    result = result_of(*files, log)
    assert [one.rank for one in result.evidence] == [0, 1]
    (finding,) = [one for one in result.findings if one.rule == "PWR001"]
    assert finding.scope.rank == 1 and "rank 1 (GPU 1) is held down by heat" in finding.message


def test_which_gpu_of_many_it_is_cannot_be_told(tmp_path):
    """Of eight GPUs under load, to a process that sees one of them."""
    log = write(tmp_path, "node.csv", logs.smi(logs.rows(gpus=8, **hot(3))))
    result = result_of(trace(tmp_path / "t.json"), log)
    assert set(outcomes(result).values()) == {"could_not_judge"}
    assert "nothing tells which GPU" in next(one.reason for one in result.rules if one.rule == "PWR001")
    assert "stands out" not in result.verdict.headline


def test_the_only_gpu_at_work_is_it(tmp_path):
    log = write(tmp_path, "node.csv", logs.smi(logs.rows(gpus=4, util=lambda n: 98 if n == 2 else 0, **hot(2))))
    result = result_of(trace(tmp_path / "t.json"), log)
    (finding,) = [one for one in result.findings if one.rule == "PWR001"]
    assert "GPU 0 is held down by heat" in finding.message


def test_a_log_of_another_model_is_of_others(tmp_path):
    lines = logs.smi(logs.rows()).splitlines()
    named = [line.replace(", ", f", {'NVIDIA L4' if number else 'name'}, ", 1) for number, line in enumerate(lines)]
    text = "\n".join(named)
    result = result_of(trace(tmp_path / "t.json"), write(tmp_path, "gpu.csv", text + "\n"))
    assert set(outcomes(result).values()) == {"could_not_judge"}


def test_ids_tell_where_a_trace_has_them():
    def gpu(number: int, uuid: str | None) -> Gpu:
        return Gpu([Log("a", "NVML", number, uuid, None, None, True, True, np.array([1, 2]), {})])

    def devices(*uuids: str | None) -> pa.Table:
        rows = [{"rank": 0, "device": number, "uuid": uuid} for number, uuid in enumerate(uuids)]
        return pa.Table.from_pylist(rows, DEVICES.schema)

    two = [gpu(0, "GPU-aa-0"), gpu(1, "GPU-AA-1")]
    assert matched(two, [0], devices("aa1"), {})[0][0] is two[1]
    assert matched(two, [0], devices("bb"), {})[0] == (None, OTHERS)
    assert matched(two, [0, 1], devices(None, None), {})[1][0] is two[1]
    # Of the same number, but the process sees one of two.
    assert matched(two, [0], devices(None), {})[0][0] is None


def test_logs_of_two_machines_are_not_mixed(tmp_path):
    one, other = (logs.rows(power=power) for power in (650.25, 300.5))
    files = [write(tmp_path, f"{n}.csv", logs.smi(rows)) for n, rows in enumerate((one, other))]
    result = result_of(trace(tmp_path / "t.json"), *files)
    assert set(outcomes(result).values()) == {"could_not_judge"}


def test_the_finest_log_with_reasons_is_judged_once(tmp_path):
    fine = write(tmp_path, "a.csv", logs.smi(logs.rows(400, step_s=0.05), ("time", "gpu", "util", "sm", "power")))
    whole = write(tmp_path, "b.csv", logs.smi(logs.rows(**hot(0))))
    coarse = write(tmp_path, "c.csv", logs.smi(logs.rows(40, step_s=0.5, **hot(0))))
    result = result_of(trace(tmp_path / "t.json"), fine, whole, coarse)
    (finding,) = [one for one in result.findings if one.rule == "PWR001"]
    assert finding.metrics["count"].value == 160 and finding.evidence[0].label.startswith("b.csv")


def test_only_the_load_around_the_trace_is_judged(tmp_path):
    """Two minutes before, another job was held down."""
    before = logs.rows(start_s=START_S - 120, **hot(0))
    log = write(tmp_path, "gpu.csv", logs.smi(before + logs.rows()))
    result = result_of(trace(tmp_path / "t.json"), log)
    assert outcomes(result)["PWR001"] == "clean"
    assert ta.analyze(ta.load(log)).findings[0].rule == "PWR001"


def test_a_log_without_load_when_the_trace_was_recorded(tmp_path):
    made = logs.rows(start_s=START_S - 60) + logs.rows(util=0)
    result = result_of(trace(tmp_path / "t.json"), write(tmp_path, "gpu.csv", logs.smi(made)))
    assert set(outcomes(result).values()) == {"could_not_judge"}


def test_two_processes_and_kernels_in_slices(tmp_path):
    lines = [
        {"timestamp": row["time"], "gpu_util_pct": row["util"], "sm_clock_mhz": row["sm"], "processes": 2}
        for row in logs.rows()
    ]
    log = write(tmp_path, "nvml.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    quiet = result_of(trace(tmp_path / "a.json"), log)
    (finding,) = [one for one in quiet.findings if one.rule == "PWR002"]
    assert finding.severity == "low" and "No kernel of the trace took much longer than its like" in finding.message
    sliced = result_of(trace(tmp_path / "b.json", slow=(20, 50, 90)), log)
    (finding,) = [one for one in sliced.findings if one.rule == "PWR002"]
    assert finding.severity == "medium" and "of which one is of the trace. 3 kernels of the trace" in finding.message


def test_use_while_nothing_of_the_trace_runs(tmp_path):
    made = trace(tmp_path / "t.json", seconds=0.5)
    content = json.loads(made.read_text())
    # And once more ten seconds later: between the two nothing of the trace runs.
    later = [{**event, "ts": event["ts"] + 9e6} for event in content["traceEvents"]]
    for event in later:
        event["args"] = {**event["args"], "correlation": 10_000 + event["args"]["correlation"]}
    made.write_text(json.dumps({**content, "traceEvents": content["traceEvents"] + later}))
    columns = [name for name in ALL if name != "processes"]
    result = result_of(made, write(tmp_path, "gpu.csv", logs.smi(logs.rows(util=70), columns)))
    (finding,) = [one for one in result.findings if one.rule == "PWR002"]
    assert (
        finding.severity == "medium"
        and "it is in use for 70% of the time while nothing of the trace runs" in finding.message
    )


def test_a_trace_that_ends_before_use_is_known_accuses_nobody(tmp_path):
    result = result_of(trace(tmp_path / "t.json", seconds=1.0), write(tmp_path, "gpu.csv", logs.smi(logs.rows())))
    assert outcomes(result)["PWR002"] == "could_not_judge"


def test_a_folder_a_store_and_files_say_the_same(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for path in LOGS.glob("gemm*"):
        (run / path.name).write_bytes(path.read_bytes())
    program = Program(tmp_path, tmp_path)
    found = program.result("run")
    assert program.run("ingest", "run", "-o", "run.store").returncode == 0
    assert program.result("run.store") == found and program.result("run") == found
    assert len(found["evidence"]) == 3


def test_packed_logs_are_read_too(tmp_path):
    path = tmp_path / "gpu.csv.gz"
    path.write_bytes(gzip.compress(logs.smi(logs.rows(**hot(0))).encode()))
    assert ta.analyze(ta.load(path)).findings[0].rule == "PWR001"


@pytest.mark.parametrize("busy, fully", [(0.98, True), (0.6, False)])
def test_use_is_not_said_where_the_trace_has_another(tmp_path, busy, fully):
    log = write(tmp_path, "gpu.csv", logs.smi(logs.rows()))
    result = result_of(trace(tmp_path / "trace.json", busy=busy), log)
    assert ("fully used" in result.verdict.headline) == fully
    assert fully or "runs with its SM clock at" in result.verdict.headline
