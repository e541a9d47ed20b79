from __future__ import annotations

import re

import pytest

from traceanalyzer.engine.rules.library import rule_files
from traceanalyzer.engine.rules.lint import lint_rules

FILE = "rules/input/INP001-data-loader-stall.yaml"
GOOD = dict(rule_files())[FILE]


def lint(text: str) -> list[str]:
    return [str(problem) for problem in lint_rules([(FILE, text)])]


def changed(before: str, after: str) -> list[str]:
    assert before in GOOD
    return lint(GOOD.replace(before, after, 1))


def test_good() -> None:
    assert lint(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('where: cause == "input"', 'where: caus == "input"', r":14:8: unknown column 'caus'; did you mean 'cause'\?"),
        ('where: cause == "input"', "where: sum(duration) > 1ns", r":14:8: .*sum\(\) sums up a group"),
        ('where: cause == "input"', "where: duration > 5%", r"cannot compare a time and a share"),
        (
            "having: lost >= params.least * window.duration",
            "having: lost >= params.least",
            r":\d+:9: .*a time and a share",
        ),
        ("from: gaps", "from: gasp", r":13:7: unknown table 'gasp'; did you mean 'gaps'\?"),
        ("tables: [gaps]", "tables: [gabs]", r":\d+:\d+: unknown table 'gabs'"),
        (
            "claims: [idle.input]",
            "claims: [idle.inptu]",
            r":\d+:10: unknown ledger line 'idle.inptu'; did you mean 'idle.input'",
        ),
        ("group_by: [rank, device]", "group_by: [rank, devise]", r":\d+:18: unknown column 'devise'"),
        ("category: input", "category: inputs", r"'category' is one of .*did you mean 'input'"),
        ("status: stable", "status: ready", r"'status' is one of preview, stable, deprecated"),
        ("having:", "havving:", r":\d+:1: unknown key 'havving'; did you mean 'having'"),
        ("  lost: idle time", "  lots: idle time", r"'lots' is no metric; did you mean 'lost'"),
        ("  lost: idle time", "  lost: 3", r"'lost' needs words for what it is"),
        ("figures:\n", "  most: lost > 5ms\nfigures:\n  most: mostly\n", r"'most' is true or false"),
        ("title: The", "id: INP001\ntitle: The", r":3:1: 'id' is written twice"),
        ("slug: data-loader-stall\n", "", r":1:1: 'slug' is missing"),
        ("default: 5%, why:", "default: 5%, wy:", r"threshold 'least' needs a 'why'"),
        ("default: 5%, why:", "why:", r"threshold 'least' needs a 'default'"),
        ("{share:percent}", "{sahre:percent}", r"unknown name 'sahre'; did you mean 'share'"),
        ("{share:percent}", "{lost:percent}", r"'percent' cannot write a time"),
        ("{share:percent}", "{share", r"has no partner"),
        ("(`num_workers=0`)", "(`num_workers=0)", r"a backtick that none closes"),
        ("recoverable: lost,", "recoverable: share,", r"what is recoverable is a time"),
        ("claims: [idle.input]\n", "", r"'claims' and 'saving' come together"),
        ("id: INP001", "id: input1", r"an id is three capital letters"),
        ("slug: data-loader-stall", "slug: Data Loader", r"a slug is lower-case"),
        ("after: []", "after: INP002", r":6:8: 'after' must be a list of texts"),
        ("after: []", "after: [INP001]", r"cannot come after itself"),
        ("confidence: high", "confidence: sure", r"'confidence' is one of"),
        ("expect: could_not_judge", "expect: maybe", r"'expect' is one of fires, clean"),
        ("id: INP001", "id: &a INP001", r":1:5: anchors and aliases are not allowed"),
        ("id: INP001", "id: [", r"no YAML"),
        ("healthy: [TRC002]", "healthy: [TCR002]", r":10:\d+: 'TCR002' is no health code"),
        ("    pytorch: >-", "    pytroch: >-", r":\d+:14: unknown audience 'pytroch'; did you mean 'pytorch'"),
        ("when: contains(loader", "when: contians(loader", r"unknown function 'contians'; did you mean 'contains'"),
    ],
)
def test_each_kind_of_mistake(before: str, after: str, says: str) -> None:
    found = changed(before, after)
    assert any(re.search(says, problem) for problem in found), found
    assert all(re.match(rf"{re.escape(FILE)}:\d+:\d+: ", problem) for problem in found)


def test_keys_out_of_order() -> None:
    text = GOOD.replace("slug: data-loader-stall\n", "", 1).replace(
        "status: stable", "status: stable\nslug: data-loader-stall"
    )
    assert any("'slug' comes before 'status'" in problem for problem in lint(text))


def test_missing_tests() -> None:
    without = GOOD[: GOOD.index("tests:")]
    assert any("'tests' is missing" in problem for problem in lint(without))
    found = lint(without + "tests: []\n")
    assert any("no test must fire" in p for p in found) and any("no test must stay silent" in p for p in found)


def test_doubled_ids() -> None:
    problems = [str(problem) for problem in lint_rules([("a.yaml", GOOD), ("b.yaml", GOOD)])]
    assert problems == ["b.yaml:1:5: the id INP001 is already that of a.yaml"]


@pytest.mark.parametrize(
    "text", ["", "- a\n- b\n", "just words", "[" * 5000, "!!python/object/apply:os.system ['true']"]
)
def test_what_is_no_rule_at_all(text: str) -> None:
    assert len(lint(text)) == 1


def test_all_mistakes_are_found_in_one_run() -> None:
    text = (
        GOOD.replace("status: stable", "status: ready")
        .replace("sum(duration)", "sum(durtion)")
        .replace("from: gaps", "from:  gaps")
    )
    assert len(lint(text)) == 2
