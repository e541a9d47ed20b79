"""The vocabulary: each word once, each row whole, and none of them spelled anywhere else in the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from traceanalyzer.vocabulary import health, levels, lines, losses

ROOT = Path(__file__).parents[2]
PACKAGE, TEMPLATES = ROOT / "traceanalyzer", ROOT / "templates"
OTHER_MEANINGS = {
    ("ingest/formats/nsys/sqlite/selects.py", "low"),  # the least and the most of a column
    ("ingest/formats/nsys/sqlite/selects.py", "high"),
    ("render/prometheus.py", "info"),  # a kind of metric
    ("report/charts/figure.py", "medium"),  # sizes of charts
    ("report/charts/heat.py", "medium"),
    ("report/charts/late.py", "medium"),
    ("report/stills/chart.py", "medium"),
}
"""Words of the vocabulary that mean something else there."""
LEVEL = set(levels.SEVERITIES)
# An error is many things; the other outcomes of rules are nothing else.
OUTCOME = set(levels.OUTCOMES) - {levels.ERROR}
# Names of lines, columns and causes that mean nothing else.
PLAIN = {
    *(name for name in lines.LINES if re.search(r"[._]", name)),
    *(line.column for line in lines.LINES.values() if "_" in line.column),
    *(cause for cause in lines.IDLE_CAUSES if "_" in cause or cause in ("turnaround", "unattributed")),
    *(losses.LAUNCH_COPIES.name, losses.START_UP.name),
}
# Those that are kinds of events, tables or files as well: they count where they are said of a cause or a line.
CAUSE = {*lines.IDLE_CAUSES, *lines.LINES, *losses.CAUSES, *losses.BOUNDS}
HOLDERS = {"cause", "line", "bound_by", "late_cause"}
ONLY_CAUSES = set(lines.IDLE_CAUSES) - {"mpi", "os"}


def spelled(source: str) -> list[tuple[int, str]]:
    """The line and the word of each literal that spells a code, a level, an outcome, a cause or a line of the ledger."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    words = {(node.lineno, node.value) for node in ast.walk(tree) if _text(node) is not None and id(node) not in docs}
    plain = {
        (at, word)
        for at, word in words
        if word in LEVEL | OUTCOME | PLAIN or re.search(r"\bTRC\d{3}\b|^idle[._]$", word)
    }
    held = {(node.lineno, node.value) for node in _held(tree, HOLDERS) if _text(node) in CAUSE}
    held |= {(node.lineno, node.value) for node in _held(tree, {"outcome"}) if _text(node) == levels.ERROR}
    return sorted(plain | held)


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _name(node: ast.AST) -> str | None:
    """`x.cause`, `row["cause"]` and `cause` are all called cause."""
    if isinstance(node, ast.Subscript):
        return _text(node.slice)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _items(node: ast.AST) -> list[ast.AST]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]


