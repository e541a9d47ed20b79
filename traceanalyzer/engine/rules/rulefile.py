"""Reads a rule file and notes what is wrong with its form.

Reading never stops at the first mistake: it collects every Problem and builds as much of the rule as it can, so that one run of the
linter shows them all.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any, TypeVar

from traceanalyzer.engine.language.kinds import number
from traceanalyzer.engine.rules.rule import Expectation, Param, Problem, Requires, Rule, RuleTest, Saving, literal_of
from traceanalyzer.engine.rules.rule_schema import (
    ABSTAIN,
    EVIDENCE_LIMIT,
    EXPECT,
    EXPECTED,
    MOST_EVIDENCE,
    MOST_METRICS,
    MOST_ROWS_OF_TESTS,
    MOST_TEST_ROWS,
    MOST_TESTS,
    PARAM,
    REQUIRED,
    REQUIRES,
    RULE,
    SAVING,
    SCOPE,
    SEVERITY,
    STATUSES,
    TEST,
)
from traceanalyzer.engine.rules.scenarios import named_scenarios
from traceanalyzer.engine.rules.yamlfile import Document, Mark, Path, YamlError, read_yaml
from traceanalyzer.errors import did_you_mean
from traceanalyzer.units import UNITS
from traceanalyzer.vocabulary.levels import CONFIDENCES, FIRED, SEVERITIES
from traceanalyzer.vocabulary.losses import CATEGORIES

Word = TypeVar("Word", bound=str)


def read_rule(text: str, file: str) -> tuple[Rule | None, list[Problem]]:
    """The rule in a file's text and every mistake in its form; None when it is no mapping at all."""
    try:
        document = read_yaml(text)
    except YamlError as error:
        return None, [Problem(file, error.mark.line, error.mark.column, str(error))]
    if not isinstance(document.data, dict):
        return None, [Problem(file, 1, 1, "a rule file is a mapping of keys such as id, title, from and message")]
    reader = _Reader(document, file)
    reader.check_keys()
    return reader.rule(), reader.problems


