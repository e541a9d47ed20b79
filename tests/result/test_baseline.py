"""Baselines: a file that reads well in a diff, and only what is a sound measure of one program."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.comparisons import GPU, US, baseline, capture
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.analysis.baselines import baseline_of
from traceanalyzer.errors import InputError, NotJudgedError
from traceanalyzer.render.comparing.baseline_text import render_baseline
from traceanalyzer.render.lines import WIDTH
from traceanalyzer.result.captures.baseline_file import baseline_bytes, is_baseline, read_baseline

ITEM_SYNC = FIXTURES / "kineto" / "item_sync.slow.pt.trace.json.gz"


def written(folder: Path, content: bytes, name: str = "baseline.json") -> Path:
    place = folder / name
    place.write_bytes(content)
    return place


def changed(**fields: object) -> bytes:
    """A baseline file with other top-level fields."""
    return json.dumps({**json.loads(baseline_bytes(baseline())), **fields}).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_is_written_is_read_again(tmp_path, pack):
    whole = baseline(capture(), capture("other.json.gz", 18_000 * US))
    place = written(tmp_path, pack(baseline_bytes(whole)))
    assert is_baseline(place)
    assert baseline_bytes(read_baseline(place)) == baseline_bytes(whole)
    assert read_baseline(place).captures[1].unit == whole.captures[1].unit
    sizes = [one.ns for one in read_baseline(place).captures[0].kernels]
    assert len(sizes) == 40 and sizes == sorted(sizes, reverse=True)


def test_each_thing_has_a_line_of_its_own():
    lines = baseline_bytes(baseline()).decode().split("\n")
    assert lines[1] == '  "schema_version": "1.0",' and lines[-2:] == ["}", ""]
    kernel = '        {"name": "void kernel_3<3, float>(int)", "count": 2.5, "ns": 50003, "deviation_ns": 3000},'
    assert lines.count(kernel) == 1
    assert '        "step.mean": {"value": 18400000, "unit": "ns", "where": null}' in lines
    assert sum(line.startswith('        {"rule": "INP001"') for line in lines) == 1
    (idle,) = [line for line in lines if line.startswith('        "idle.input": {"mean_ns": 9200000, "samples_ns": [')]
    assert idle.endswith("]}")


def test_a_change_of_one_thing_changes_one_line():
    one = capture()
    slower = [replace(one.kernels[0], ns=10**9), *one.kernels[1:]]
    lines = [baseline_bytes(baseline(replace(one, kernels=k))).splitlines() for k in (one.kernels, slower)]
    assert sum(a != b for a, b in zip(*lines, strict=True)) == 1
    # which kernel takes longest, or which rule is run first, moves no line
    other = replace(
        one, kernels=one.kernels[::-1], metrics=dict(reversed(one.metrics.items())), outcomes=dict(reversed(one.outcomes.items()))
    )  # fmt: skip
    assert baseline_bytes(baseline(other)) == baseline_bytes(baseline(one))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"hello", "is not a baseline"),
        (gzip.compress(baseline_bytes(baseline()), mtime=0)[:90], "gzip data is damaged or cut short"),
        (baseline_bytes(baseline())[:3000], "not valid JSON"),
        (baseline_bytes(baseline()).replace(b'      "gpus"', b'<<<<<<< HEAD\n      "gpus"'), "was a merge left half done?"),
        (b'{"schema_version": "1.0", "findings": []}', "is not a baseline but a result document"),
        (b'{"traceEvents": []}', "is not a baseline but a trace"),
        (b"[1]", "is not a baseline but JSON of another kind"),
        (changed(schema_version="1.1"), "written by a newer traceanalyzer (baseline version 1.1, this one reads up to 1.0)"),
        (changed(schema_version="2.0"), "written by a newer traceanalyzer"),
        (changed(schema_version="0.9"), "written by an older traceanalyzer"),
        (changed(schema_version=7), "without a version"),
        (changed(schema_version="9" * 5000 + ".0"), "without a version"),
        (b'{"schema_version": "1.0", "captures": ' + b"[" * 100_000, "nested too deeply"),
        (baseline_bytes(baseline()).replace(b'"mean_ns": ', b'"mean_ns": -'), "a field that does not fit"),
        (baseline_bytes(baseline()).replace(b'"mean_ns": ', b'"mean_ns": 1000000000000'), "a field that does not fit"),
        (re.sub(rb'"mean_ns": \d+', b'"mean_ns": 0', baseline_bytes(baseline())), "takes no time"),
        (changed(captures=[]), "without a capture"),
        (changed(captures=[{"name": 3}]), "a field that does not fit"),
        (changed(captures=[json.loads(baseline_bytes(baseline(capture(no_unit=None))))["captures"][0] | {"unit": {
            "kind": "epoch", "method": None, "count": 1, "time": {"mean_ns": 1, "samples_ns": [1]}, "first_ns": None, "kernels": 1.0,
        }}]), "a unit of work 'epoch'"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:30],
)  # fmt: skip
def test_what_is_no_baseline_is_said(tmp_path, content, words):
    place = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_baseline(place)
    assert words in str(error.value) and str(place) in str(error.value) and "\n" not in str(error.value)


def test_traces_and_results_are_not_taken_for_baselines(tmp_path):
    assert not is_baseline(ITEM_SYNC) and not is_baseline(tmp_path) and not is_baseline(tmp_path / "none")
    assert not is_baseline(
        written(tmp_path, b'{"schema_version": "1.0", "tool": {"name": "traceanalyzer"}, "inputs": []}')
    )
    assert not is_baseline(written(tmp_path, b"\x1f\x8bnot gzip"))


@pytest.mark.parametrize(
    ("captures", "words"),
    [
        ([capture(damage=["TRC001: the file is cut short"])], "no baseline of a damaged trace: TRC001: the file is cut short"),
        ([capture(unjudged="Could not judge: no GPU work.", unit=None)], "no baseline: no GPU work"),
        ([capture(unit=None, no_unit="it has no GPU operations")], "no baseline: it has no GPU operations"),
        ([capture(), capture("other.json", 18_000 * US, gpus=["NVIDIA A100"])], "but run.json.gz ran on NVIDIA H100"),
        ([capture(), capture("other.json", 18_000 * US, gpus=[GPU, GPU])], "but run.json.gz shows 1 GPU, other.json 2"),
    ],
    ids=["damaged", "unjudged", "no unit", "another GPU", "more GPUs"],
)  # fmt: skip
def test_what_is_no_sound_measure_is_refused(captures, words):
    with pytest.raises(NotJudgedError) as error:
        baseline_of(captures)
    assert words in str(error.value) and error.value.exit_code == 3


def test_anyway_saves_what_holds_something():
    odd = [capture(damage=["TRC001: cut"]), capture("other.json", 18_000 * US, gpus=["NVIDIA A100"])]
    assert len(baseline_of(odd, anyway=True).captures) == 2
    with pytest.raises(NotJudgedError):
        baseline_of([capture(unit=None, unjudged="Could not judge: no GPU work.")], anyway=True)


def test_a_whole_capture_is_no_unit_to_compare_with():
    one = capture()
    assert one.unit
    alone = replace(one, unit=replace(one.unit, kind="capture", method=None, count=1))
    with pytest.raises(NotJudgedError, match="no steps are marked"):
        baseline_of([alone])
    assert baseline_of([alone], anyway=True).captures == [alone]


def test_one_run_twice_is_no_two_runs():
    with pytest.raises(InputError, match=r"copy.json: is the same run as run.json.gz"):
        baseline_of([capture(), replace(capture(), name="copy.json")])


def test_it_is_shown():
    text = render_baseline(baseline(capture(), capture("second.json.gz", 18_000 * US)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "  torch: 2.6.0" in lines
    assert lines[0] == "2 captures, NVIDIA H100 80GB HBM3, a step takes 18 ms to 18.4 ms"
    assert "run.json.gz: 10 steps (annotation), 18.4 ms on average, 18.2 ms to 18.6 ms, 40 kernels each" in lines
    assert [line.split() for line in lines if "idle: input" in line] == [["idle:", "input", "9.2", "ms", "50%"]]
    assert "  INP001 The GPU waits for the data loader [high]: 9.2 ms" in lines
    assert "  idle_share  50%  (GPU 0)" in lines and "  and 32 more" in lines
    damaged = render_baseline(baseline(capture(damage=["TRC001: it was\x1b[2J cut"])))
    assert "damaged  TRC001: it was?[2J cut" in damaged


def test_save_and_show(capsysbinary, tmp_path):
    place = tmp_path / "perf" / "baseline.json"
    code, out, err = run(capsysbinary, "baseline", "save", ITEM_SYNC, "-o", place)
    assert (code, out) == (0, "")
    assert err == f"{place}: 1 capture, NVIDIA H100 80GB HBM3, a step takes 11.7 ms\n"
    content = place.read_bytes()
    assert len(content) < 40_000 and content.endswith(b"}\n") and str(tmp_path).encode() not in content
    again = run(capsysbinary, "baseline", "save", ITEM_SYNC, "-o", "-")[1]
    assert again.encode() == content
    code, out, err = run(capsysbinary, "baseline", "show", place)
    assert (code, err) == (0, "") and "item_sync.slow.pt.trace.json.gz: 4 steps (annotation)" in out


def test_nothing_is_written_of_what_is_refused(capsysbinary, tmp_path):
    made = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").write(tmp_path / "cpu.json")
    place = tmp_path / "baseline.json"
    code, out, err = run(capsysbinary, "baseline", "save", made, "-o", place)
    assert (code, out) == (3, "") and not place.exists()
    assert err.startswith("error: cpu.json: no baseline: the trace holds no GPU work") and err.count("\n") == 1


def test_wrong_inputs_are_one_line(capsysbinary, tmp_path):
    out = tmp_path / "baseline.json"
    assert "no such file" in refused(capsysbinary, "baseline", "save", tmp_path / "nothing.json", "-o", out)
    assert "is an input" in refused(capsysbinary, "baseline", "save", ITEM_SYNC, "-o", ITEM_SYNC)
    assert "is the same run as" in refused(capsysbinary, "baseline", "save", ITEM_SYNC, ITEM_SYNC, "-o", out)
    assert "is not a baseline" in refused(capsysbinary, "baseline", "show", ITEM_SYNC)
    assert "is a folder" in refused(capsysbinary, "baseline", "show", tmp_path)
    assert not out.exists()


@pytest.mark.parametrize("at", ["", "schema_version", "captures"])
def test_what_cannot_be_a_baseline_is_one_line(capsysbinary, tmp_path, at):
    """A pipe that nobody writes to, and JSON whose numbers are too long or whose lists are too deep."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    plain = json.loads(baseline_bytes(baseline()))
    for number, text in enumerate(("9" * 10_000, "1e999999", "-" + "1" * 5000 + ".5", "[" * 100_000, '"\\ud800"')):
        content = json.dumps({**plain, at: "?"} if at else "?").replace('"?"', text)
        (tmp_path / f"{number}.json").write_text(content)
    signal.alarm(100)
    try:
        for path in tmp_path.iterdir():
            assert str(path) in refused(capsysbinary, "baseline", "show", path)
    finally:
        signal.alarm(0)
