"""The GitHub Action, run in a stand-in for a runner: what it writes, what it ends with, and that no input becomes code."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.action import ACTION, ROOT, SCRIPT, TOOLS, Ran, Runner, check_valid, step
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES

CLEAN = FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz"
FIXED = FIXTURES / "kineto" / "item_sync.fixed.pt.trace.json.gz"
SLOW = FIXTURES / "kineto" / "item_sync.slow.pt.trace.json.gz"
WRITTEN = ["junit.xml", "report.html", "result.json", "result.sarif", "summary.md"]


@pytest.fixture
def runner(tmp_path) -> Runner:
    return Runner(tmp_path)


def written(runner: Runner, output: str = "traceanalyzer-report") -> list[str]:
    return sorted(path.name for path in (runner.workspace / output).iterdir())


def ended(ran: Ran) -> tuple[str, str]:
    """What the step says of itself. It never fails itself: that is left to the gate, after the artifact is kept."""
    assert ran.code == 0, ran.log
    return ran.outputs["exit-code"], ran.outputs["outcome"]


def tool(folder: Path, body: str) -> str:
    """The PATH with a made-up traceanalyzer on it, a bash script."""
    place = folder / "tool" / "traceanalyzer"
    place.parent.mkdir()
    place.write_text(f"#!/bin/bash\n{body}\n")
    place.chmod(0o755)
    return f"{place.parent}{os.pathsep}{os.environ['PATH']}"


def writes_markdown(folder: Path, said: str) -> str:
    return tool(folder, f'for one; do case $one in --also=markdown=*) echo "{said}" >"${{one#*=*=}}" ;; esac; done')


def test_a_clean_capture_passes(runner):
    shutil.copy(CLEAN, runner.workspace / "trace.json.gz")
    ran = runner.analyse(traces="trace.json.gz", fail_on="high")
    assert ended(ran) == ("0", "passed") and runner.gate(ran) == 0
    assert written(runner) == WRITTEN
    result = json.loads((runner.workspace / "traceanalyzer-report/result.json").read_text())
    assert ran.outputs["headline"] == result["verdict"]["headline"]
    assert ran.outputs["report"] == "traceanalyzer-report/report.html"
    assert ran.summary == (runner.workspace / ran.outputs["summary"]).read_text() != ""
    assert not [text for name, text in ran.commands if name == "error"]
    assert list(runner.temp.iterdir()) == [], "nothing is left behind"


def test_a_folder_may_begin_as_an_option_does(runner):
    shutil.copy(CLEAN, runner.workspace / "trace.json.gz")
    ran = runner.analyse(traces="trace.json.gz", output="-o x")
    assert ended(ran) == ("0", "passed") and ran.outputs["headline"] and written(runner, "-o x") == WRITTEN


def test_a_gate_that_fails_still_has_report_summary_and_outputs(runner):
    shutil.copy(SLOW, runner.workspace / "trace.json.gz")
    ran = runner.analyse(traces="trace.json.gz", fail_on="medium", title="Run 12")
    assert ended(ran) == ("1", "failed") and runner.gate(ran) == 1
    assert written(runner) == WRITTEN
    assert "idle" in ran.outputs["headline"] and "SYN" in ran.summary and "## Run 12\n" in ran.summary
    assert "<title>Run 12" in (runner.workspace / ran.outputs["report"]).read_text()
    assert {"error", "warning"} & {name for name, _ in ran.commands}, "findings become annotations"


@pytest.mark.parametrize(
    ("content", "fail_on", "code", "outcome", "words"),
    [
        (b"", "", "2", "error", "is empty"),
        (b"hello", "", "2", "error", "neither a PyTorch"),
        (gzip.decompress(CLEAN.read_bytes())[:-20_000], "high", "3", "could-not-judge", ""),
        (
            KinetoTrace().range("aten::add", 0, 10, category="cpu_op").text().encode(),
            "",
            "3",
            "could-not-judge",
            "judge",
        ),
    ],
    ids=["empty", "no trace", "cut short", "no GPU work"],
)
def test_what_is_empty_or_damaged_never_passes(runner, content, fail_on, code, outcome, words):
    (runner.workspace / "trace.json").write_bytes(content)
    ran = runner.analyse(traces="trace.json", fail_on=fail_on)
    assert ended(ran) == (code, outcome) and runner.gate(ran) == int(code)
    assert words in ran.summary and ran.summary
    assert written(runner) == (["summary.md"] if code == "2" else WRITTEN)
    assert bool(ran.outputs["report"]) == (code == "3")


@pytest.mark.parametrize("traces", ["nowhere/*.json", "", " \n\n", "empty"])
def test_traces_that_are_not_there(runner, traces):
    (runner.workspace / "empty").mkdir()
    ran = runner.analyse(traces=traces)
    assert ended(ran) == ("2", "error") and runner.gate(ran) == 2
    (error,) = [text for name, text in ran.commands if name == "error"]
    assert (traces.strip() or "Missing argument") in error and error in ran.summary
    assert ran.outputs["report"] == "" and written(runner) == ["summary.md"]


def test_a_file_of_an_earlier_job_does_not_pass_for_a_report(runner):
    kept = runner.workspace / "traceanalyzer-report"
    kept.mkdir()
    for name in [*WRITTEN, "comparison.html", "notes.txt"]:
        (kept / name).write_text("{}")
    ran = runner.analyse(traces="missing.json")
    assert written(runner) == ["notes.txt", "summary.md"] and ran.outputs["report"] == ""


HOSTILE = ["$(touch x)", "`touch x`", "; touch x", "'$(touch x)'", '"; touch x; "', "| touch x", "&& touch x"]


def test_no_input_becomes_code(runner):
    text = "".join(HOSTILE)
    ran = runner.analyse(
        traces="\n".join(HOSTILE), fail_on=text, title=text, fail_over=text, fail_on_new=text, summary=text
    )
    assert ended(ran)[0] == "2" and "--fail-on" in ran.log
    ran = runner.analyse(traces="\n".join(HOSTILE), output=text)
    assert ended(ran)[0] == "2" and "$(touch x): no such file" in ran.log and written(runner, text) == ["summary.md"]
    shutil.copy(CLEAN, runner.workspace / "t.gz")
    ran = runner.analyse(traces="t.gz", title=text, baseline=text, budgets=text)
    assert ended(ran)[0] == "2" and ran.log.count(f"{text}: ") >= 2
    assert not list(runner.workspace.rglob("x")) and not list(runner.temp.rglob("x"))


@pytest.mark.parametrize("text", ["--help", "--version", "-", "--fail-on=low"])
def test_no_input_becomes_an_option(runner, text):
    ran = runner.analyse(traces=text, title=text, fail_on="high")
    assert ended(ran)[0] == "2" and f"{'<stdin>' if text == '-' else text}: " in ran.log


def test_names_stay_text(runner):
    """Lines of a title or a file's name are no workflow command, no output of the step and no markup."""
    name = "a ::error::b.json"
    shutil.copy(CLEAN, runner.workspace / f"{name}.gz")
    title = "Run\n::error::x\n::add-mask::y\rexit-code=0 <img src=x> [a](b) | `c`"
    ran = runner.analyse(traces=f"{name}.gz", title=title, output="out\nexit-code=7")
    assert ended(ran) == ("0", "passed") and ran.outputs["report"] == "out\nexit-code=7/report.html"
    assert {text for kind, text in ran.commands if kind in ("error", "add-mask")} == set()
    heading = ran.summary.splitlines()[0]
    assert heading.startswith("## Run ::error::x ::add-mask::y exit-code=0 ") and "<img" not in heading.replace(
        "\\<img", ""
    )
    ran = runner.analyse(traces="100%.json\n")
    (error,) = [text for kind, text in ran.commands if kind == "error"]
    assert error.startswith("error: 100%25.json: no such file")


