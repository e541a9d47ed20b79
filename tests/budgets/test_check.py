"""`traceanalyzer check`, as a user and a pipeline meet it: exit codes, what is shown, and every format of it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.cli.test_cli import run
from tests.support.captures import capture, problem
from tests.support.kineto import steady
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.budgets.assertions import assertions
from traceanalyzer.budgets.judge import Given, judge
from traceanalyzer.config import Budgets, Entry
from traceanalyzer.render.comparing import check_github, check_junit, check_markdown, check_text
from traceanalyzer.result.captures.check import Check

LOADER = FIXTURES / "captured" / "feed_named.json.gz"
JOB = FIXTURES / "multirank" / "gpu_straggler.slow"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory, monkeypatch) -> Path:
    """No configuration of this repository."""
    place = tmp_path_factory.mktemp("project")
    monkeypatch.chdir(place)
    return place


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """Busy nine tenths of the time, in three steps of 10 ms."""
    made = steady(30)
    for step in range(3):
        made.range(f"ProfilerStep#{step}", step * 10_000 - 30, step * 10_000 + 9_960)
    return made.write(tmp_path_factory.mktemp("trace") / "run.json")


def test_kept(capsysbinary, trace):
    code, out, err = run(capsysbinary, "check", trace, "--assert", "idle_share <= 20%", "--assert", "step.p95 <= 11ms")
    assert (code, err) == (0, "")
    assert out.startswith("Passed: 2 of 2 budgets are kept.\n")
    assert "idle_share <= 20%: 10%" in out and "step.p95 <= 11ms: 10 ms" in out


def test_broken(capsysbinary, elsewhere):
    (elsewhere / "pyproject.toml").write_text(
        '[tool.traceanalyzer.check.budgets]\n"idle_share <= 20%" = "error"\nINP001 = "error"\n'
        'COM002 = "off"\n"max_gap <= 1ms" = "warn"\n'
    )
    code, out, _ = run(capsysbinary, "check", LOADER)
    assert code == 1
    assert out.startswith("Failed: 2 of 3 budgets are broken, 1 only warned about.\n")
    assert "expected  at most 20%\n      found     96%\n" in out
    assert f"show      traceanalyzer report {LOADER} -o report.html\n      then open report.html#finding=INP001" in out
    assert "1 finding, 96% of the time" in out and "max_gap <= 1ms [warn]" in out and "COM002: switched off" in out


def test_a_job(capsysbinary):
    code, out, _ = run(capsysbinary, "check", JOB, "--assert", "waiting_share <= 5%", "--assert", "COM005")
    assert code == 1
    assert "found     34%\n      where     most for rank 2" in out
    assert "1 finding, 34% of the time\n      where     rank 2" in out


def test_nsys(capsysbinary):
    code, out, _ = run(
        capsysbinary, "check", FIXTURES / "nsys" / "launch_storm.slow.sqlite", "--assert", "LCH*", "-f", "json"
    )
    found = {one["rule"]: one["outcome"] for one in json.loads(out)["assertions"]}
    assert (code, found) == (1, {"LCH001": "failed", "LCH002": "passed"})


def test_usage(capsysbinary, trace, elsewhere):
    for arguments, words in (
        ([trace], "no budget is set"),
        ([trace, "--assert", "idle_shar <= 20%"], "did you mean 'idle_share'"),
        ([trace, "--assert", "step.p95 <= baseline"], "there is no baseline"),
        ([trace, "--assert", "idle_share <= baseline", "--baseline", "none.json"], "there is no such baseline"),
        ([trace, "--assert", "INP001", "--config", "none.yaml"], "none.yaml: cannot be read"),
        (["none.json", "--assert", "INP001"], "no such file"),
        ([trace, "--assert", "INP001", "-o", trace], "is an input"),
    ):
        code, out, err = run(capsysbinary, "check", *arguments)
        assert (code, out) == (2, ""), arguments
        assert err.startswith("error: ") and err.count("\n") == 1 and words in err


def test_an_empty_or_a_damaged_capture_passes_nothing(capsysbinary, trace, elsewhere):
    (elsewhere / "empty.json").write_bytes(b"")
    (elsewhere / "cut.json").write_bytes(trace.read_bytes()[: trace.stat().st_size * 3 // 4])
    only_host = {"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "cat": "cpu_op", "name": "aten::add"}]}
    (elsewhere / "host.json").write_text(json.dumps(only_host))
    budget = ("--assert", "idle_share <= 90%")
    assert run(capsysbinary, "check", "empty.json", *budget)[0] == 2
    for name in ("cut.json", "host.json"):
        code, out, _ = run(capsysbinary, "check", name, *budget)
        assert code == 3 and out.startswith(f"Could not judge: {name}: ")
    assert run(capsysbinary, "check", trace, "cut.json", trace, *budget)[0] == 3
    assert run(capsysbinary, "check", "cut.json", "--assert", "idle_share <= 1%")[0] == 1


def test_against_itself_and_against_faster(capsysbinary, trace, elsewhere):
    assert run(capsysbinary, "baseline", "save", trace, "-o", "base.json")[0] == 0
    budgets = ("--baseline", "base.json", "--assert", "step.p95 <= baseline", "--assert", "step.mean <= baseline")
    assert run(capsysbinary, "check", trace, *budgets)[0] == 0
    code, out, _ = run(capsysbinary, "check", LOADER, *budgets)
    # The captures are of different GPUs.
    assert code == 3 and "the baseline does not compare: it ran on Test GPU" in out
    old = json.loads((elsewhere / "base.json").read_text())
    del old["captures"][0]["metrics"]["step.p95"]
    (elsewhere / "base.json").write_text(json.dumps(old))
    code, out, _ = run(capsysbinary, "check", trace, *budgets)
    assert code == 3 and "the baseline says nothing of step.p95" in " ".join(out.split())


def test_a_baseline_file_is_a_capture(capsysbinary, trace):
    assert run(capsysbinary, "baseline", "save", trace, "-o", "base.json")[0] == 0
    code, out, _ = run(capsysbinary, "check", "base.json", "--assert", "idle_share <= 1%")
    assert code == 1 and "show      traceanalyzer baseline show base.json" in out


def test_a_rule_of_the_users_that_is_switched_off(capsysbinary):
    code, out, _ = run(capsysbinary, "check", LOADER, "--assert", "INP001", "--disable", "INP001")
    assert code == 0 and "does not apply (switched off by --disable)" in out


def test_one_reading_many_outputs(capsysbinary, trace, elsewhere):
    arguments = (
        "--assert",
        "idle_share <= 1%",
        "-o",
        "check.json",
        "-f",
        "json",
        "--also",
        "junit=j.xml",
        "--also",
        "markdown=s.md",
    )
    code, out, err = run(capsysbinary, "check", trace, *arguments)
    assert (code, out, err) == (1, "", "Failed: 1 of 1 budget is broken.\n")
    assert json.loads((elsewhere / "check.json").read_text())["outcome"] == "failed"
    assert ET.parse(elsewhere / "j.xml").find(".//failure") is not None
    assert "### Failed" in (elsewhere / "s.md").read_text()
    assert run(capsysbinary, "check", trace, *arguments)[0] == 1
    first = (elsewhere / "check.json").read_bytes()
    assert run(capsysbinary, "check", trace, *arguments)[0] == 1
    assert (elsewhere / "check.json").read_bytes() == first


NASTY = "</failure>]]>|`x`\n::error::@user \x1b[31m \ud800 %0A"


@pytest.fixture
def nasty() -> Check:
    """A kernel's name that is markup to everybody, a budget that warns, one that could not be judged, and a damaged capture."""
    broken = capture(
        "one.json",
        rules={"INP001": "fired", "COM001": "could_not_judge"},
        reasons={"COM001": NASTY},
        metrics={"INP001.findings": 1, "INP001.share": 0.4, "idle_share": 0.3},
        problems=[problem("INP001", f"waits for {NASTY}")],
    )
    cut = replace(broken, name="two.json", damage=[NASTY])
    entries = [Entry("idle_share <= 20%", "warn", None, "b.yaml:2")]
    entries += [Entry(rule, "error", None, "b.yaml:3") for rule in ("INP001", "COM001")]
    held = assertions(Budgets(tuple(entries)), ["INP001", "COM001"], "median")
    return judge([Given(broken, "runs/one.json", False), Given(cut, "runs/two.json", False)], held, [], None)