def _held(tree: ast.AST, holders: set[str]) -> Iterator[ast.AST]:
    """The literals that are said of something called so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_name(side) in holders for side in sides):
                yield from (item for side in sides for item in _items(side))
        elif isinstance(node, ast.keyword) and node.arg in holders:
            yield node.value
        elif isinstance(node, ast.Call):
            texts = [_text(argument) for argument in node.args]
            if holders.intersection(filter(None, texts)):
                yield from node.args
            if _name(node.func) == "Verdict":
                yield from node.args[:1]
        elif isinstance(node, ast.Dict):
            yield from (
                value for key, value in zip(node.keys, node.values, strict=True) if key and _text(key) in holders
            )
            yield from _group([key for key in node.keys if key])
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield from _group(list(node.elts))


def _group(nodes: list[ast.AST]) -> list[ast.AST]:
    """All of a list of words that are nothing but causes."""
    words = [_text(node) for node in nodes]
    return nodes if len(words) > 1 and CAUSE.issuperset(words) and ONLY_CAUSES.intersection(words) else []


MODULES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] != "vocabulary"
)


def test_no_module_spells_a_word_of_the_vocabulary():
    found = [
        f"{module}:{at}: {word!r}"
        for module in MODULES
        for at, word in spelled((PACKAGE / module).read_text(encoding="utf-8"))
        if (module, word) not in OTHER_MEANINGS
    ]
    assert found == [], "take these from traceanalyzer.vocabulary"


def test_no_template_spells_one():
    form = re.compile(r"TRC\d{3}|\bidle[.][a-z]|([\"'])(?:info|low|medium|high)\1")
    found = [
        f"{path.name}:{at}: {match[0]}"
        for path in sorted(TEMPLATES.iterdir()) if path.suffix in (".j2", ".js")
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in form.finditer(line)
    ]  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    "code, word",
    [
        ('sink.health("TRC001", severity, message)', "TRC001"),
        ('note = f"{rank}: TRC010 says so"', ": TRC010 says so"),
        ('worst = "low" if sound else grave', "low"),
        ('LEVELS = {"high": 1}', "high"),
        ('of("idle.host_work")', "idle.host_work"),
        ('name = f"idle.{cause}"', "idle."),
        ('ns("exposed_memcpy", about)', "exposed_memcpy"),
        ('take("host_untraced", spans)', "host_untraced"),
        ('frames.equals(gaps, "cause", "input")', "input"),
        ('row["cause"] == "mpi"', "mpi"),
        ('finding.line in ("compute", other)', "compute"),
        ('Verdict("unknown", headline)', "unknown"),
        ('Device(bound_by="launch")', "launch"),
        ('{"cause": "host", "ns": 1}', "host"),
        ('LATE = ("queued", "dependency")', "queued"),
        ('RuleOutcome(rule.id, "fired", None)', "fired"),
        ('rule.outcome in ("could_not_judge", other)', "could_not_judge"),
        ('rule.outcome == "error"', "error"),
        ('Expectation(outcome="error")', "error"),
    ],
)
def test_a_planted_word_is_found(code, word):
    assert word in [found for _, found in spelled(f'"""About low and TRC001."""\n{code}\n')]


@pytest.mark.parametrize(
    "code",
    [
        'frames.equals(ops, "class", "communication")',
        'folder / "input"',
        'KINDS = ("compute", "communication", "memcpy", "memset")',
        'one.level == "error"',
        '{"mpi": "MPI call", "os": "call of the operating system", "python": "frame"}',
        'def f():\n    """What is low, and of TRC001."""\n    return "lower"',
    ],
)
def test_the_same_word_for_something_else_is_left_alone(code):
    assert spelled(code) == []


def test_every_exception_is_still_one():
    used = {(module, word) for module in MODULES for _, word in spelled((PACKAGE / module).read_text(encoding="utf-8"))}
    assert used >= OTHER_MEANINGS


def test_lists_and_types_agree():
    assert get_args(levels.Severity) == levels.SEVERITIES
    assert get_args(levels.Confidence) == levels.CONFIDENCES
    assert get_args(levels.Outcome) == levels.OUTCOMES
    assert get_args(health.HealthCode) == tuple(health.MEANING)


def test_rows_have_all_their_words():
    for line in lines.LINES.values():
        assert line.words and line.meaning and line.share
        assert line.lost_to in (*losses.CAUSES, "compute")
        assert line.doing is None or "{more}" in line.doing
    assert [line.name for line in lines.LINES.values() if not line.loss] == ["compute"]
    for cause in losses.CAUSES.values():
        assert cause.bound_by in losses.BOUNDS
        assert ("{much}" in cause.words) == cause.idle


def test_words_of_lines_that_only_a_later_version_knows():
    assert lines.line_words("idle.new_cause") == "idle: new cause"
    assert lines.line_words("new_line") == "new line"
    assert lines.cause_words("new_cause") == "new cause"
    assert lines.step_words("idle.new_cause") == "new cause"
    assert losses.bound_by_words("new") == "new"