def test_what_the_tool_prints_is_no_command(runner, tmp_path):
    """A line of its log is shown, and not carried out."""
    path = tool(tmp_path, "echo '::set-output name=x::y'\necho '::error::made up' >&2\nexit 9")
    ran = runner.analyse(path, traces="t.json")
    assert ended(ran) == ("9", "error") and runner.gate(ran) == 9 and "made up" in ran.log
    assert [(name, text) for name, text in ran.commands if name not in ("group", "endgroup")] == [
        ("error", "report ended with exit code 9")
    ]


def test_without_the_tool(runner, tmp_path):
    """Asked not to install it, on a machine that lacks it."""
    ran = runner.analyse(path="/usr/bin:/bin", traces="t.json")
    if shutil.which("traceanalyzer", path="/usr/bin:/bin") is None:
        assert ended(ran) == ("127", "error") and runner.gate(ran) == 127


def test_spaces_lines_and_patterns_name_the_ranks_of_one_job(runner):
    job = FIXTURES / "multirank" / "pipeline_bubble.slow"
    place = runner.workspace / "my ranks [1]"
    place.mkdir()
    for rank in range(4):
        shutil.copy(job / f"rank{rank}.pt.trace.json.gz", place / f"rank {rank}.json.gz")
    for traces in (
        "my ranks [1]",
        "  my ranks [1]/rank 0.json.gz\r\n\n  my ranks*/rank [1-3].json.gz\t\n",
    ):
        assert ended(runner.analyse(traces=traces)) == ("0", "passed")
        result = json.loads((runner.workspace / "traceanalyzer-report/result.json").read_text())
        assert [one["rank"] for one in result["inputs"]] == [0, 1, 2, 3]


