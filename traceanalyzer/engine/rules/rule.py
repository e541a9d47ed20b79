"""A rule as data: what each key of its file (`rule_schema`) holds. Expressions stay text here; `program` compiles them."""

from __future__ import annotations

from dataclasses import field
from pathlib import PurePath as FilePath
from typing import Any

from traceanalyzer.engine.language.kinds import TEXT, Kind, number
from traceanalyzer.engine.rules.yamlfile import Document, Path
from traceanalyzer.records import dataclass
from traceanalyzer.units import Quantity, can_be_held, parse_quantity


@dataclass(frozen=True)
class Problem:
    """One mistake in a rule file; `line` and `column` are 1-based."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


@dataclass(frozen=True)
class Requires:
    """What a rule needs. `healthy` lists TRC codes that make it impossible to judge, `weakened_by` those that lower its confidence.

    `abstain` are (condition on a group's metrics, reason): where one holds, the group cannot be judged.
    """

    tables: tuple[str, ...] = ()
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    healthy: tuple[str, ...] = ()
    weakened_by: tuple[str, ...] = ()
    abstain: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Param:
    """A threshold: its value in the base unit of its kind, and why it is that; where the user set another, `default` is the rule's."""

    value: int | float | str | bool
    kind: Kind
    why: str
    default: int | float | str | bool | None = None


@dataclass(frozen=True)
class Saving:
    """What a rule recovers; `least` and `most` where that is an estimate that may be as far off.

    `unpredicted` is why no replay can say what it would give; None where it can.
    `sooner` is how much sooner the whole job would be done if `sooner_if`, where it cannot be played again as `replay` says.
    """

    recoverable: str
    confidence: str
    less_sure_when: str | None = None
    unpredicted: str | None = None
    replay: str | None = None
    sooner: str | None = None
    sooner_if: str | None = None
    least: str | None = None
    most: str | None = None


@dataclass(frozen=True)
class Expectation:
    """What a test expects: an outcome and, for `fired`, optionally the level, the recovered time and a part of the message."""

    outcome: str
    level: str | None = None
    recoverable: int | None = None
    says: str | None = None


@dataclass(frozen=True)
class RuleTest:
    """`given` is a scenario: the rows of its tables."""

    given: dict[str, Any]
    expect: Expectation
    name: str
    path: Path = ()


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule. Field names are the file's keys, but for `from`, which Python keeps for itself.

    A rule is equal only to itself, so that what is made from it can be remembered. `checked`: the tests of this program have found no
    mistake in it, so that nobody need look for one before it runs.
    """

    id: str
    slug: str
    title: str
    status: str
    category: str
    after: tuple[str, ...]
    why: str
    requires: Requires
    params: dict[str, Param]
    source: str
    where: str | None
    group_by: tuple[str, ...]
    metrics: dict[str, str]
    figures: dict[str, str]
    having: str | None
    scope: dict[str, str]
    order_by: str | None
    limit: int
    severity: tuple[tuple[str, str], ...]
    claims: tuple[str, ...]
    saving: Saving | None
    message: str
    recommend: tuple[dict[str, str], ...]
    false_positives: tuple[str, ...]
    references: tuple[str, ...]
    tests: tuple[RuleTest, ...]
    file: str
    document: Document = field(repr=False, compare=False)
    checked: bool = False

    @property
    def family(self) -> str:
        """The folder in which the file lies."""
        return FilePath(self.file).parent.name or "."

    def problem(self, path: Path, message: str, column: int = 0) -> Problem:
        """A Problem at the value at `path`, `column` characters into it."""
        mark = self.document.mark(path).shifted(column)
        return Problem(self.file, mark.line, mark.column, message)


def literal_of(value: Any) -> tuple[int | float | str | bool, Kind]:
    """A scalar of a rule file or an override and its kind: `20us` is a time, `3%` a share, other text is text.

    A number that no column of a table could hold is a text too, so that it fits nowhere.
    """
    if isinstance(value, bool):
        return value, Kind("bool")
    if isinstance(value, int | float):
        # The digits of a very long number cannot even be written.
        return (value, number(None)) if can_be_held(value) else ("a number without end", TEXT)
    try:
        quantity: Quantity = parse_quantity(str(value))
    except ValueError:
        return str(value), TEXT
    return quantity.value, number(quantity.unit)
