"""A package of somebody else that declares a derived table, and a user's rule over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kineto import KinetoTrace
from tests.support.strangers import ADDITIONS, RULE, Program, install, install_package
from traceanalyzer.exit_codes import ERROR


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "rule.yaml").write_text(RULE)
    trace = KinetoTrace()
    for at in range(9):
        trace.op(at * 100, at * 100 + (80 if at == 4 else 10), launch=(at * 100 - 8, at * 100 - 4))
    trace.write(tmp_path / "t.json")
    return Program(install(tmp_path / "site", "table"), tmp_path)


def test_a_rule_over_the_table_of_another_package_fires(program):
    (finding,) = (
        one for one in program.result("t.json", "--rules", "rule.yaml")["findings"] if one["rule"] == "ACM001"
    )
    assert finding["message"] == "1 operations are long, up to 80 us."
    assert [one["label"] for one in finding["evidence"]] == ["80 us, 4.50 times the mean"]


def test_its_rule_is_linted_tested_and_told(program):
    assert program.run("rules", "test", "rule.yaml").stderr == "2 passed, 0 failed\n"
    assert program.run("rules", "lint", "rule.yaml").returncode == 0
    assert '"long_operations"' in program.run("rules", "schema").stdout


@pytest.mark.parametrize(
    ("point", "says"),
    [
        (
            "strangers.nothing",
            "entry point 'long' (strangers.nothing) of traceanalyzer.derived cannot be loaded",
        ),
        ("strangers.long_operations:LONG", "is neither a sequence of Derived nor a module"),
        ("traceanalyzer.derive.copies.tables", "declares a table 'copies', and there is one of that name already"),
    ],
)
def test_an_entry_point_that_gives_no_declarations_is_told(program, point, says):
    install_package(program.site, "strangers", ADDITIONS["table"].files, {"traceanalyzer.derived": f"long = {point}"})
    done = program.run("analyze", "t.json")
    assert done.returncode == ERROR and done.stderr.startswith("error: ") and says in done.stderr
