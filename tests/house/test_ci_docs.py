"""The examples of docs/ci.md: each is valid where it belongs, and its commands run, with stand-ins for training and the network."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.action import ACTION, ROOT, TOOLS, Runner, check_valid
from tests.support.places import FIXTURES

CLEAN = FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz"
TEXT = (ROOT / "docs" / "ci.md").read_text()
ELSEWHERE = ("actions/checkout", "github/codeql-action/upload-sarif", "marocchino/sticky-pull-request-comment")

STAND_INS = {
    # "training" writes a trace where it is told to, another one each time
    "python": 'if [ "$1" = train.py ]; then mkdir -p "${@: -1}"; cp "$RUNS/$(grep -c "^python " "$RUNS/calls").json" "${@: -1}"; '
    "else exit 1; fi",
    "python3": f'if [ "$2" = venv ]; then mkdir -p "$3/bin"; ln -sf "{TOOLS}/traceanalyzer" "$3/bin/"; '
    'ln -sf "$(command -v pip)" "$3/bin/pip"; else exit 1; fi',
    "pip": "",
    "git": "",
    "gh": "",
    "curl": 'for one; do case $one in @*) test -s "${one#@}" ;; esac; done',
}


@dataclass(frozen=True)
class Example:
    """A fenced block; its first line, a comment, names it."""

    language: str
    name: str
    body: str


EXAMPLES = {
    (name := body.partition("\n")[0].lstrip("#/ ")): Example(language, name, body)
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.M | re.S)
}
WORKFLOWS = [example for name, example in EXAMPLES.items() if name.startswith(".github/workflows/")]


@cache
def noisy(run: int) -> str:
    """The clean capture with kernels that take a little less from run to run."""
    trace = json.loads(gzip.decompress(CLEAN.read_bytes()))
    for at, event in enumerate(trace["traceEvents"]):
        if event.get("cat") == "kernel":
            event["dur"] = round(event["dur"] * (1 - 0.002 * ((at + run) % 3)), 3)
    return json.dumps(trace)


@cache
def baseline() -> bytes:
    save = [TOOLS / "traceanalyzer", "baseline", "save", CLEAN, "-o", "-"]
    return subprocess.run(save, check=True, capture_output=True).stdout


class Job:
    """A workspace in which the lines of a job run one after another."""

    def __init__(self, folder: Path) -> None:
        self.runner = Runner(folder)
        self.place = self.runner.workspace
        runs = folder / "runs"
        runs.mkdir()
        for run in range(1, 4):
            (runs / f"{run}.json").write_text(noisy(run))
        self.env = {"HOME": str(folder), "GITHUB_RUN_ID": "1", "PUSHGATEWAY": "http://127.0.0.1", "RUNS": str(runs)}
        tools = folder / "bin"
        tools.mkdir()
        for name, does in STAND_INS.items():
            (tools / name).write_text(f'#!/bin/bash\nset -e\necho "{name} $*" >>"{runs}/calls"\n{does}\n')
            (tools / name).chmod(0o755)
        (tools / "traceanalyzer").symlink_to(TOOLS / "traceanalyzer")
        self.path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        (self.place / "perf").mkdir()
        (self.place / "perf" / "budgets.yaml").write_text(EXAMPLES["perf/budgets.yaml"].body)
        (self.place / "perf" / "baseline.json").write_bytes(baseline())

    def run(self, script: str) -> None:
        """Run a script as runners do: it ends at the first command that fails, and that fails the test."""
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.place,
            env={**self.env, "PATH": self.path},
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.fixture
def job(tmp_path) -> Job:
    return Job(tmp_path)


def steps(workflow: Example) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(workflow.body)["jobs"].values():
        yield from job["steps"]


def test_every_example_is_known():
    languages = {name: example.language for name, example in EXAMPLES.items()}
    assert len(languages) == len(re.findall(r"^```\w+$", TEXT, re.M)) and len(WORKFLOWS) == 4
    assert set(languages.values()) == {"yaml", "sh", "groovy", "python"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda example: example.name)
def test_github_workflows_are_valid_and_run(job, tmp_path, workflow):
    path = tmp_path / Path(workflow.name).name
    path.write_text(workflow.body)
    check_valid(path, "github-workflows")
    for step in steps(workflow):
        uses = step.get("uses", "").partition("@")[0]
        if "run" in step:
            assert "${{" not in step["run"]
            job.run(step["run"])
        elif uses == "OWNER/traceanalyzer":
            assert set(step["with"]) <= set(ACTION["inputs"])
            ran = job.runner.analyse(
                job.path, **{name.replace("-", "_"): value for name, value in step["with"].items()}
            )
            assert (ran.code, ran.outputs["exit-code"]) == (0, "0"), ran.log
        else:
            assert uses in ELSEWHERE
            for named in re.findall(
                r"^traceanalyzer-report/\S+", "\n".join(map(str, step.get("with", {}).values())), re.M
            ):
                assert (job.place / named).is_file()
        for name in re.findall(r"steps\.performance\.outputs\.([\w-]+)", str(step)):
            assert name in ACTION["outputs"]


def test_the_pipeline_of_gitlab_is_valid_and_runs(job, tmp_path):
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(EXAMPLES[".gitlab-ci.yml"].body)
    check_valid(path, "gitlab-ci", "--data-transform", "gitlab-ci")
    pipeline = yaml.safe_load(path.read_text())
    stages = pipeline.pop("stages")
    for one in sorted(pipeline.values(), key=lambda one: stages.index(one["stage"])):
        job.run("\n".join([*one.get("before_script", []), *one["script"]]))
        reports = one["artifacts"].get("reports", {})
        for kept in (*one["artifacts"]["paths"], *reports.get("junit", []), *([reports["metrics"]] if reports else [])):
            assert (job.place / kept).exists(), kept
    assert (job.place / "public" / "index.html").read_text().startswith("<!doctype html>")


def test_the_pipeline_of_jenkins_runs(job):
    body = EXAMPLES["Jenkinsfile"].body
    for opening, closing in ("{}", "()", "[]"):
        assert body.count(opening) == body.count(closing)
    scripts = [a or b for a, b in re.findall(r"\bsh (?:'''(.*?)'''|'([^'\n]*)')", body, re.S)]
    assert len(scripts) == body.count("sh '")
    for script in scripts:
        job.run(script.replace("\\\n", ""))  # as Groovy reads it
    for named in re.findall(r"pattern: '([^']+)'", body):
        assert (job.place / named).is_file()
    assert len(list(job.place.glob("performance/*.xml"))) == 2 and (job.place / "performance/report.html").is_file()


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.language == "sh"])
def test_commands_run(job, name):
    body = EXAMPLES[name].body.replace("/var/lib/node_exporter/", "textfile/")
    (job.place / "textfile" / "textfile_collector").mkdir(parents=True)
    (job.place / "traces").mkdir()
    if "train.py" not in body:
        shutil.copy(CLEAN, job.place / "traces")
    job.run(body)


def test_python_compiles_and_names_what_the_examples_call():
    body = EXAMPLES["train.py, as the examples above call it"].body
    compile(body, "train.py", "exec")
    called = {flag for line in re.findall(r"python train\.py (.*)", TEXT) for flag in re.findall(r"--(\w+)", line)}
    assert called == set(re.findall(r"args\.(\w+)", body))
    wait, warmup, active = (int(re.search(rf"{name}=(\d+)", body)[1]) for name in ("wait", "warmup", "active"))
    assert set(re.findall(r"train\.py --steps (\d+)", TEXT)) == {str(wait + warmup + active)}


def test_the_table_of_inputs_is_that_of_the_action():
    rows = re.findall(r"^\| `([\w-]+)` \| ?(?:`([^`]*)`|(required)|) \|", TEXT.split("## GitHub Actions")[1], re.M)
    assert {name: default for name, default, _ in rows} == {
        name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()
    }
    assert [name for name, _, required in rows if required] == [
        name for name, one in ACTION["inputs"].items() if one.get("required")
    ]


def test_commands_named_in_the_text_have_these_options():
    """Options in inline code, such as `report --fail-on high`, exist."""
    for command in re.findall(
        r"`((?:traceanalyzer )?(?:analyze|report|check|compare|doctor|baseline \w+) [^`]*)`", TEXT
    ):
        words = shlex.split(command.removeprefix("traceanalyzer "))
        verb = words[:2] if words[0] == "baseline" else words[:1]
        said = subprocess.run(
            [TOOLS / "traceanalyzer", *verb, "--help"], check=True, capture_output=True, text=True
        ).stdout
        assert all(word in said for word in words if word.startswith("--")), command
