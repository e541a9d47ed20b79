"""Small rules with large costs are refused, at lint time where that can be told, and rules that are no rules say where."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.test_cli import refused
from tests.support.files import bound_socket
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.expression import compile_expression
from traceanalyzer.engine.language.kinds import NUMBER, TEXT
from traceanalyzer.engine.language.message import LONGEST_MESSAGE, compile_message
from traceanalyzer.engine.language.names import Names
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.engine.rows import TableRows, Windows
from traceanalyzer.engine.rules.library import load_rules, parse_rules, read_files
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.engine.rules.overrides import with_overrides
from traceanalyzer.engine.rules.scenario import Scenario
from traceanalyzer.engine.rules.yamlfile import YamlError, read_yaml
from traceanalyzer.engine.run import run_rules
from traceanalyzer.errors import ConfigError
from traceanalyzer.units import parse_quantity

RULE = """id: ACM001
slug: a-rule
title: A rule
status: preview
category: host
why: x
from: gpu_ops
group_by: [GROUPS]
metrics:
  n: count()
  m0: top(name, duration)
METRICSmessage: "MESSAGE"
recommend: [{any: ADVICE}]
references: []
tests:
  - given: {gpu_ops: [{kind: kernel, name: abc, duration: 1us}]}
    expect: fires
  - given: {gpu_ops: []}
    expect: clean
