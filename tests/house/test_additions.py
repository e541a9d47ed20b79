"""One package of somebody else adds one of everything, and the command line knows all of it; CONTRIBUTING says where each is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kineto import KinetoTrace
from tests.support.strangers import (
    ADDITIONS,
    ROOT,
    RULE,
    START_NS,
    Program,
    install,
    install_package,
    kernel_table,
    power_log,
)
from traceanalyzer.exit_codes import ERROR


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The whole package, and a run: a trace with one operation that is long, and beside it a log of power."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "run").mkdir()
    trace = KinetoTrace()
    trace.metadata |= {"distributedInfo": {"rank": 0, "world_size": 1}, "baseTimeNanoseconds": START_NS}
    for at in range(20):
        trace.op(at * 1000, at * 1000 + (800 if at == 4 else 100), launch=(at * 1000 - 20, at * 1000 - 15))
    trace.write(folder / "run" / "trace.json")
    power_log(folder / "run" / "power.log", "rank=0")
    kernel_table(folder / "kernels.csv")
    return Program(install(folder / "site"), folder)


def said(program: Program, *arguments: object) -> str:
    done = program.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ADDITIONS)
def test_each_is_one_file_or_folder(program: Program, name: str) -> None:
    one = ADDITIONS[name]
    assert (program.site / one.place).exists()
    assert all(file == one.place or file.startswith(f"{one.place}/") for file in one.files)
    assert len(one.points) == 1


def test_the_result_has_all_that_is_judged(program: Program) -> None:
    found = program.result("run")
    assert {"ACM001", "POW001"} <= {finding["rule"] for finding in found["findings"]}
    (long,) = (finding for finding in found["findings"] if finding["rule"] == "ACM001")
    assert long["message"] == "1 operations are long, up to 800 us." and long["evidence"]
    assert [(one["kind"], one["rank"], one["rows"]) for one in found["evidence"]] == [("power_log", 0, 20)]
    assert list(found["settings"]["own_rules"]) == ["ACM001"]


def test_the_report_has_both_sections(program: Program) -> None:
    said(program, "report", "run", "-o", "page.html")
    page = (program.folder / "page.html").read_text(encoding="utf-8")
    assert '<section id="weather">' in page and "#weather { color: red }" in page
    assert 'id="power-0"' in page and "20 samples, 90 W on average." in page
    assert "1 operations are long" in page


def test_the_output(program: Program) -> None:
    assert said(program, "analyze", "run", "--format", "haiku") == "Path: trace.json\n"
    assert said(program, "check", "run", "--assert", "power_log.mean < 100", "--format", "haiku") == "kept\n"


def test_the_command(program: Program) -> None:
    assert said(program, "greet", "run") == "hello run\n"
    assert "Say hello to a trace." in said(program, "--help")


def test_doctor_knows_both_kinds_of_files(program: Program) -> None:
    of_run, of_table = said(program, "doctor", "run"), said(program, "doctor", "kernels.csv")
    assert "power samples" in of_run and "20 rows" in of_run
    assert "kernel-logger" in of_table


def test_the_format_is_judged(program: Program) -> None:
    found = program.result("kernels.csv")
    assert [one["format"] for one in found["inputs"]] == ["kernel_csv"]
    assert found["devices"][0]["compute_ns"] == 4_000_000


def test_the_list_of_rules(program: Program) -> None:
    lines = said(program, "rules", "list").splitlines()
    assert lines[0].startswith("ACM001  long-operations")  # a stranger's rule claims first, as a user's does
    assert any(line.startswith("POW001") for line in lines)
    assert '"long_operations"' in said(program, "rules", "schema")
    assert "Long operations" in said(program, "rules", "show", "ACM001")


def test_a_store_keeps_them(program: Program) -> None:
    said(program, "ingest", "run", "-o", "store")
    assert program.result("store") == program.result("run")


TAKEN = RULE.replace("ACM001", "INP001")


@pytest.mark.parametrize(
    ("files", "point", "says"),
    [
        ({}, "json", "is no package with rules in it"),
        ({}, "json.tool", "is no package with rules in it"),
        ({}, "strangers.nothing", "'long' of strangers cannot be loaded"),
        ({"strangers/rules/compute/ACM001.yaml": "id: [\n"}, "strangers.rules", "rules/compute/ACM001.yaml:"),
        ({"strangers/rules/compute/INP001.yaml": TAKEN}, "strangers.rules", "INP001 is the id of"),
    ],
)
def test_a_package_without_good_rules_is_named(tmp_path: Path, files: dict[str, str], point: str, says: str) -> None:
    site = install(tmp_path / "site", "table")
    extra = {"strangers/rules/__init__.py": "", **files}
    points = {"traceanalyzer.derived": "long = strangers.long_operations", "traceanalyzer.rules": f"long = {point}"}
    install_package(site, "strangers", extra, points)
    done = Program(site, tmp_path).run("rules", "list")
    assert done.returncode == ERROR and done.stderr.count("\n") == 1 and says in done.stderr


def test_contributing_says_where_each_is_made() -> None:
    """Each row of the table names the group of entry points, and a place in the repository that exists."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## How many files an addition takes")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    groups = {group for one in ADDITIONS.values() for group in one.points}
    assert {word for row in rows for word in row.split("`") if word.startswith("traceanalyzer.")} == groups
    for row in rows:
        made = row.split("|")[2].split("`")[1]
        folder = made.partition("/NAME")[0].partition("/FAMILY")[0]
        assert (ROOT / folder).is_dir() or (ROOT / "traceanalyzer" / folder).is_dir(), made
    assert len(rows) == len(ADDITIONS)
