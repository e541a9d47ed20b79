"""The recipes: each is valid where it belongs, and does what it says, with stand-ins for training, profilers and schedulers."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tests.history.nights import CASES, entries_of
from tests.support.action import ROOT, TOOLS, check_valid
from tests.support.captures import capture
from traceanalyzer.cli.command import own_commands
from traceanalyzer.cli.commands import program
from traceanalyzer.history.shelf import Shelf
from traceanalyzer.watch.landing import captures_in

RECIPES = ROOT / "docs" / "recipes"
PAGES = [ROOT / "docs" / "history.md", ROOT / "docs" / "watch.md", RECIPES / "README.md"]
SCRIPTS = ["nsys.sbatch", "dynolog.sh"]


def text_of(name: str) -> str:
    return (RECIPES / name).read_text()


@pytest.fixture
def tools(tmp_path) -> Path:
    """A folder of stand-ins, first on the PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    return folder


def stand_in(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\nset -eu\n{body}\n")
    (folder / name).chmod(0o755)


def run(script: str, tools: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", RECIPES / script, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=120)


def test_every_recipe_is_named():
    files = {path.name for path in RECIPES.iterdir()} - {"README.md"}
    assert {name for name in files if f"]({name})" in text_of("README.md")} == files


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_sound(name):
    subprocess.run(["bash", "-n", RECIPES / name], check=True)
    shellcheck = shutil.which("shellcheck", path=f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("no shellcheck here")
    done = subprocess.run([shellcheck, "--shell=bash", RECIPES / name], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# What training under nsys does, a rank after another: that nothing can be seen of it meanwhile is asserted where it writes.
NSYS = """
output=$(for one; do case $one in --output=*) echo "${one#--output=}" ;; esac; done)
test -z "$(ls "$CAPTURES")"
if [ "$1" = profile ]; then echo report >"${output//%q\\{SLURM_PROCID\\}/$SLURM_PROCID}.nsys-rep"
else [ "$1" = export ] && grep -q report "${@: -1}" && echo SQLite >"$output"; fi
"""


def test_a_job_under_nsys_lands_whole(tools, tmp_path):
    captures = tmp_path / "captures"
    captures.mkdir()
    stand_in(tools, "srun", 'for rank in 0 1; do SLURM_PROCID=$rank "$@"; done')
    stand_in(tools, "nsys", NSYS)
    done = run("nsys.sbatch", tools, CAPTURES=str(captures), SLURM_JOB_NAME="nightly", SLURM_JOB_ID="42")
    assert done.returncode == 0, done.stderr
    assert [one.name for one in captures_in(captures)] == ["nightly-42"]
    assert sorted(path.name for path in (captures / "nightly-42").iterdir()) == ["rank0.sqlite", "rank1.sqlite"]


def test_a_job_that_fails_under_nsys_leaves_nothing_to_take(tools, tmp_path):
    captures = tmp_path / "captures"
    captures.mkdir()
    stand_in(tools, "srun", 'SLURM_PROCID=0 "$@"; exit 1')
    stand_in(tools, "nsys", NSYS)
    done = run("nsys.sbatch", tools, CAPTURES=str(captures), SLURM_JOB_NAME="nightly", SLURM_JOB_ID="43")
    assert done.returncode == 1 and captures_in(captures) == []


def test_options_of_slurm_are_comments_before_the_first_command():
    lines = text_of("nsys.sbatch").splitlines()
    options = [at for at, line in enumerate(lines) if line.startswith("#SBATCH ")]
    assert options and all(lines[at].startswith("#") for at in range(options[-1] + 1))
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+=\S+", lines[at]) for at in options)


# What `dyno gputrace` prints, and Kineto's way of writing each file: as FILE.tmp, which is renamed.
DYNO = """
file=$(while [ $# -gt 0 ]; do [ "$1" = --log-file ] && echo "$2"; shift; done)
for pid in 11 12; do
  (sleep 0.2; echo '{' >"${file%.json}_$pid.json.tmp"; sleep 0.2; mv "${file%.json}_$pid.json.tmp" "${file%.json}_$pid.json") \
    >/dev/null &
done
echo 'response = {"processesMatched":[11,12]}'
echo 'Matched 2 processes'
echo 'Trace output files will be written to:'
for pid in 11 12; do echo "    ${file%.json}_$pid.json"; done
"""


def test_a_capture_on_demand_lands_when_all_processes_have_written(tools, tmp_path):
    stand_in(tools, "dyno", DYNO)
    done = run("dynolog.sh", tools, str(tmp_path / "captures"), "node7")
    assert done.returncode == 0, done.stderr
    (landed,) = captures_in(tmp_path / "captures")
    assert landed.name.startswith("on-demand-node7-")
    assert sorted(path.name for path in (tmp_path / "captures" / landed.name).iterdir()) == [
        "trace_11.json",
        "trace_12.json",
    ]


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("echo 'No processes were matched, please check --job-id or --pids flags'", "No processes were matched"),
        (DYNO.replace("sleep 0.2; mv", "exit; mv"), "not there after 0 s"),
        ("echo refused >&2; exit 1", "refused"),
    ],
    ids=["none", "never", "no daemon"],
)
def test_a_capture_on_demand_that_comes_to_nothing(tools, tmp_path, does, said):
    stand_in(tools, "dyno", does)
    done = run("dynolog.sh", tools, str(tmp_path / "captures"), PATIENCE="0")
    assert done.returncode == 1 and said in done.stderr
    assert captures_in(tmp_path / "captures") == []


class _Profile:
    """A profiler that calls back once it has recorded, and writes what a test can look at."""

    def __init__(self, on_trace_ready: Callable[[_Profile], None], **settings: Any) -> None:
        self.ready, self.settings, self.step_num = on_trace_ready, settings, 0
        self.seen: list[list[str]] = []
        self.written: list[Path] = []

    def step(self) -> None:
        self.step_num += 1
        if self.step_num % 2000 == 0:
            self.ready(self)

    def export_chrome_trace(self, path: str) -> None:
        self.written.append(Path(path))
        folder = Path(path).parent.parent
        Path(path).write_bytes(b"half")
        self.seen.append([one.name for one in captures_in(folder)])
        Path(path).write_bytes(b"whole")


@pytest.fixture
def torch(monkeypatch) -> ModuleType:
    """What the recipe imports of PyTorch."""
    modules = {name: ModuleType(name) for name in ("torch", "torch.profiler", "torch.distributed")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    modules["torch"].distributed = modules["torch.distributed"]
    modules["torch"].profiler = modules["torch.profiler"]
    profiler, distributed = modules["torch.profiler"], modules["torch.distributed"]
    profiler.profile = _Profile
    profiler.schedule = lambda **parts: parts
    profiler.ProfilerActivity = type("ProfilerActivity", (), {"CPU": 0, "CUDA": 1})
    distributed.is_available = lambda: True
    distributed.is_initialized = lambda: False
    return distributed


def test_captures_of_torch_land_whole(torch, tmp_path):
    recipe = runpy.run_path(str(RECIPES / "torch_captures.py"))
    prof = recipe["profiled"](str(tmp_path), "job-1")
    for _ in range(4000):
        prof.step()
    assert [one.name for one in captures_in(tmp_path)] == ["job-1-step2000", "job-1-step4000"]
    assert (tmp_path / "job-1-step2000" / "rank0.pt.trace.json.gz").read_bytes() == b"whole"
    assert prof.seen == [[], ["job-1-step2000"]], "what is being written is not seen"
    parts = prof.settings["schedule"]
    assert parts["wait"] + parts["warmup"] + parts["active"] == 2000


def test_a_job_of_torch_is_seen_when_its_last_rank_has_written(torch, tmp_path):
    recipe = runpy.run_path(str(RECIPES / "torch_captures.py"))
    torch.is_initialized = lambda: True
    seen: list[list[str]] = []
    torch.barrier = lambda: seen.append([one.name for one in captures_in(tmp_path)])
    profs = []
    for rank in (1, 0):  # rank 0 renames, behind the barrier
        torch.get_rank = lambda rank=rank: rank
        profs.append(recipe["profiled"](str(tmp_path), "job-1"))
    for prof in profs:
        prof.step_num = 1999
        prof.step()
    assert seen == [[], []]
    (landed,) = captures_in(tmp_path)
    assert sorted(path.name for path in (tmp_path / landed.name).iterdir()) == [
        "rank0.pt.trace.json.gz",
        "rank1.pt.trace.json.gz",
    ]


def parsed(words: Sequence[str]) -> None:
    """Parse a command line as ours are, without running it. Raises what says so for one that is wrong."""
    command: Any = get_command(program(own_commands()))
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context(words[0], rest)


def command_lines(text: str) -> Iterator[list[str]]:
    """Command lines of ours in a text: those that begin a line or follow a prompt, a path or a schedule, with their continuations."""
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"(?:^|[ /=])traceanalyzer ((?:watch|history|compare|check|report) [^`\n]*)", joined, re.M):
        words = shlex.split(re.split(r" (?:>>?|2>|\||#|&&) ?", line)[0], comments=True)
        if "…" not in words and "..." not in words:
            yield words


COMMANDS = [
    (page.name, words)
    for page in [*PAGES, *(RECIPES / name for name in ("nightly.yml", "crontab", "traceanalyzer-watch.service"))]
    for words in command_lines(page.read_text())
]


def test_there_are_command_lines():
    assert {"history.md", "watch.md", "nightly.yml", "crontab", "traceanalyzer-watch.service"} <= {
        name for name, _ in COMMANDS
    }


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_command_lines_are_ours(page, words):
    parsed(words)


def test_a_command_line_that_is_wrong_would_be_seen():
    with pytest.raises(Exception, match="No such option"):
        parsed(["watch", "in", "--history", "h", "--reports", "r", "--metric", "m"])


def test_the_cronjob():
    (job,) = yaml.safe_load_all(text_of("cronjob.yaml"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["concurrencyPolicy"] in ("Allow", "Forbid", "Replace")
    assert len(job["spec"]["schedule"].split()) == 5
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    (container,) = pod["containers"]
    assert container["command"] == ["traceanalyzer"] and "--once" in container["args"]
    parsed(container["args"])
    mounts = {one["name"]: one for one in container["volumeMounts"]}
    assert set(mounts) == {one["name"] for one in pod["volumes"]}
    written = [arg.partition("=")[2] for arg in container["args"] if "=/" in arg]
    assert len(written) == 4 and all(path.startswith(f"{mounts['kept']['mountPath']}/") for path in written)
    assert mounts["captures"]["readOnly"] and mounts["captures"]["mountPath"] == container["args"][1]
    assert "NODE_NAME" not in {one["name"] for one in container["env"]}, (
        "it would label captures with the host of the watcher"
    )


def test_the_workflow(tmp_path):
    path = tmp_path / "nightly-history.yml"
    path.write_text(text_of("nightly.yml"))
    check_valid(path, "github-workflows")
    workflow = yaml.safe_load(path.read_text())
    steps = workflow["jobs"]["gpu"]["steps"]
    assert all("${{" not in step.get("run", "") for step in steps)
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), "actions are pinned"


def test_the_unit():
    sections: dict[str, dict[str, str]] = {}
    for line in text_of("traceanalyzer-watch.service").replace("\\\n", " ").splitlines():
        if head := re.fullmatch(r"\[(\w+)\]", line):
            sections[head[1]] = {}
        elif line and not line.startswith("#"):
            key, sign, value = line.partition("=")
            assert sign and re.fullmatch(r"[A-Z]\w+", key)
            sections[list(sections)[-1]][key] = value
    assert list(sections) == ["Unit", "Service", "Install"]
    service = sections["Service"]
    words = shlex.split(service["ExecStart"])
    metrics = words[words.index("--metrics") + 1]
    writable = ["/var/lib/traceanalyzer", "/var/log/traceanalyzer", *service["ReadWritePaths"].split()]
    assert service["ProtectSystem"] == "strict" and f"/var/lib/{service['StateDirectory']}" in writable
    for option in ("--history", "--reports", "--log"):
        assert any(words[words.index(option) + 1].startswith(f"{one}/") for one in writable)
    assert str(Path(metrics).parent) in writable
    assert "143" in service["SuccessExitStatus"].split()


def test_systemd_takes_the_unit(tmp_path):
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / "traceanalyzer-watch.service"
    unit.write_text(text_of(unit.name).replace("/opt/traceanalyzer/bin/traceanalyzer", "/bin/true"))
    done = subprocess.run([systemd, "verify", "--man=no", unit], check=False, capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert done.returncode == 0 and not ours, done.stderr


def test_the_crontab():
    lines = [line for line in text_of("crontab").splitlines() if line and not line.startswith("#")]
    (job,) = [line for line in lines if not re.match(r"\w+=", line)]
    fields = job.split()
    assert all(re.fullmatch(r"[\d*/,-]+", one) for one in fields[:5]) and fields[5] == "traceanalyzer"
    assert "%" not in job and "--once" in fields, "cron reads % as the end of a line"


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Path:
    """Forty simulated nights."""
    place = tmp_path_factory.mktemp("kept") / "history"
    shelf = Shelf(place)
    for entry in entries_of(CASES[5], seed=1):
        shelf.add(entry, capture(entry.name))
    return place


def test_the_query_with_pandas(history):
    done = subprocess.run([sys.executable, RECIPES / "query.py", history], check=True, capture_output=True, text=True)
    assert "unit_ns" in done.stdout and "idle.host_work" in done.stdout and "project" in done.stdout


def test_the_query_with_duckdb(history, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(history.parent)
    old = text_of("query.sql").replace(
        "now()", f"TIMESTAMPTZ '{datetime.fromtimestamp(1_703_500_000, UTC).isoformat()}'"
    )
    rows = duckdb.sql(old).fetchall()
    assert rows and rows[0][:2] == ("node1", "HST001")