def test_files_of_a_job_are_one_capture_to_every_gate(runner, tmp_path):
    """Where `check` takes several paths for several captures."""
    calls = tmp_path / "calls"
    body = 'for one; do case $one in --also=json=*) echo "{}" >"${one#*=*=}" ;; esac; done'
    path = tool(tmp_path, f'echo "$1" "${{@: -1}}" "$(ls -d "$RUNNER_TEMP"/*)" >>{shlex.quote(str(calls))}\n{body}')
    assert ended(runner.analyse(path, traces="a\nb", budgets="x", baseline="y")) == ("0", "passed")
    verbs = [line.split() for line in calls.read_text().splitlines()]
    assert [verb for verb, *_ in verbs] == ["report", "check", "compare"]
    assert [last for _, last, *_ in verbs] == ["b", f"{verbs[1][2]}/job", f"{verbs[1][2]}/job"]


def test_a_store_is_read_as_it_is(runner):
    store = runner.workspace / "run.store"
    subprocess.run([TOOLS / "traceanalyzer", "ingest", CLEAN, "-o", store], check=True, capture_output=True)
    before = sorted((path, path.stat().st_mtime_ns) for path in store.rglob("*"))
    assert ended(runner.analyse(traces="run.store")) == ("0", "passed")
    assert sorted((path, path.stat().st_mtime_ns) for path in store.rglob("*")) == before


def test_the_summary_is_added_to_and_can_be_left_out(runner, tmp_path):
    path = writes_markdown(tmp_path, "found")
    runner.summary.write_text("before\n")
    assert runner.analyse(path, traces="t.json").summary == "before\nfound\n\n"
    assert runner.analyse(path, traces="t.json", summary="false").summary == "before\nfound\n\n"
    assert (runner.workspace / "traceanalyzer-report/summary.md").read_text() == "found\n\n"


@pytest.mark.parametrize("room", [2000, 50, 0])
def test_the_summary_keeps_the_limit(runner, tmp_path, room):
    """One that is larger than 1 MiB is not shown at all."""
    before = "x" * ((1 << 20) - room - 1) + "\n"
    runner.summary.write_text(before)
    ran = runner.analyse(writes_markdown(tmp_path, "$(seq 1000)"), traces="t.json")
    added = ran.summary.removeprefix(before)
    assert ended(ran) == ("0", "passed") and runner.summary.stat().st_size <= 1 << 20
    assert added == "" if room < 100 else added.startswith("> Cut short to fit") and re.search(r"\n\d+\n\Z", added)


