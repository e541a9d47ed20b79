"""What every command ends with, by what it is given: the table in docs/ci.md, cell by cell."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.cli.command import own_commands
from traceanalyzer.cli.commands import EPILOG

ROOT = Path(__file__).parents[2]
CLEAN = FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz"
SLOW = FIXTURES / "kineto" / "item_sync.slow.pt.trace.json.gz"
FIXED = FIXTURES / "kineto" / "item_sync.fixed.pt.trace.json.gz"
BUDGETS = "budgets:\n  - idle_share <= 99%\n"


@dataclass(frozen=True)
class Case:
    """`command` as typed, with words in capitals for inputs and OUT for the output; `written` says whether that is there at the end."""

    command: str
    code: int
    written: bool = True
    words: str = ""


CASES = [
    Case("analyze CLEAN -o OUT", 0),
    Case("analyze SLOW -o OUT", 0),
    Case("analyze CUT -o OUT", 0),
    Case("analyze CLEAN --fail-on high -o OUT", 0),
    Case("analyze SLOW --fail-on medium -o OUT", 1),
    Case("analyze CUT_SLOW --fail-on medium -o OUT", 1),
    Case("analyze EMPTY -o OUT", 2, False, "is empty"),
    Case("analyze MISSING --fail-on high -o OUT", 2, False, "no such file"),
    Case("analyze NO_GPU -o OUT", 3),
    Case("report CLEAN --fail-on high -o OUT", 0),
    Case("report SLOW --fail-on medium -o OUT", 1),
    Case("report EMPTY -o OUT", 2, False, "is empty"),
    Case("report NO_GPU -o OUT", 3),
    Case("check CLEAN --config BUDGETS -o OUT", 0),
    Case("check CLEAN --config TIGHT -o OUT", 1),
    Case("check CUT --config TIGHT -o OUT", 1),
    Case("check CLEAN -o OUT", 2, False),
    Case("check CLEAN --config MISSING -o OUT", 2, False),
    Case("check CLEAN --config WRONG -o OUT", 2, False),
    Case("compare CLEAN CLEAN -o OUT", 0),
    Case("compare SLOW FIXED -o OUT", 0),
    Case("compare BASELINE CLEAN -o OUT", 0),
    Case("compare FIXED SLOW -o OUT", 1),
    Case("compare FIXED SLOW --fail-over 100000% --fail-on-new low -o OUT", 1),
    Case("compare FIXED SLOW --fail-over 100000% -o OUT", 0),
    Case("compare CLEAN CLEAN --fail-over soon -o OUT", 2, False),
    Case("compare CLEAN OTHER_GPU -o OUT", 3),
    Case("baseline save CLEAN -o OUT", 0),
    Case("baseline show BASELINE", 0),
    Case("baseline show EMPTY", 2),
    Case("baseline show CLEAN", 2),
    Case("export CLEAN -o OUT", 0),
    Case("export EMPTY -o OUT", 2, False, "is empty"),
    Case("export NO_GPU -o OUT", 3),
    Case("doctor CLEAN -o OUT", 0),
    Case("doctor EMPTY -o OUT", 2, False, "is empty"),
    Case("doctor EMPTY_FOLDER -o OUT", 2, False, "holds no trace files"),
    Case("doctor NO_GPU -o OUT", 3),
    Case("doctor FEW_KERNELS -o OUT", 3),
    Case("ingest NO_GPU -o OUT", 0),
    Case("ingest CLEAN -o OUT", 0),
    Case("ingest EMPTY -o OUT", 2, False, "is empty"),
    Case("ingest EMPTY_FOLDER -o OUT", 2, False, "holds no trace files"),
    Case("history add CLEAN --to OUT", 0),
    Case("history add CUT --to OUT", 0),
    Case("history add EMPTY --to OUT", 2, False, "is empty"),
    Case("history add CLEAN --label nonsense --to OUT", 2, False, "NAME=VALUE"),
    Case("history show HISTORY -o OUT", 0),
    Case("history show MISSING -o OUT", 2, False, "holds no history"),
    Case("history report HISTORY -o OUT", 0),
    Case("history report MISSING -o OUT", 2, False, "holds no history"),
    Case("history fleet HISTORY -o OUT", 0),
    Case("history fleet HISTORY --since soon -o OUT", 2, False, "--since soon"),
    Case("watch EMPTY_FOLDER --once --settle 0 --history HISTORY --reports OUT", 0),
    Case("watch MISSING --once --history HISTORY --reports OUT", 2, False, "no such folder"),
]

GATES = [
    "analyze IT --fail-on high -o OUT",
    "report IT --fail-on high -o OUT",
    "check IT --config BUDGETS -o OUT",
    "compare CLEAN IT -o OUT",
    "compare IT CLEAN -o OUT",
    "baseline save IT -o OUT",
]

DAMAGED = {"EMPTY": 2, "EMPTY_FOLDER": 2, "NO_GPU": 3, "CUT": 3, "FEW_KERNELS": 3}
"""What passes no gate, and what each gate ends with."""

CASES += [
    Case(gate.replace("IT", capture), code, code == 3 and not gate.startswith("baseline"))
    for gate in GATES
    for capture, code in DAMAGED.items()
]


def _few_kernels(trace: dict) -> None:
    """Nine of ten kernels are gone; their launches stay."""
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    lost = {id(event) for at, event in enumerate(kernels) if at % 10}
    trace["traceEvents"] = [event for event in trace["traceEvents"] if id(event) not in lost]


def _other_gpu(trace: dict) -> None:
    for device in trace["deviceProperties"]:
        device["name"] = "Another GPU"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "empty").mkdir()

    def file(name: str, content: str | bytes) -> Path:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    def changed(name: str, change: Callable[[dict], None]) -> Path:
        trace = json.loads(gzip.decompress(CLEAN.read_bytes()))
        change(trace)
        return file(name, json.dumps(trace))

    return {
        "CLEAN": CLEAN,
        "SLOW": SLOW,
        "FIXED": FIXED,
        "EMPTY": file("empty.json", b""),
        "EMPTY_FOLDER": folder / "empty",
        "MISSING": folder / "missing.json",
        "NO_GPU": file("cpu.json", KinetoTrace().range("aten::add", 0, 10, category="cpu_op").text()),
        "CUT": file("cut.json", gzip.decompress(CLEAN.read_bytes())[:-20_000]),
        "CUT_SLOW": file("cut_slow.json", gzip.decompress(SLOW.read_bytes())[:-20_000]),
        "FEW_KERNELS": changed("few.json", _few_kernels),
        "OTHER_GPU": changed("other.json", _other_gpu),
        "BUDGETS": file("budgets.yaml", BUDGETS),
        "TIGHT": file("tight.yaml", BUDGETS.replace("99%", "0.1%")),
        "WRONG": file("wrong.yaml", BUDGETS.replace("idle_share", "idel_share")),
        "BASELINE": folder / "baseline.json",
        "HISTORY": folder / "history",
    }


@pytest.fixture
def called(capsysbinary, inputs) -> Callable[..., tuple[int, str, str]]:
    def call(command: str, out: Path) -> tuple[int, str, str]:
        if "BASELINE" in command and not inputs["BASELINE"].exists():
            assert run(capsysbinary, "baseline", "save", CLEAN, "-o", inputs["BASELINE"])[0] == 0
        if "HISTORY" in command and not inputs["HISTORY"].exists():
            assert run(capsysbinary, "history", "add", CLEAN, "--to", inputs["HISTORY"])[0] == 0
        places = {**inputs, "OUT": out}
        return run(capsysbinary, *(places.get(word, word) for word in command.split()))

    return call


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command)
def test_each_command_ends_as_the_table_says(called, tmp_path, case):
    out = tmp_path / "out"
    code, stdout, stderr = called(case.command, out)
    assert code == case.code, stderr
    assert "Traceback" not in stderr and case.words in stderr
    assert stderr.startswith("error: ") == (code == 2 or not case.written)
    if stderr.startswith("error: "):
        assert stderr.count("\n") == 1 and not stdout
    if "OUT" in case.command:
        assert out.exists() == case.written and not stdout
    assert [path.name for path in tmp_path.iterdir()] in ([], ["out"]), "nothing half-written"


def table() -> dict[str, dict[int, str]]:
    """The table of docs/ci.md: what stands under each code, by command."""
    section = (ROOT / "docs" / "ci.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    assert rows[0] == ["command", "0", "1", "2", "3"]
    return {
        command: dict(enumerate(cells)) for first, *cells in rows[2:] for command in re.findall(r"`([^`]+)`", first)
    }


def verb(case: Case) -> str:
    return re.match(r"(?:baseline |history )?\w+", case.command)[0]


@pytest.mark.parametrize("command", table())
def test_the_table_names_the_codes_that_happen_and_no_others(command):
    named = {code for code, words in table()[command].items() if words}
    assert named == {case.code for case in CASES if verb(case) == command}


def test_every_command_that_reads_a_trace_is_in_the_table():
    assert set(table()) == {verb(case) for case in CASES}
    names = {one.name for one in own_commands()}
    assert names - {"rules"} == {command.split()[0] for command in table()}


def test_the_readme_and_the_help_say_the_same_in_short():
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"^\| (\d) \| ", readme, re.M) == ["0", "1", "2", "3"] == re.findall(r"\b(\d) [a-z]", EPILOG)
    assert "docs/ci.md#exit-codes" in readme
