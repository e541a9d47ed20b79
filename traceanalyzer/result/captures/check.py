"""What a check of budgets came to: every assertion with what was expected, what was found, where, and the command that shows it.

Times are nanoseconds and shares fractions from 0 to 1, as everywhere in the documents.
"""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.exit_codes import FAILED, NOT_JUDGED, PASSED
from traceanalyzer.records import dataclass
from traceanalyzer.result.written import Written
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

SCHEMA_VERSION = "1.0"
OUTCOMES = ("passed", "failed", COULD_NOT_JUDGE)
EXIT_CODES = {"passed": PASSED, "failed": FAILED, COULD_NOT_JUDGE: NOT_JUDGED}


@dataclass(frozen=True)
class CheckedCapture:
    """A capture that was checked: its `name`, the `place` that the user named, and what its verdict says. `damage` and `unjudged` as of
    `Capture`."""

    name: str
    place: str
    headline: str
    damage: list[str]
    unjudged: str | None


@dataclass(frozen=True)
class Reading:
    """What one capture, by its number in `Check.captures`, says to an assertion. Null is what is not known, and `reason` says why."""

    capture: int
    value: float | None
    limit: float | None
    where: str | None
    reason: str | None


@dataclass(frozen=True)
class Held:
    """One assertion. `text` as it was written, or the rule's id; `place` says where it stands.

    `outcome` is one of OUTCOMES, or off. `found` and `limit` are in `unit`, over all captures as `aggregate` says; `expected` and
    `actual` are the same in words. `capture` is the number of the one that comes nearest to breaking it; `where` and `message` are of
    that one. `show` is a command that shows what was found, `look_at` what to open then.
    """

    text: str
    level: str
    place: str
    rule: str | None
    outcome: str
    aggregate: str
    unit: str
    sign: str
    limit: float | None
    found: float | None
    expected: str
    actual: str
    capture: int | None
    where: str | None
    message: str | None
    reason: str | None
    show: str | None
    look_at: str | None
    readings: list[Reading]


@dataclass(frozen=True)
class Check(Written):
    """`reasons` say why the whole could not be judged. `baseline` is the place of the baseline; null without one. `notes` say what was
    not judged as shipped, or by other measures than the baseline."""

    tool: dict[str, str]
    outcome: str
    headline: str
    reasons: list[str]
    assertions: list[Held]
    captures: list[CheckedCapture]
    baseline: str | None
    notes: list[str] = field(default_factory=list)
    schema_version: str = field(default=SCHEMA_VERSION)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]