def test_a_comment_holds_every_summary(runner, tmp_path):
    """Whole lines of it, and no half of a character."""
    ran = runner.analyse(writes_markdown(tmp_path, "$(printf 'é%d\\n' {1..18000})"), traces="t.json")
    said = (runner.workspace / "traceanalyzer-report/summary.md").read_text()
    assert ended(ran) == ("0", "passed") and 60_000 < len(said.encode()) <= 65_000
    assert said.startswith("> Cut short to fit") and said.endswith("\n")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory) -> Path:
    """That of the run before it got slow."""
    made = tmp_path_factory.mktemp("baseline") / "baseline.json"
    subprocess.run([TOOLS / "traceanalyzer", "baseline", "save", FIXED, "-o", made], check=True, capture_output=True)
    return made


def test_all_gates_at_once(runner, baseline):
    shutil.copy(SLOW, runner.workspace / "t.gz")
    (runner.workspace / "budgets.yaml").write_text(
        "budgets:\n  - idle_share <= 1%\n  - step.median <= 1.5 * baseline\n"
    )
    ran = runner.analyse(traces="t.gz", fail_on="high", budgets="budgets.yaml", baseline=str(baseline))
    assert ended(ran) == ("1", "failed") and runner.gate(ran) == 1
    assert written(runner) == sorted([*WRITTEN, "comparison.html", "comparison.json"])
    assert [text for name, text in ran.commands if name == "group"] == ["Report", "Budgets", "Comparison"]
    places = [ran.summary.index(words) for words in ("idle_share", "more time", "bound by")]
    assert places == sorted(places), "gates come first: what follows may be cut"
    assert [title for title in ran.commands if "traceanalyzer analyze t.gz" in title[1]], "a command that can be pasted"
    assert str(runner.temp) not in ran.summary and runner.temp.name not in ran.summary
    comparison = json.loads((runner.workspace / "traceanalyzer-report/comparison.json").read_text())
    assert comparison["outcome"] == "slower"


def test_what_is_no_slower_passes(runner, baseline):
    shutil.copy(FIXED, runner.workspace / "t.gz")
    assert ended(runner.analyse(traces="t.gz", baseline=str(baseline), fail_on_new="low")) == ("0", "passed")


def test_the_worst_code_counts(runner, tmp_path):
    """What could not run counts before what failed, and that before what could not be judged."""
    says = "case $1 in report) exit $REPORT ;; check) exit $CHECK ;; compare) exit $COMPARE ;; esac"
    body = f'for one; do case $one in --also=json=*) echo "{{}}" >"${{one#*=*=}}" ;; esac; done\n{says}'
    path = tool(tmp_path, f". {shlex.quote(str(tmp_path / 'codes'))}\n{body}")
    for report, check, compare, code in (
        (0, 0, 0, 0),
        (0, 3, 0, 3),
        (3, 1, 0, 1),
        (1, 3, 3, 1),
        (1, 2, 3, 2),
        (0, 3, 137, 137),
    ):
        (tmp_path / "codes").write_text(f"REPORT={report} CHECK={check} COMPARE={compare}\n")
        ran = runner.analyse(path, traces="t", budgets="b", baseline="b")
        assert ended(ran)[0] == str(code) and runner.gate(ran) == code


@pytest.mark.parametrize("missing", ["budgets", "baseline"])
def test_a_gate_that_is_asked_for_and_not_there_fails(runner, missing):
    shutil.copy(CLEAN, runner.workspace / "t.gz")
    ran = runner.analyse(traces="t.gz", **{missing: "perf/nowhere.yaml"})
    assert ended(ran) == ("2", "error") and "perf/nowhere.yaml" in ran.summary
    assert set(WRITTEN) <= set(written(runner)), "the report is there all the same"