class _Reader:
    """Takes values of the wanted type out of one document and notes a problem for each that is not."""

    def __init__(self, document: Document, file: str) -> None:
        self.document = document
        self.file = file
        self.data: dict[str, Any] = document.data
        self.problems: list[Problem] = []

    def complain(self, path: Path, message: str, mark: Mark | None = None) -> None:
        mark = mark or self.document.mark(path)
        self.problems.append(Problem(self.file, mark.line, mark.column, message))

    def check_keys(self) -> None:
        self.known((), self.data, RULE)
        for key in REQUIRED:
            if key not in self.data:
                self.complain((), f"'{key}' is missing")
        order = list(RULE)
        for before, key in pairwise(key for key in self.data if key in RULE):
            if order.index(key) < order.index(before):
                self.complain((), f"'{key}' comes before '{before}'", self.document.keys[(key,)])

    def rule(self) -> Rule:
        return Rule(
            id=self.text("id"),
            slug=self.text("slug"),
            title=self.text("title"),
            status=self.one_of(("status",), STATUSES),
            category=self.one_of(("category",), CATEGORIES),
            after=self.texts(("after",)),
            why=self.text("why"),
            requires=self.requires(),
            params=self.params(),
            source=self.text("from"),
            where=self.expression(("where",)),
            group_by=self.texts(("group_by",)),
            metrics=self.metrics(),
            figures=self.figures(),
            having=self.expression(("having",)),
            scope=self.scope(),
            order_by=self.expression(("order_by",)),
            limit=self.limit(),
            severity=self.severity(),
            claims=self.texts(("claims",)),
            saving=self.saving(),
            message=self.text("message"),
            recommend=self.recommend(),
            false_positives=self.texts(("false_positives",)),
            references=self.texts(("references",)),
            tests=self.tests(),
            file=self.file,
            document=self.document,
        )

    def known(self, path: Path, mapping: dict[str, Any], keys: Collection[str]) -> None:
        for key in mapping:
            if key not in keys:
                self.complain(path, f"unknown key '{key}'{did_you_mean(key, keys)}", self.document.keys[(*path, key)])

    def at(self, path: Path) -> Any:
        value: Any = self.data
        for part in path:
            if isinstance(value, list) and isinstance(part, int):
                value = value[part]
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value

    def text(self, *path: str | int) -> str:
        value = self.at(path)
        if value is not None and not isinstance(value, str):
            self.complain(path, f"'{path[-1]}' must be a text")
        return value if isinstance(value, str) else ""

    def expression(self, path: Path) -> str | None:
        value = self.at(path)
        if isinstance(value, dict | list):
            self.complain(path, f"'{path[-1]}' must be an expression")
            return None
        return None if value is None else str(value)

    def texts(self, path: Path) -> tuple[str, ...]:
        value = self.at(path)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.complain(path, f"'{path[-1]}' must be a list of texts")
            return ()
        return tuple(value)

    def mapping(self, path: Path, value: Any) -> dict[str, Any]:
        if value is not None and not isinstance(value, dict):
            self.complain(path, f"'{path[-1]}' must be a mapping")
        return value if isinstance(value, dict) else {}

    def mappings(self, *path: str) -> list[dict[str, Any]]:
        value = self.at(path)
        if value is not None and not isinstance(value, list):
            self.complain(path, f"'{path[-1]}' must be a list of mappings")
        return [self.mapping((*path, at), item) for at, item in enumerate(value if isinstance(value, list) else [])]

    def one_of(self, path: Path, allowed: tuple[Word, ...]) -> Word:
        value = self.at(path)
        if value is not None and value not in allowed:
            self.complain(path, f"'{path[-1]}' is one of {', '.join(allowed)}{did_you_mean(str(value), allowed)}")
        return value if value in allowed else allowed[0]

    def limit(self) -> int:
        value = self.at(("limit",))
        if value is None:
            return EVIDENCE_LIMIT
        if not isinstance(value, int) or not 0 < value <= MOST_EVIDENCE:
            self.complain(("limit",), f"'limit' is a whole number from 1 to {MOST_EVIDENCE}")
            return EVIDENCE_LIMIT
        return value

    def metrics(self) -> dict[str, str]:
        given = self.mapping(("metrics",), self.at(("metrics",)))
        if len(given) > MOST_METRICS:
            self.complain(("metrics",), f"a rule has at most {MOST_METRICS} metrics")
            return {}
        return {name: self.expression(("metrics", name)) or "" for name in given}

    def requires(self) -> Requires:
        value = self.mapping(("requires",), self.at(("requires",)))
        self.known(("requires",), value, REQUIRES)
        columns = self.mapping(("requires", "columns"), value.get("columns"))
        return Requires(
            self.texts(("requires", "tables")),
            {table: self.texts(("requires", "columns", table)) for table in columns},
            self.texts(("requires", "healthy")),
            self.texts(("requires", "weakened_by")),
            self.abstain(),
        )

    def abstain(self) -> tuple[tuple[str, str], ...]:
        steps = self.mappings("requires", "abstain")
        for at, step in enumerate(steps):
            path: Path = ("requires", "abstain", at)
            self.known(path, step, ABSTAIN)
            for key in ("when", "reason"):
                if key not in step:
                    self.complain(path, f"an entry of 'abstain' needs '{key}'")
        return tuple(
            (
                self.expression(("requires", "abstain", at, "when")) or "true",
                self.text("requires", "abstain", at, "reason"),
            )
            for at in range(len(steps))
        )

    def params(self) -> dict[str, Param]:
        params: dict[str, Param] = {}
        for name, value in self.mapping(("params",), self.at(("params",))).items():
            path: Path = ("params", name)
            entry = self.mapping(path, value)
            self.known(path, entry, PARAM)
            if not entry.get("why"):
                self.complain(path, f"threshold '{name}' needs a 'why'")
            if entry.get("default") is None or isinstance(entry["default"], dict | list):
                self.complain(path, f"threshold '{name}' needs a 'default' such as 20us, 3% or 64KiB")
                continue
            literal, kind = literal_of(entry["default"])
            if entry.get("unit") is not None:
                unit = self.one_of((*path, "unit"), UNITS)
                if kind != number(None) and kind != number(unit):
                    self.complain((*path, "unit"), f"the default is {kind}, not {number(unit)}")
                kind = number(unit)
            params[name] = Param(literal, kind, str(entry.get("why") or ""))
        return params

    def severity(self) -> tuple[tuple[str, str], ...]:
        steps = self.mappings("severity")
        for at, step in enumerate(steps):
            self.known(("severity", at), step, SEVERITY)
        return tuple(
            (self.expression(("severity", at, "when")) or "True", self.one_of(("severity", at, "level"), SEVERITIES))
            for at in range(len(steps))
        )

    def figures(self) -> dict[str, str]:
        entries = self.mapping(("figures",), self.at(("figures",)))
        for name, words in entries.items():
            if not isinstance(words, str) or not words.strip():
                self.complain(("figures", name), f"'{name}' needs words for what it is")
        return {str(name): " ".join(str(words).split()) for name, words in entries.items()}

    def scope(self) -> dict[str, str]:
        entry = self.mapping(("scope",), self.at(("scope",)))
        self.known(("scope",), entry, SCOPE)
        return {key: text for key in SCOPE if key in entry and (text := self.expression(("scope", key)))}

    def saving(self) -> Saving | None:
        if self.at(("saving",)) is None:
            return None
        self.known(("saving",), self.mapping(("saving",), self.at(("saving",))), SAVING)
        recoverable = self.expression(("saving", "recoverable"))
        if recoverable is None:
            self.complain(("saving",), "'saving' needs 'recoverable'")
        return Saving(
            recoverable or "0ns",
            self.one_of(("saving", "confidence"), CONFIDENCES),
            unpredicted=self.text("saving", "unpredicted") or None,
            sooner_if=self.text("saving", "sooner_if") or None,
            **{
                name: self.expression(("saving", name))
                for name in ("less_sure_when", "replay", "sooner", "least", "most")
            },
        )

    def recommend(self) -> tuple[dict[str, str], ...]:
        steps = self.mappings("recommend")
        for at, step in enumerate(steps):
            for key in step:
                self.text("recommend", at, key)
        return tuple({key: value for key, value in step.items() if isinstance(value, str)} for step in steps)

    def tests(self) -> tuple[RuleTest, ...]:
        tests = []
        given_tests = self.mappings("tests")
        if len(given_tests) > MOST_TESTS:
            self.complain(("tests", MOST_TESTS), f"a rule has at most {MOST_TESTS} tests")
        rows = 0
        for at, test in enumerate(given_tests[:MOST_TESTS]):
            path: Path = ("tests", at)
            self.known(path, test, TEST)
            rows += _row_count(test.get("given"))
            if rows > MOST_ROWS_OF_TESTS:
                self.complain(path, f"the tests of a rule have at most {MOST_ROWS_OF_TESTS:,} rows together")
                break
            given = self.given(path, test.get("given"))
            if given is None:
                continue
            expectation = self.expectation((*path, "expect"), test.get("expect"))
            name = test.get("name") or (test["given"] if isinstance(test["given"], str) else at + 1)
            tests.append(RuleTest(given, expectation, str(name), path))
        return tuple(tests)

    def given(self, path: Path, value: Any) -> dict[str, Any] | None:
        """The rows of a test's tables, which may be those of a scenario that ships with the rules."""
        if isinstance(value, str):
            scenarios = named_scenarios()
            if value in scenarios:
                return scenarios[value].given
            known = did_you_mean(value, scenarios) or f"; there are {', '.join(scenarios)}"
            self.complain((*path, "given"), f"there is no scenario '{value}'{known}")
            return None
        if isinstance(value, dict):
            return value
        self.complain(path, "a test needs 'given': the rows of its tables, or the name of a scenario")
        return None

    def expectation(self, path: Path, value: Any) -> Expectation:
        if isinstance(value, dict):
            self.known(path, value, EXPECT)
            level = self.one_of((*path, "level"), SEVERITIES) if "level" in value else None
            amount = literal_of(value["recoverable"])[0] if "recoverable" in value else None
            return Expectation(FIRED, level, amount if isinstance(amount, int) else None, value.get("says"))
        if value not in EXPECTED:
            self.complain(path, f"'expect' is one of {', '.join(EXPECTED)}, or a mapping such as {{level: high}}")
        return Expectation(FIRED if value not in EXPECTED or value == "fires" else value)


def _row_count(given: Any) -> int:
    """How many rows are made of a test: as many as are written, up to those that it may have."""
    tables = given.values() if isinstance(given, dict) else ()
    rows = (row for table in tables if isinstance(table, list) for row in table if isinstance(row, dict))
    repeats = (row.get("repeat", 1) for row in rows)
    return int(min(MOST_TEST_ROWS, max(0, sum(repeat for repeat in repeats if isinstance(repeat, int | float)))))
