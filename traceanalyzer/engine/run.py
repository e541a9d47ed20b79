"""Runs rules over the tables of a trace, in claim order. A rule that fails is an outcome; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.engine.claims import ClaimBook
from traceanalyzer.engine.columns import Columns
from traceanalyzer.engine.finding import CannotJudgeError, Describe, GroupRun
from traceanalyzer.engine.gain import by_gain
from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.names import PROGRAM_KINDS
from traceanalyzer.engine.rows import TableRows, Windows
from traceanalyzer.engine.rules.program import Program, compile_rule
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.model.replayed import JobReplay
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding, RuleOutcome
from traceanalyzer.vocabulary.health import TOO_LITTLE
from traceanalyzer.vocabulary.levels import CLEAN, COULD_NOT_JUDGE, ERROR, FIRED, HIGH, INFO, NOT_APPLICABLE, Outcome

# A rule that makes more groups than anyone reads is wrong about its group_by.
MAX_GROUPS = 1000
# Likewise one whose findings nobody could look through: characters of their texts and rows of evidence, for each group there may be.
MOST_CHARACTERS, MOST_ROWS = 1 << 14, 50


class Tables(Protocol):
    """Where rules read from."""

    def table(self, name: str) -> pa.Table:
        """An event or derived table with at least its declared columns."""
        ...

    def unavailable(self, name: str) -> str | None:
        """Why the table says nothing in this trace ("the trace holds no CUDA API calls"), else None."""
        ...


@dataclass(frozen=True)
class EngineResult:
    """`findings` by what a fix gives, the largest first; one outcome a rule, in claim order; `claims` are all they made;
    `first_sentences` of the findings by message, without their stops."""

    findings: list[Finding]
    outcomes: list[RuleOutcome]
    claims: ClaimBook
    first_sentences: Mapping[str, str]


class _AbstainedError(Exception):
    """A rule that does not apply or cannot judge, and why."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def gpu_name(rank: int, device: int) -> str:
    """The name of a GPU in messages when the caller knows no better one."""
    return f"GPU {device}"


def run_rules(
    rules: Sequence[Rule],
    tables: Tables,
    describe: Describe = gpu_name,
    disabled: Mapping[str, str] | None = None,
    tiles: str = "ledger_intervals",
    replay: JobReplay | None = None,
    release: Callable[[Collection[str]], None] = lambda _: None,
) -> EngineResult:
    """Run the rules, which are in claim order, one after another.

    `disabled` is {rule id: where it was switched off}, `tiles` the table of the intervals that may be claimed. Ranks in the findings
    are those of the tables. `replay` is the job, to be played again. `release` is called before each rule with the names of the tables
    that it and the later ones read. A rule that fails is an outcome, so nothing is raised.
    """
    run = _Run(tables, describe, tiles, replay)
    read = [{rule.source, *rule.requires.tables, *rule.requires.columns} for rule in rules]
    later = [*accumulate(reversed(read), set[str].union)][::-1]
    findings: list[Finding] = []
    outcomes: list[RuleOutcome] = []
    off = disabled or {}
    for rule, names in zip(rules, later, strict=True):
        run.release(names)
        release(names)
        if rule.id in off:
            outcomes.append(RuleOutcome(rule.id, NOT_APPLICABLE, f"switched off {off[rule.id]}"))
            continue
        restore = run.book.snapshot()
        try:
            found, note = run.rule(rule)
            findings += found
            outcomes.append(RuleOutcome(rule.id, FIRED if found else CLEAN, note))
        except _AbstainedError as abstained:
            outcomes.append(RuleOutcome(rule.id, abstained.outcome, str(abstained)))
        except Exception as error:
            # Whatever a rule trips over is that rule's outcome: one bad rule must not cost the user the other findings.
            restore()
            outcomes.append(RuleOutcome(rule.id, ERROR, f"{type(error).__name__}: {error}"))
    return EngineResult(by_gain(findings), outcomes, run.book, run.first_sentences)