"""


def rule(groups: str = "rank", metrics: str = "", message: str = "{n}", advice: str = "x") -> str:
    made = RULE.replace("GROUPS", groups).replace("METRICS", metrics)
    return made.replace("MESSAGE", message).replace("ADVICE", advice)


def problem(text: str) -> str:
    (found,) = lint_rules([("a.yaml", text)])
    return str(found)


def brief(value: object) -> str:
    """An id of a case whose text is long."""
    return ascii(value)[:30]


def test_the_rule_is_fine():
    assert lint_rules([("a.yaml", rule())]) == []


def test_a_text_that_doubles_is_told_by_the_linter():
    joined = "".join(f"  m{n}: concat({', '.join([f'm{n - 1}'] * 16)})\n" for n in range(1, 7))
    assert problem(rule(metrics=joined)).startswith("a.yaml:13:7: this text may be 256,000 characters long")
    branch = "".join(
        f"  m{n}: if_else(n > 0, concat(m{n - 1}, m{n - 1}), coalesce(m{n - 1}, m0))\n" for n in range(1, 30)
    )
    assert "characters long" in problem(rule(metrics=branch))
    assert lint_rules([("a.yaml", rule(metrics="  m1: concat(m0, ' and ', m0)\n"))]) == []


def test_a_text_that_becomes_too_long_for_names_alone_fails_its_rule():
    text = rule(metrics="  m1: concat(" + ", ".join(["m0"] * 16) + ")\n", message="{m1:text}")
    (one,) = parse_rules([("a.yaml", text)])
    given_rows = {"gpu_ops": [{"kind": "kernel", "name": "x" * 100_000, "duration": "1us"}]}
    (outcome,) = run_rules([one], Scenario(given_rows)).outcomes
    assert outcome.outcome == "error" and "concat makes texts of 1,600,000 bytes" in (outcome.reason or "")


def test_texts_of_all_rows_are_bounded_too(monkeypatch):
    monkeypatch.setattr(compute, "MOST_JOINED", 1000)
    names = pa.array(["x" * 100] * 6)
    assert compute.concat(names, pa.scalar("y"))[0].as_py() == "x" * 100 + "y"
    with pytest.raises(ValueError, match="concat makes texts of 1,200 bytes"):
        compute.concat(names, names)


def test_comparisons_that_are_nested_are_looked_at_once_each():
    """Each level twice would take 2^36 visits, and as many runs."""
    text = "n == 1"
    for _ in range(36):
        text = f"(true == {text} == true)" if text != "n == 1" else "(true == (n == 1))"
    names = Names({"n": NUMBER}, {}, None)
    rows = TableRows(pa.table({"n": [1, 2]}), Windows(Scenario({}).table("ledger")), {})
    assert compile_expression(text, names)(rows).to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n > 9**9**9", "Pow is not part"),
        ("n > 1e400", "not part of the rule language"),
        ("n > 1e400us", "'1e400us' is too large"),
        ("n > " + "9" * 1500 + "us", "us' is too large"),
        ("n > " + "9" * 1500, "not part of the rule language"),
        ("(" * 900 + "n" + ")" * 900, "no expression"),
        ("-" * 1900 + "n", "deeper than 40"),
        ("not " * 400 + "true", "deeper than 40"),
        ("n" * 3000, "longer than 2,000"),
        ("n\0", "no expression"),
        ("matches(a, '((a{100}){100}){100}')", "Invalid regular expression"),
    ],
    ids=brief,
)
def test_expressions_that_ask_for_much(text, says):
    with pytest.raises(ExpressionError, match=says.replace("(", "\\(")):
        compile_expression(text, Names({"n": NUMBER, "a": TEXT}, {}, None))


def test_messages_are_bounded_as_written_and_as_read():
    assert "at most 2,000 characters" in problem(rule(message="x" * 2001))
    quotes = '{"' * 1000
    with pytest.raises(ExpressionError):
        compile_message(quotes, Names({}, {}, None, {}))
    (one,) = parse_rules([("a.yaml", rule(message="{m0:text}" * 200))])
    (found,) = run_rules(
        [one], Scenario({"gpu_ops": [{"kind": "kernel", "name": "x" * 9000, "duration": "1us"}]})
    ).findings
    assert len(found.message) <= LONGEST_MESSAGE < 200 * 600


def test_findings_that_nobody_could_read_fail_their_rule():
    rows = {"gpu_ops": [{"kind": "kernel", "name": "x", "duration": "1us", "stream": n} for n in range(1000)]}
    for text, outcome in ((rule("stream"), "fired"), (rule("stream", advice="y" * 40_000), "error")):
        (one,) = parse_rules([("a.yaml", text)])
        (ended,) = run_rules([one], Scenario(rows)).outcomes
        assert ended.outcome == outcome
    assert "more than anybody reads" in (ended.reason or "")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            "  - given: {gpu_ops: []}\n",
            "  - {given: {}, expect: clean}\n" * 101 + "  - given: {}\n",
            "at most 100 tests",
        ),
        ("{gpu_ops: []}", "{gpu_ops: [{repeat: 90000}, {repeat: 90000}]}", "more than 100,000 rows"),
        ("{gpu_ops: []}", "{gpu_ops: [{repeat: 60000}], api_calls: [{repeat: 60000}]}", "more than 100,000 rows"),
        ("{gpu_ops: []}", "{gpu_ops: [" + "{repeat: 90000}, " * 3 + "]}", "more than 100,000 rows"),
        (
            "  - given: {gpu_ops: []}\n",
            "  - {given: {gpu_ops: [{repeat: 1000000000}]}}\n" * 3 + "  - given: {}\n",
            "200,000 rows together",
        ),
        ("{gpu_ops: []}", "{window: [" + "{}, " * 40 + "]}", "more than 32 GPUs"),
        ("  n: count()\n", "  n: count()\n" + "".join(f"  a{n}: count()\n" for n in range(250)), "at most 200 metrics"),
        ("from: gpu_ops\n", "from: gpu_ops\nlimit: 100000\n", "from 1 to 1000"),
    ],
    ids=brief,
)
def test_tests_metrics_and_evidence_are_counted(before, after, says):
    assert any(says in str(one) for one in lint_rules([("a.yaml", rule().replace(before, after))]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!python/object:os.system x", "1:4: tags are not allowed"),
        ("a: !!bool x", "1:4: tags are not allowed"),
        ("a: !!float ''", "1:4: tags are not allowed"),
        ("a: ! x", "1:4: tags are not allowed"),
        ("a: &x [1]\nb: *x", "1:4: anchors and aliases"),
        ("a: 1\nb: {<<: *a}", "2:9: anchors and aliases"),
        ("a: 1\na: 2", "2:1: 'a' is written twice"),
        ("a: b\nc: \0x", "2:4: the character U+0000 is not allowed"),
        ("a: \x1b", "1:4: the character U+001B"),
        ("a:\n\tb: 1", "2:1: no YAML"),
        ("[" * 100_000, "1:1001: no YAML"),
        ("- " * 50_000, "nested deeper than 20"),
        ("a: " + "x" * 300_000, "longer than 200,000"),
        ("? [a]\n: b", "a key must be a text"),
        ("a: 1\n---\nb: 2", "single document"),
    ],
    ids=brief,
)
def test_yaml_that_is_refused_says_where(text, says):
    with pytest.raises(YamlError) as error:
        read_yaml(text)
    assert says in f"{error.value.mark.line}:{error.value.mark.column}: {error.value}"


@pytest.mark.parametrize(
    "number",
    ["1" + ":10" * 60_000, "0x" + "f" * 190_000, "9" * 190_000, "0" + "7" * 190_000, ".inf", ".nan", "1e400"],
    ids=["base 60", "hexadecimal", "decimal", "octal", "infinity", "none", "float"],
)
def test_numbers_that_no_table_holds_are_texts(number):
    assert read_yaml(f"a: {number}").data == {"a": number}
    assert read_yaml("a: 20\nb: 1e3\nc: -0x10").data == {"a": 20, "b": "1e3", "c": -16}


@given(st.text(max_size=60) | st.from_regex(r"[0-9.eE+-]{1,30}(us|ms|s|%|GiB|B)?", fullmatch=True))
def test_quantities_are_read_or_refused(text):
    try:
        value, _ = parse_quantity(text)
    except ValueError:
        return
    assert -(1 << 63) < value < (1 << 63) or isinstance(value, float)


PIECES = st.sampled_from(
    [
        *(
            "null",
            "[]",
            "{}",
            "[[1]]",
            "{a: {b: c}}",
            "-1",
            "1e400",
            "9" * 30,
            ".nan",
            "'",
            '"',
            "{n:text}",
            "{{",
            "}",
            ": ",
        ),
        *("- ", "#", "\t", "\x1b", "&a", "*a", "!!int x", "? ", "|", "count()", "top(name, duration)", "9**9", "0 / 0"),
        *("repeat: 3", "rank: a", "duration: -1s"),
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 8), PIECES), min_size=1, max_size=4))
def test_a_rule_that_was_tampered_with_is_linted(changes):
    text = rule(metrics="  m1: concat(m0, 'x')\n")
    for at, length, piece in changes:
        text = text[:at] + piece + text[at + length :]
    for found in lint_rules([("a.yaml", text)]):
        assert found.line >= 1 and found.column >= 1 and found.message


@given(st.text(max_size=200))
def test_any_text_is_an_expression_a_message_and_a_document_or_refused(text):
    names = Names({"n": NUMBER, "a": TEXT}, {}, None, {})
    for read, error in (
        (lambda: compile_expression(text, names), ExpressionError),
        (lambda: compile_message(text, names), ExpressionError),
        (lambda: read_yaml(text), YamlError),
    ):
        with suppress(error):
            read()


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 1 << 64, int("f" * 9000, 16), "1e400us", "9" * 5000 + "us"],
    ids=["nan", "inf", "65 bits", "36,000 bits", "float", "5,000 digits"],
)
def test_thresholds_that_are_no_amounts(value):
    with pytest.raises(ConfigError) as error:
        with_overrides(load_rules(), {"LCH001": {"short": value}})
    assert "LCH001.short is a time, but '" in str(error.value) and len(str(error.value)) < 200


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "loop", "binary", "large"])
def test_what_is_no_rule_file_is_named_and_waited_for_by_nobody(capsysbinary, tmp_path, kind):
    file = tmp_path / "x.yaml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "socket":
            bound_socket(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "loop":
            file.symlink_to(file)
        case "binary":
            file.write_bytes(b"id: \n\xff")
        case "large":
            file.write_bytes(b"x" * 1_000_000)
    for command in (["rules", "lint", tmp_path], ["rules", "list", "--rules", tmp_path]):
        assert str(file) in refused(capsysbinary, *command)


def test_a_folder_with_loops_and_far_too_many_files(tmp_path):
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "sub.yaml").mkdir()
    (tmp_path / "a.yaml").write_text(rule())
    assert [Path(name).name for name, _ in read_files(tmp_path)] == ["a.yaml"]
    for number in range(1001):
        (tmp_path / f"{number}.yml").touch()
    with pytest.raises(ConfigError, match="more than 1,000 rule files"):
        read_files(tmp_path)
