"""Several outputs of one reading, and the source lines that they point at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.cli.test_cli import refused, run
from tests.support.kineto import KinetoTrace
from traceanalyzer.cli.common import ResultFormat
from traceanalyzer.result.document import Source


def stalling(frames: tuple[str, ...]) -> KinetoTrace:
    """A host that is busy in these frames, one in another, while the GPU waits."""
    made = KinetoTrace()
    for step in range(6):
        t = step * 1000
        for depth, name in enumerate(frames):
            made.range(name, t + 110 + depth, t + 990 - depth, category="python_function")
        made.op(t + 1000, t + 1100, launch=(t + 992, t + 995))
    return made


@pytest.fixture
def trace(tmp_path) -> Path:
    return stalling(("models/net.py(41): forward",)).write(tmp_path / "run.pt.trace.json")


def test_one_reading_gives_every_format(capsysbinary, tmp_path, trace):
    asked = [f"--also={name}={tmp_path / name}" for name in ResultFormat]
    code, out, err = run(capsysbinary, "analyze", trace, "--fail-on", "high", *asked)
    assert (code, err) == (1, "") and out == (tmp_path / "text").read_text()
    for name in ResultFormat:
        written = (tmp_path / name).read_bytes()
        assert run(capsysbinary, "analyze", trace, "-f", name, "--fail-on", "high")[1].encode() == written
    code, out, err = run(capsysbinary, "report", trace, "-o", tmp_path / "r.html", f"--also=json={tmp_path / 'again'}")
    assert code == 0 and (tmp_path / "again").read_bytes() == (tmp_path / "json").read_bytes()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("json", "write it as FORMAT=FILE"),
        ("json=", "write it as FORMAT=FILE"),
        ("yaml=x", "there is no format 'yaml'; choose one of text, json, markdown"),
        ("json=-", "only the main output can go to standard output"),
        ("json=main.out", "another output goes to main.out already"),
        ("json=.", "is a folder"),
        ("json=run.pt.trace.json", "is an input"),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_anything_is_read(capsysbinary, monkeypatch, trace, value, words):
    monkeypatch.chdir(trace.parent)
    broken = trace.with_name("not-there.json")
    for verb in ("analyze", "report"):
        inputs = [trace.name, broken] if "trace" in value else [broken]
        assert words in refused(capsysbinary, verb, *inputs, "-o", "main.out", "--also", value)
    assert not Path("main.out").exists()


def test_what_is_published_is_redacted_on_the_command_line(capsysbinary, tmp_path):
    made = stalling(("/home/zqperson/proj/train.py(3): step",)).write(tmp_path / "t.json")
    for flags, kept in (([], False), (["--no-redact"], True)):
        for name in ("markdown", "sarif"):
            code, out, _ = run(capsysbinary, "analyze", made, "-f", name, *flags)
            assert code == 0 and (str(tmp_path) in out) is kept
    assert str(tmp_path) in run(capsysbinary, "analyze", made)[1]


def test_a_finding_points_at_the_line_that_it_names(trace):
    found = next(finding for finding in ta.analyze(ta.load(trace)).findings if finding.source)
    assert found.source == Source("models/net.py", 41, "forward")
    assert "net.py:41 (forward)" in found.message


@pytest.mark.parametrize(
    "frames",
    [
        ("torch/nn/module.py(41): forward",),  # not the user's own
        (),
    ],
)
def test_no_line_is_made_up(tmp_path, frames):
    made = stalling(frames).write(tmp_path / "t.json")
    assert not [finding for finding in ta.analyze(ta.load(made)).findings if finding.source]


def test_two_files_of_one_name_are_not_told_apart(tmp_path):
    made = stalling(("a/net.py(41): forward",))
    made.range("b/net.py(41): forward", 20, 30, category="python_function")
    findings = ta.analyze(ta.load(made.write(tmp_path / "t.json"))).findings
    assert any("net.py:41" in finding.message for finding in findings)
    assert not [finding for finding in findings if finding.source]


def test_a_trace_without_gpu_work_is_no_pass_in_any_format(capsysbinary, tmp_path):
    path = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").write(tmp_path / "cpu.json")
    for name, words in (
        ("markdown", "### Could not judge"),
        ("junit", "<error "),
        ("github", "::error "),
        ("prometheus", "traceanalyzer_judged 0"),
    ):
        code, out, _ = run(capsysbinary, "analyze", path, "-f", name)
        assert code == 3 and words in out
    sarif = json.loads(run(capsysbinary, "analyze", path, "-f", "sarif")[1])
    assert sarif["runs"][0]["invocations"][0]["executionSuccessful"] is False