class _Run:
    """One pass over one trace: the tables, the windows and the book of claims that all rules share."""

    def __init__(self, tables: Tables, describe: Describe, tiles: str, replay: JobReplay | None) -> None:
        self.tables = tables
        self.replay = replay
        self.describe = describe
        self.windows = Windows(tables.table("ledger"))
        self.book = ClaimBook(tables.table(tiles))
        # What is only `info` harms no rule.
        notes = tables.table("health").select(["code", "severity", "rank", "message"]).to_pylist()
        self.notes = [note for note in notes if note["severity"] != INFO]
        self.columns: dict[str, Columns] = {}
        self.first_sentences: dict[str, str] = {}
        traits = set(tables.table("program")["name"].to_pylist())
        self.program = {f"program.{trait}": pa.scalar(trait in traits) for trait in PROGRAM_KINDS}

    def release(self, later: Collection[str]) -> None:
        """Give back the columns of tables that no later rule reads."""
        self.columns = {name: columns for name, columns in self.columns.items() if name in later}

    def rule(self, rule: Rule) -> tuple[list[Finding], str | None]:
        """The findings of one rule and a note about what was left out. Raises _AbstainedError, or anything on a broken rule."""
        program, problems = compile_rule(rule)
        if program is None:
            raise ValueError(str(problems[0]))
        self._check_required(rule)
        sick = self._unfit(rule.requires.healthy)
        if sick and not any(rank not in sick for rank, _ in self.windows.gpus):
            raise _AbstainedError(COULD_NOT_JUDGE, next(iter(sick.values())))
        rows = self._rows(rule, program, sick)
        weak = self._sick(rule.requires.weakened_by)
        most = max(MAX_GROUPS, len(self.windows.gpus))
        groups = list(islice(rows.groups(rule.group_by), most + 1))
        if len(groups) > most:
            raise ValueError(f"more than {most:,} groups; group_by names a column with too many values")
        findings: list[Finding] = []
        unjudged: list[str] = []
        characters = shown = 0
        for keys, group in groups:
            judged = GroupRun(rule, program, self.windows, self.book, self.describe, weak, self.replay)
            try:
                found = judged.finding(keys, group)
            except CannotJudgeError as reason:
                unjudged.append(str(reason))
                continue
            if found:
                finding, first_sentence = found
                findings.append(finding)
                self.first_sentences[finding.message] = first_sentence
                characters, shown = characters + _characters(finding), shown + len(finding.evidence)
                if characters > MOST_CHARACTERS * most or shown > MOST_ROWS * most:
                    raise ValueError(
                        "its findings hold more than anybody reads; narrow where, having or group_by, or lower limit"
                    )
        if unjudged and not findings:
            raise _AbstainedError(COULD_NOT_JUDGE, unjudged[0])
        left_out = [*(["some ranks were left out: " + next(iter(sick.values()))] if sick else []), *unjudged[:1]]
        return findings, "; ".join(left_out) or None

    def _check_required(self, rule: Rule) -> None:
        for name in (rule.source, *rule.requires.tables, *rule.requires.columns):
            reason = self.tables.unavailable(name)
            if reason:
                raise _AbstainedError(NOT_APPLICABLE, reason)
        for name, columns in rule.requires.columns.items():
            table = self.tables.table(name)
            for column in columns:
                if len(table) and table[column].null_count == len(table):
                    raise _AbstainedError(NOT_APPLICABLE, f"not recorded for {name}: {_about(name, column)}")

    def _sick(self, codes: Sequence[str]) -> dict[int | None, str]:
        """Rank -> message of the first health row with one of these codes."""
        sick: dict[int | None, str] = {}
        for note in self.notes:
            if note["code"] in codes:
                sick.setdefault(note["rank"], note["message"])
        return sick

    def _unfit(self, codes: Sequence[str]) -> dict[int | None, str]:
        """As `_sick`; and where so little was recorded that nothing can be judged, no rule that minds health can."""
        little = {
            note["rank"]: note["message"]
            for note in self.notes
            if note["code"] == TOO_LITTLE and note["severity"] == HIGH
        }
        return (little if codes else {}) | self._sick(codes)

    def _rows(self, rule: Rule, program: Program, sick: dict[int | None, str]) -> TableRows:
        values = self.program | {f"params.{name}": _scalar(param.value) for name, param in rule.params.items()}
        if rule.source not in self.columns:
            self.columns[rule.source] = Columns(self.tables.table(rule.source))
        rows = TableRows(self.columns[rule.source], self.windows, values)
        if sick:
            left_out = pa.array(list(sick), pa.int64())
            rows = rows.filter(lambda some: pc.invert(pc.is_in(some.column("rank"), value_set=left_out)))
        if rows.count and (where := program.where):
            rows = rows.filter(lambda some: compute.as_array(where(some), some.count))
        return rows


@lru_cache(1 << 10, typed=True)
def _scalar(value: int | float | str | bool) -> pa.Scalar:
    """A rule's thresholds are the same for every rank."""
    return pa.scalar(value)


def _characters(finding: Finding) -> int:
    """Of the texts that each finding of a rule has for itself, or that a document repeats."""
    metrics = (metric.value for metric in finding.metrics.values() if isinstance(metric.value, str))
    advice = (text for step in finding.recommend for text in step.values())
    return sum(map(len, (finding.message, *metrics, *advice, *finding.references)))


def _about(table: str, column: str) -> str:
    """What a column holds, in the words of its declaration."""
    declared = rule_tables()[table].column(column)
    return declared.about if declared else column