def test_json_keeps_to_the_published_schema(nasty):
    schema = json.loads((Path(__file__).parents[2] / "docs" / "check.schema.json").read_text())
    document = json.loads(nasty.to_json().decode())
    jsonschema.validate(document, schema)
    assert document["schema_version"] == "1.0" and document["outcome"] == "failed"


def test_text(nasty):
    text = check_text.render_check(nasty)
    assert [line for line in text.splitlines() if line.isupper() and line[0] != " "] == [
        "BROKEN",
        "WARNED",
        "COULD NOT JUDGE",
    ]
    assert "\x1b" not in text and text.encode()
    assert "captures  runs/one.json 30%; runs/two.json 30%" in text


def test_junit(nasty):
    suite = ET.fromstring(check_junit.render_check(nasty))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "2")
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {
        "capture runs/two.json": ["error"],
        "idle_share <= 20%": ["system-out"],
        "INP001": ["failure"],
        "COM001": ["error"],
    }


def test_github(nasty):
    lines = check_github.render_check(nasty).splitlines()
    assert all(line.startswith(("::error title=", "::warning title=")) for line in lines)
    assert [line.split("::")[1] for line in lines].count("error title=INP001") == 1
    assert "::warning title=idle_share <= 20%25::expected at most 20%25, found 30%25" in "\n".join(lines)
    assert len(lines) == 5


def test_markdown(nasty):
    text = check_markdown.render_check(nasty)
    assert text.startswith("### Failed: 1 of 3 budgets is broken, 1 only warned about, 1 could not be judged.")
    (row,) = [line for line in text.splitlines() if line.startswith("| ❌")]
    assert row.count("|") == 6 and "<code>INP001</code>" in row
    assert "`x`" not in text and "</failure>" not in text and "@user" not in text


@needs_corpus
@pytest.mark.corpus
def test_slow_and_fixed(capsysbinary):
    slow, fixed = (CORPUS / "kineto" / f"dataloader.{name}.pt.trace.json.gz" for name in ("slow", "fixed"))
    assert run(capsysbinary, "baseline", "save", fixed, "-o", "base.json")[0] == 0
    budgets = ("--assert", "INP001", "--assert", "step.mean <= 1.1 * baseline", "--baseline", "base.json")
    assert run(capsysbinary, "check", fixed, *budgets)[0] == 0
    code, out, _ = run(capsysbinary, "check", slow, *budgets)
    assert code == 1 and "Failed: 2 of 2" in out
    assert run(capsysbinary, "check", fixed, slow, fixed, *budgets)[0] == 0
    assert run(capsysbinary, "check", fixed, slow, fixed, *budgets, "--aggregate", "worst")[0] == 1