@pytest.mark.parametrize("code", [0, 1, 2, 3, 137])
def test_the_gate_ends_as_the_analysis_did(runner, code):
    ran = runner.run("gate", {"EXIT_CODE": str(code)})
    assert ran.code == code and [name for name, _ in ran.commands] == ["error"] * bool(code)


def test_the_gate_does_not_pass_without_a_verdict(runner):
    assert runner.run("gate", {"EXIT_CODE": ""}).code != 0
    assert runner.run("nonsense", {}).code == 2


def test_it_installs_itself_away_from_the_python_of_the_job(runner, tmp_path):
    python, calls = tmp_path / "python", tmp_path / "calls"
    python.write_text(
        f'#!/bin/bash\necho "$@" >>"{calls}"\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
    )
    python.chmod(0o755)
    assert runner.run("install", {"INPUT_PYTHON": str(python)}).code == 0
    made = runner.temp / "traceanalyzer"
    venv, *pip = calls.read_text().splitlines()
    assert venv == f"-m venv {made}" and all(one.startswith("-m pip install ") for one in pip)
    needed, itself = pip
    assert "--require-hashes" in needed and needed.endswith(f" {ROOT}/ci/requirements.txt")
    assert "--no-deps --no-build-isolation" in itself and itself.endswith(f" {ROOT}")
    (made / "bin" / "traceanalyzer").write_text("#!/bin/sh\nexit 3\n")
    (made / "bin" / "traceanalyzer").chmod(0o755)
    assert ended(runner.analyse(traces="t.json", install="true"))[0] == "3", "what was installed is what runs"


@pytest.mark.parametrize(("schema", "file"), [("actions", "action.yml"), ("workflows", ".github/workflows/ci.yml")])
def test_the_action_and_the_workflow_that_tries_it_fit_their_schemas(schema, file):
    if not (ROOT / file).exists():
        pytest.skip("a source distribution holds no workflows")
    check_valid(ROOT / file, f"github-{schema}")


def test_inputs_are_declared_used_and_reach_the_shell_as_variables_only():
    steps = ACTION["runs"]["steps"]
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {one["id"] for one in steps if "id" in one}
    assert set(re.findall(r"steps\.([\w-]+)\.", text)) <= ids
    shells = [one for one in steps if "run" in one]
    for one in shells:
        assert "${{" not in one["run"] and one["shell"] == "bash"
    script = SCRIPT.read_text()
    assert "${{" not in script and "eval" not in script
    given = {name for one in shells for name in one.get("env", {})}
    assert given == set(re.findall(r"\b(?:INPUT_[A-Z_]+|EXIT_CODE)\b", script)) - {"INPUT_"}
    outputs = set(re.findall(r"^  output ([\w-]+) ", script, re.M))
    assert outputs == set(ACTION["outputs"])
    for name, output in ACTION["outputs"].items():
        assert output["value"] == f"${{{{ steps.analyse.outputs.{name} }}}}"
    assert all(one.get("description") for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


def test_the_artifact_is_kept_before_the_gate():
    steps = ACTION["runs"]["steps"]
    (upload,) = [at for at, one in enumerate(steps) if one.get("uses", "").startswith("actions/upload-artifact@")]
    assert steps.index(step("analyse")) < upload < steps.index(step("gate")) == len(steps) - 1
    assert steps[upload]["if"].startswith("${{ always() ") and steps[upload]["with"]["path"] == "${{ inputs.output }}"


def test_shellcheck_has_nothing_to_say():
    shellcheck = shutil.which("shellcheck", path=f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("no shellcheck here")
    done = subprocess.run([shellcheck, SCRIPT], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_python_that_is_set_up_is_one_that_it_runs_on():
    major, minor = ACTION["inputs"]["python-version"]["default"].split(".")
    assert (int(major), int(minor)) >= (3, 11) <= sys.version_info[:2]
