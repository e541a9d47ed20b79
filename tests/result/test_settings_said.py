"""What a user set that changes how a trace is judged is in the result, in a capture, and in words: nothing is silenced unsaid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.support import captures
from tests.support.comparisons import capture
from tests.support.places import FIXTURES
from traceanalyzer.config import Config
from traceanalyzer.engine.rules.library import rule_files
from traceanalyzer.result.captures.baseline_file import read_baseline
from traceanalyzer.result.comparing import compare
from traceanalyzer.result.settings import Settings, Threshold, settings_apart, settings_sentence

SLOW = FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz"
LEAST = Threshold("INP001", "least", 0.99, 0.05, "share")
SAID = "Not judged with the defaults: INP001.least = 99% (default 5.0%)"
OWN = dict(rule_files())["rules/gaps/GAP001-gpu-gaps.yaml"].replace("id: GAP001", "id: OWN001", 1)


@pytest.fixture(scope="module")
def trace() -> ta.Trace:
    return ta.load(SLOW)


def test_defaults_say_nothing(trace) -> None:
    assert ta.analyze(trace).settings == Settings()
    assert ta.analyze(trace, Config(params={"INP001": {"least": "5%"}})).settings == Settings()
    assert settings_sentence(Settings()) is None


def test_all_that_is_not_as_shipped_is_in_the_result(trace) -> None:
    config = Config(
        input_patterns=("b*", "a*"),
        communication_patterns=("*ring*",),
        params={"LCH001": {"short": "50us"}, "INP001": {"least": "99%"}},
        disable={"KRN005": "by --disable", "GAP001": "by --disable"},
    )
    found = ta.analyze(trace, config)
    assert [(one.rule, one.name, one.value) for one in found.settings.thresholds] == [
        ("INP001", "least", 0.99),
        ("LCH001", "short", 50_000),
    ]
    assert found.settings.thresholds[0] == LEAST
    assert found.settings.disabled_rules == ["GAP001", "KRN005"]
    assert (found.settings.input_patterns, found.settings.communication_patterns) == (["a*", "b*"], ["*ring*"])
    assert ta.Result.from_json(found.to_json()) == found
    outcome = next(rule for rule in found.rules if rule.rule == "INP001")
    assert (outcome.outcome, outcome.reason) == ("clean", "judged with least = 99% (default 5.0%)")


def test_every_output_for_people_says_it(capsysbinary, tmp_path: Path) -> None:
    setting = ("--set", "INP001.least=99%")
    for format_ in ("text", "markdown"):
        _, out, _ = run(capsysbinary, "analyze", str(SLOW), "-f", format_, *setting)
        assert SAID in " ".join(out.replace("\\", "").split()), format_
        _, out, _ = run(capsysbinary, "analyze", str(SLOW), "-f", format_)
        assert "Not judged with the defaults" not in out
    for format_ in ("github", "sarif"):
        _, out, _ = run(capsysbinary, "analyze", str(SLOW), "-f", format_, *setting)
        assert SAID in out.replace("%25", "%")
    page = tmp_path / "report.html"
    run(capsysbinary, "report", str(SLOW), "-o", str(page), *setting)
    assert f"{SAID}." in page.read_text()
    assert "Judged with least = 99% (default 5.0%)" in page.read_text()


def test_a_baseline_carries_it_and_compare_and_check_say_it(capsysbinary, tmp_path: Path) -> None:
    kept, other = tmp_path / "base.json", tmp_path / "set.json"
    run(capsysbinary, "baseline", "save", str(SLOW), "-o", str(kept))
    run(capsysbinary, "baseline", "save", str(SLOW), "-o", str(other), "--set", "INP001.least=99%")
    assert read_baseline(kept).captures[0].settings == Settings()
    assert read_baseline(other).captures[0].settings == Settings([LEAST])
    told = "INP001.least as shipped in BASE, 99% (default 5.0%) in NEW"
    _, out, _ = run(capsysbinary, "compare", str(kept), str(other), "-f", "json")
    assert f"not judged by the same measures: {told}" in [note["message"] for note in json.loads(out)["notes"]]
    _, out, _ = run(capsysbinary, "compare", str(kept), str(other))
    assert told in " ".join(out.split())
    budget = ("--assert", "idle_share <= baseline.idle_share + 5%", "--baseline", str(kept))
    for format_ in ("text", "json", "markdown", "github"):
        _, out, _ = run(capsysbinary, "check", str(other), *budget, "-f", format_)
        out = " ".join(out.replace("\\", "").replace("%25", "%").split())
        assert SAID in out and "INP001.least as shipped in the baseline" in out, format_


def test_a_rule_of_the_users_is_named_with_what_it_says(trace, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    first = ta.analyze(trace, Config(rules=(file,))).settings
    assert list(first.own_rules) == ["OWN001"]
    assert settings_sentence(first) == "Not judged with the defaults: OWN001 a rule of your own"
    file.write_text(OWN + "# a remark\n")
    assert ta.analyze(trace, Config(rules=(file,))).settings == first
    file.write_text(OWN.replace("title: ", "title: Our ", 1))
    second = ta.analyze(trace, Config(rules=(file,))).settings
    assert settings_apart(first, second) == (
        "not judged by the same measures: the rule OWN001 is another one in BASE than in NEW"
    )


def test_two_sides_that_were_set_alike_are_said_too() -> None:
    alike = [capture(name, settings=Settings([LEAST])) for name in ("a", "b")]
    assert [note.message for note in compare(alike[:1], alike[1:]).notes if note.about == "settings"] == [SAID]
    plain = [capture(name, settings=Settings()) for name in ("a", "b")]
    assert not [note for note in compare(plain[:1], plain[1:]).notes if note.about == "settings"]


def test_a_file_from_before_is_taken_at_its_word_only_where_nothing_is_set() -> None:
    old = captures.capture()
    assert old.settings is None
    assert settings_apart(None, Settings()) is None and settings_apart(None, None) is None
    assert settings_apart(None, Settings([LEAST])) == (
        "BASE does not say how it was judged, NEW with INP001.least = 99% (default 5.0%)"
    )
    assert settings_apart(Settings(disabled_rules=["KRN005"]), None) == (
        "NEW does not say how it was judged, BASE with KRN005 switched off"
    )


def test_values_that_read_the_same_are_told_apart() -> None:
    close = Settings(
        [
            Threshold("A", "x", 0.9912, 0.991, "share"),
            Threshold("A", "n", 1, 2, None),
            Threshold("A", "t", "b", "a", None),
        ]
    )
    assert close.said() == {
        "A.x": "0.9912 share (default 0.991 share)",
        "A.n": "1 (default 2)",
        "A.t": "b (default a)",
    }
    many = Settings(disabled_rules=[f"R{n:03}" for n in range(9)])
    assert settings_sentence(many).endswith("R005 switched off and 3 more")
