"""A rule with all its expressions compiled against the declared tables: what the linter checks and the runner runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TypeVar

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.engine.language.expression import compile_condition, compile_expression
from traceanalyzer.engine.language.kinds import TEXT, Kind, number
from traceanalyzer.engine.language.message import Message, compile_message
from traceanalyzer.engine.language.names import Expression, Names
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.engine.rows import GPU_KEYS, table_kinds
from traceanalyzer.engine.rules.rule import Problem, Rule
from traceanalyzer.engine.rules.yamlfile import Path
from traceanalyzer.errors import did_you_mean
from traceanalyzer.records import dataclass
from traceanalyzer.units import NS
from traceanalyzer.vocabulary.lines import LEDGER_LINES

Compiled = TypeVar("Compiled", Expression, Message)


@dataclass(frozen=True)
class Judgement:
    """What tells of a group of rows whether there is a finding; None where the rule does not say."""

    metrics: dict[str, Expression]
    abstain: tuple[tuple[Expression, str], ...]
    having: Expression | None

    @cached_property
    def first(self) -> dict[str, Expression]:
        """The metrics without which nobody can tell whether there is a finding, and those that may fail."""
        needed = {name for test in (self.having, *(when for when, _ in self.abstain)) if test for name in test.uses}
        for name, metric in reversed(self.metrics.items()):
            if name in needed or not metric.safe:
                needed |= {name, *metric.uses}
        return {name: metric for name, metric in self.metrics.items() if name in needed}

    @cached_property
    def asks_first(self) -> bool:
        """Whether that takes to know what of the rows nobody has claimed yet."""
        tests = (self.having, *(when for when, _ in self.abstain))
        texts = (one.text for one in (*self.first.values(), *tests) if one)
        return "unclaimed" in self.metrics or any("unclaimed" in text for text in texts)


@dataclass(frozen=True)
class Said:
    """What a finding is made of; None where the rule has none."""

    scope: dict[str, Expression]
    order_by: Expression | None
    severity: tuple[tuple[Expression, str], ...]
    recoverable: Expression | None
    estimate: tuple[Expression, Expression] | None
    less_sure: Expression | None
    replay: Expression | None
    sooner: Expression | None
    sooner_if: Message | None
    message: Message | None
    recommend: tuple[tuple[Expression | None, dict[str, str]], ...]


def compile_rule(rule: Rule) -> tuple[Program | None, list[Problem]]:
    """The program, or None with every problem found. Of a `checked` rule only what is read of it is compiled."""
    return _compiled(rule, len(rule_tables()))


@lru_cache(maxsize=512)
def _compiled(rule: Rule, tables: int) -> tuple[Program | None, list[Problem]]:
    """As there are so many tables; a table that is declared later may be the one that was not known."""
    program = Program(rule)
    if program.tables_are_known() and not rule.checked:
        program.compile()
    return (None if program.problems else program), program.problems


class Program:
    """The compiled parts of a rule, each compiled when it is first asked for: most rules find nothing in a trace."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.problems: list[Problem] = []
        self.columns: dict[str, Kind] = {}
        # The values of a group, and how long those may be that are texts.
        self._values: dict[str, Kind] = {}
        self._longest: dict[str, int] = {}
        # Metrics that do not compile: what uses them is not complained about once more.
        self.failed: set[str] = set()

    def compile(self) -> None:
        """All of it, in the order in which names come to mean something."""
        for _ in (self.where, self.judgement, self.said):
            pass

    def complain(self, path: Path, message: str, column: int = 0) -> None:
        self.problems.append(self.rule.problem(path, message, column))

    def tables_are_known(self) -> bool:
        """Check every name of a table, column or ledger line outside expressions; false when `from` itself is wrong."""
        rule = self.rule
        for at, name in enumerate(rule.requires.tables):
            self._known_table(name, ("requires", "tables", at))
        for name, columns in rule.requires.columns.items():
            if self._known_table(name, ("requires", "columns", name)):
                for at, column in enumerate(columns):
                    self._known(
                        column, [c.name for c in rule_tables()[name].columns], ("requires", "columns", name, at)
                    )
        for at, line in enumerate(rule.claims):
            if line not in LEDGER_LINES:
                self.complain(("claims", at), f"unknown ledger line '{line}'{did_you_mean(line, LEDGER_LINES)}")
        if not self._known_table(rule.source, ("from",)):
            return False
        self.columns = table_kinds(rule.source)
        for at, key in enumerate(rule.group_by):
            self._known(key, list(self.columns), ("group_by", at))
        if rule.claims and not {*GPU_KEYS, "duration"} <= self.columns.keys():
            self.complain(("claims",), f"rows of '{rule.source}' have no time on a GPU, so nothing can be claimed")
        if bool(rule.claims) != bool(rule.saving):
            self.complain(("claims",) if rule.claims else ("saving",), "'claims' and 'saving' come together")
        return True

    @cached_property
    def where(self) -> Expression | None:
        """Which rows of the table the rule is about."""
        return self._condition(("where",), self.rule.where, self._row)

    @cached_property
    def judgement(self) -> Judgement:
        """Whether a group of them is a finding."""
        rule, group, values = self.rule, self._group, self._values
        metrics: dict[str, Expression] = {}
        for name, text in rule.metrics.items():
            if metric := self._expression(("metrics", name), text, group):
                metrics[name] = metric
                values[name], self._longest[name] = metric.kind, metric.longest
            else:
                self.failed.add(name)
        for name in rule.figures:
            if name not in rule.metrics:
                self.complain(("figures", name), f"'{name}' is no metric{did_you_mean(name, rule.metrics)}")
            elif name in metrics and metrics[name].kind.type == "bool":
                self.complain(
                    ("figures", name), f"'{name}' is true or false, which tells people nothing; say it in the message"
                )
        abstain = [
            (condition, reason)
            for at, (text, reason) in enumerate(rule.requires.abstain)
            if (condition := self._condition(("requires", "abstain", at, "when"), text, group))
        ]
        return Judgement(metrics, tuple(abstain), self._condition(("having",), rule.having, group))

    @cached_property
    def said(self) -> Said:
        """What the finding says."""
        # What the metrics mean comes first.
        assert self.judgement
        rule, group, row_of_group = self.rule, self._group, self._row_of_group
        recoverable = self._time("recoverable", "what is recoverable", group)
        least, most = self._time("least", "the least", group), self._time("most", "the most", group)
        if rule.saving and (rule.saving.least is None) != (rule.saving.most is None):
            self.complain(("saving",), "'least' and 'most' come together")
        how = rule.saving.replay if rule.saving else None
        replay = self._expression(("saving", "replay"), how, group)
        if replay and replay.kind.type != "text":
            self.complain(("saving", "replay"), f"how the job is played again is a text, but this is {replay.kind}")
        sooner = self._time("sooner", "how much sooner", row_of_group)
        supposed = rule.saving.sooner_if if rule.saving else None
        scope = {
            key: expression
            for key, text in rule.scope.items()
            if (expression := self._expression(("scope", key), text, group))
        }
        self._values["recoverable"] = number(NS)
        doubt = rule.saving.less_sure_when if rule.saving else None
        less_sure = self._condition(("saving", "less_sure_when"), doubt, group)
        order = self._expression(("order_by",), rule.order_by, row_of_group)
        if order and order.kind.type != "number":
            self.complain(("order_by",), f"rows are ordered by a number, but this is {order.kind}")
        severity = [
            (condition, level)
            for at, (text, level) in enumerate(rule.severity)
            if (condition := self._condition(("severity", at, "when"), text, group))
        ]
        recommend = [
            (
                self._condition(("recommend", at, "when"), step.get("when"), group),
                {key: text for key, text in step.items() if key != "when"},
            )
            for at, step in enumerate(rule.recommend)
        ]
        message = self._compiled(compile_message, ("message",), rule.message, group)
        return Said(
            scope=scope,
            order_by=order,
            severity=tuple(severity),
            recoverable=recoverable,
            estimate=(least, most) if least and most else None,
            less_sure=less_sure,
            replay=replay,
            sooner=sooner,
            sooner_if=self._compiled(compile_message, ("saving", "sooner_if"), supposed, group) if supposed else None,
            message=message,
            recommend=tuple(recommend),
        )

    @cached_property
    def _params(self) -> dict[str, Kind]:
        return {name: param.kind for name, param in self.rule.params.items()}

    @cached_property
    def _row(self) -> Names:
        return Names(
            self.columns, self._params, table_kinds("ledger") if set(GPU_KEYS) <= self.columns.keys() else None
        )

    @cached_property
    def _row_of_group(self) -> Names:
        # What nobody has claimed yet: of each row inside an aggregate, of the whole group outside.
        unclaimed = {"unclaimed": number(NS)} if self.rule.claims else {}
        return Names(self.columns | unclaimed, self._params, self._row.window)

    @cached_property
    def _group(self) -> Names:
        keys = self.rule.group_by
        per_gpu = set(GPU_KEYS) <= set(keys)
        self._values |= {key: self.columns[key] for key in keys if key in self.columns}
        self._values |= {"gpu": TEXT} if per_gpu else {}
        self._values |= {"unclaimed": number(NS)} if self.rule.claims else {}
        window = table_kinds("ledger") if per_gpu else None
        return Names(self._row_of_group.columns, self._params, window, self._values, self._longest)

    def _time(self, key: str, what: str, names: Names) -> Expression | None:
        """One of the times of `saving`."""
        expression = self._expression(("saving", key), getattr(self.rule.saving, key, None), names)
        if expression and expression.kind != number(NS):
            self.complain(("saving", key), f"{what} is a time, but this is {expression.kind}")
        return expression

    def _expression(self, path: Path, text: str | None, names: Names) -> Expression | None:
        return self._compiled(compile_expression, path, text, names)

    def _condition(self, path: Path, text: str | None, names: Names) -> Expression | None:
        return self._compiled(compile_condition, path, text, names)

    def _compiled(
        self, how: Callable[[str, Names], Compiled], path: Path, text: str | None, names: Names
    ) -> Compiled | None:
        if text is None or any(re.search(rf"\b{re.escape(name)}\b", text) for name in self.failed):
            return None
        try:
            return how(text, names)
        except ExpressionError as error:
            self.complain(path, str(error), error.column)
            return None

    def _known_table(self, name: str, path: Path) -> bool:
        if name and name not in rule_tables():
            self.complain(path, f"unknown table '{name}'{did_you_mean(name, rule_tables())}")
        return name in rule_tables()

    def _known(self, name: str, known: list[str], path: Path) -> None:
        if name not in known:
            self.complain(path, f"unknown column '{name}'{did_you_mean(name, known)}")
