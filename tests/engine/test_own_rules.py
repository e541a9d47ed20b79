"""A user's own rules beside the shipped ones, and rules that are switched off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.config import Config
from traceanalyzer.engine.rules.library import load_rules, rule_files
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.errors import ConfigError

SHIPPED = dict(rule_files())["rules/input/INP001-data-loader-stall.yaml"]
OWN = SHIPPED.replace("id: INP001", "id: ACM001", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules" / "deep").mkdir(parents=True)
    (tmp_path / "rules" / "deep" / "mine.yaml").write_text(OWN)
    (tmp_path / "rules" / "notes.txt").write_text("no rule")
    return tmp_path / "rules"


@pytest.fixture
def trace(tmp_path: Path) -> ta.Trace:
    made = KinetoTrace().op(0, 10, launch=(-5, -2)).range("get_batch", 12, 900).op(2000, 2010, launch=(990, 995))
    return ta.load(made.write(tmp_path / "t.json"))


def outcomes(result: ta.Result) -> dict[str, tuple[str, str | None]]:
    return {rule.rule: (rule.outcome, rule.reason) for rule in result.rules}


def test_they_claim_before_the_shipped_ones(folder, trace):
    result = ta.analyze(trace, Config(rules=(folder,)))
    recovered = {finding.rule: finding.saving.recoverable_ns for finding in result.findings}
    assert recovered["ACM001"] > 0 and recovered["INP001"] == 0
    assert [rule.rule for rule in result.rules].index("ACM001") == 0
    general = next(finding for finding in result.findings if finding.rule == "INP001")
    assert general.message.endswith("ACM001 already accounts for this time.")


def test_after_puts_them_behind(folder):
    file = folder / "deep" / "mine.yaml"
    file.write_text(OWN.replace("after: []", "after: [INP001]", 1))
    assert [rule.id for rule in load_rules([folder])][:2] == ["INP001", "ACM001"]


def test_a_file_that_is_named_twice_is_one_file(folder):
    assert [r.id for r in load_rules([folder, folder / "deep" / "mine.yaml"])].count("ACM001") == 1


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            "id: ACM001",
            "id: INP001",
            r":1:5: INP001 is the id of rules/input/INP001-data-loader-stall.yaml, which ships with",
        ),
        ("id: ACM001", "id: mine", r":1:5: an id is three capital letters"),
        ("sum(duration)", "sum(duraton)", r":\d+:13: unknown column 'duraton'; did you mean 'duration'\?"),
        ("slug: data-loader-stall", "slug: [", r":\d+:\d+: no YAML"),
        ("having:", "havving:", r":\d+:1: unknown key 'havving'; did you mean 'having'"),
    ],
)
def test_a_broken_one_stops_the_run_with_one_line(folder, trace, before, after, says):
    file = folder / "deep" / "mine.yaml"
    file.write_text(OWN.replace(before, after, 1))
    with pytest.raises(ConfigError, match=says) as error:
        ta.analyze(trace, Config(rules=(folder,)))
    assert str(error.value).startswith(f"{file}:") and "\n" not in str(error.value)


def test_two_of_them_with_one_id(folder):
    (folder / "other.yaml").write_text(OWN)
    with pytest.raises(ConfigError, match="has the id ACM001 of"):
        load_rules([folder])


def test_a_place_without_rules(tmp_path):
    with pytest.raises(ConfigError, match="no rule file"):
        load_rules([tmp_path / "nothing"])


def test_the_linter_knows_the_ids_that_are_taken():
    shipped = {"INP001": "rules/input/INP001-data-loader-stall.yaml"}
    (problem,) = lint_rules([("mine.yaml", SHIPPED)], shipped)
    assert re.match(r"INP001 is the id of .*; choose letters of your own", problem.message)
    assert lint_rules([("/checkout/rules/input/INP001-data-loader-stall.yaml", SHIPPED)], shipped) == []


def test_a_rule_that_is_switched_off_stays_visible(trace):
    on, off = ta.analyze(trace), ta.analyze(trace, Config(disable={"INP001": "in pyproject.toml"}))
    assert "INP001" in [finding.rule for finding in on.findings]
    assert "INP001" not in [finding.rule for finding in off.findings]
    assert outcomes(off)["INP001"] == ("not_applicable", "switched off in pyproject.toml")
    assert list(outcomes(on)) == list(outcomes(off))


def test_what_a_rule_leaves_goes_to_the_next(trace):
    off = ta.analyze(trace, Config(disable={"INP001": "by --disable"}))
    assert {"GAP001"} <= {finding.rule for finding in off.findings if finding.saving.recoverable_ns}


def test_a_rule_that_is_not_there_cannot_be_switched_off(trace):
    with pytest.raises(ConfigError, match="no rule 'INP01' to switch off, as said by --disable; did you mean 'INP001'"):
        ta.analyze(trace, Config(disable={"INP01": "by --disable"}))


def test_thresholds_of_ones_own(folder, trace):
    result = ta.analyze(trace, Config(rules=(folder,), params={"ACM001": {"least": "99%"}}))
    assert outcomes(result)["ACM001"][0] == "clean"
