"""Runs the tests written inside a rule: a few inline rows become the tables of a small trace of one or more GPUs.

    given:
      window: {duration: 1s, step_count: 10}              # a mapping, or a list of them with rank and device
      gaps: [{cause: input, duration: 30ms, repeat: 10}]  # rows without start_ns are laid one after another
      unavailable: {api_calls: the trace holds no CUDA API calls}

Instead of the rows, `given` may name one of the `scenarios` that ship with the rules. Values may be unit literals. Columns that are
not given are null, but for rank and device (0), and for what follows from the rest: `gap`, `gap_duration`, `exposed` and `window`'s
ledger lines. What the rows leave of the window is compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.catalog.declarations import declared, rule_tables
from traceanalyzer.derive.ledger.tables import LEDGER, LEDGER_INTERVALS
from traceanalyzer.engine.language.kinds import TEXT, Kind, column_kind, number
from traceanalyzer.engine.rows import GPU_KEYS
from traceanalyzer.engine.rules.rule import Expectation, Rule, RuleTest, literal_of
from traceanalyzer.engine.rules.rule_schema import MOST_TEST_ROWS
from traceanalyzer.engine.run import run_rules
from traceanalyzer.errors import did_you_mean
from traceanalyzer.intervals import complement, union
from traceanalyzer.model.derived import Sample
from traceanalyzer.result.document import Finding
from traceanalyzer.units import COUNT, NS
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    IDLE,
    LINES,
    column,
)

# A test is a small trace; a stranger's test must not fill the memory.
MOST_GPUS = 32
LARGEST = 1 << 60
_PLAIN = Sample()
_COLUMN = re.compile(r"\{(\w+)\}")
Row = dict[str, Any]
Gpu = tuple[Any, Any]
Stretch = tuple[int, int, str, int, int]  # rank, device, ledger line, start_ns, end_ns


class Scenario:
    """The tables of a scenario, as the runner reads them. Raises ValueError for rows that make no trace."""

    def __init__(self, given: dict[str, Any]) -> None:
        given = dict(given)
        self._reasons: dict[str, str] = given.pop("unavailable", {})
        if not isinstance(self._reasons, dict):
            raise ValueError("'unavailable' is a mapping of tables to reasons")
        window = given.pop("window", {})
        windows = [_values("ledger", row) for row in (window if isinstance(window, list) else [window])]
        if len(windows) > MOST_GPUS:
            raise ValueError(f"'window' has more than {MOST_GPUS} GPUs")
        # Tables whose rows fill the window share one clock; the others overlap what is there.
        clock: dict[Gpu, int] = {}
        rows: dict[str, list[Row]] = {}
        for name, table in given.items():
            left = MOST_TEST_ROWS - sum(map(len, rows.values()))
            rows[name] = _rows(name, table, clock if _sample(name).lines else {}, left)
        stretches = [stretch for name, table in rows.items() for row in table for stretch in _stretches(name, row)]
        rows["ledger_intervals"] = []
        for row in windows:
            row.setdefault("duration", 1_000_000_000)
            rows["ledger_intervals"] += _tiles(row, stretches)
        rows["ledger"] = [_ledger(row, rows["ledger_intervals"]) for row in windows]
        try:
            self._tables = {
                name: pa.Table.from_pylist(row, schema=rule_tables()[name].schema) for name, row in rows.items()
            }
        except (OverflowError, pa.ArrowException) as error:
            raise ValueError(str(error)) from None

    def table(self, name: str) -> pa.Table:
        return self._tables[name] if name in self._tables else rule_tables()[name].empty()

    def unavailable(self, name: str) -> str | None:
        return self._reasons.get(name)


def run_test(rule: Rule, test: RuleTest) -> str | None:
    """Run one test of a rule; returns what went wrong, or None."""
    try:
        result = run_rules([rule], Scenario(test.given))
    except ValueError as error:
        return f"the rows make no trace: {error}"
    outcome, expect = result.outcomes[0], test.expect
    if outcome.outcome != expect.outcome:
        said = outcome.reason or " | ".join(finding.message for finding in result.findings)
        return f"expected {expect.outcome}, but the outcome is {outcome.outcome}" + (f" ({said})" if said else "")
    return _difference(expect, result.findings[0]) if result.findings else None


def _difference(expect: Expectation, finding: Finding) -> str | None:
    if expect.level not in (None, finding.severity):
        return f"expected level {expect.level}, but it is {finding.severity}"
    if expect.recoverable not in (None, finding.saving.recoverable_ns):
        return f"expected {expect.recoverable} ns to be recovered, but it is {finding.saving.recoverable_ns}"
    if expect.says and expect.says not in finding.message:
        return f"expected the message to say '{expect.says}', but it is: {finding.message}"
    return None


def _values(table: str, row: Row) -> Row:
    """A row as written, checked: what its columns can hold, unit literals as numbers."""
    if not isinstance(row, dict):
        raise ValueError(f"a row of '{table}' is a mapping of columns, not '{row}'")
    kinds = {column.name: column_kind(column) for column in rule_tables()[table].columns}
    known = {**kinds, "duration": kinds.get("duration") or number(NS), "repeat": number(COUNT)}
    values: Row = {key: 0 for key in GPU_KEYS if key in kinds}
    for name, value in row.items():
        if name not in known:
            raise ValueError(f"'{table}' has no column '{name}'{did_you_mean(name, known)}")
        if value is not None:
            values[name] = _value(value, known[name], f"'{name}' of '{table}'")
    return values


def _value(value: Any, kind: Kind | None, what: str) -> Any:
    if kind is None:  # a list
        return value
    plain, found = (value, TEXT) if kind == TEXT and isinstance(value, str) else literal_of(value)
    if found.type != kind.type:
        raise ValueError(f"{what} is {kind}, not '{value}'")
    if isinstance(plain, int | float) and not abs(plain) <= LARGEST:
        raise ValueError(f"{what} cannot be {value}")
    return plain


def _rows(table: str, given: list[Row], clock: dict[Gpu, int], most: int) -> list[Row]:
    """The rows of one table, repeats written out; each starts where the one before it on its GPU ended."""
    if table not in rule_tables():
        raise ValueError(f"unknown table '{table}'{did_you_mean(table, rule_tables())}")
    spec = rule_tables()[table]
    rows: list[Row] = []
    for one in given if isinstance(given, list) else [given]:
        values = _values(table, one)
        repeat = int(values.pop("repeat", 1))
        if len(rows) + repeat > most:
            raise ValueError(f"with '{table}' it has more than {MOST_TEST_ROWS:,} rows")
        for _ in range(repeat):
            row = dict(values)
            gpu = (row.get("rank"), row.get("device"))
            if spec.column("start_ns"):
                duration = row.pop("duration", 0)
                row.setdefault("start_ns", clock.get(gpu, 0))
                row.setdefault("end_ns", row["start_ns"] + duration)
                # A hair of compute in between keeps neighbours apart, as two gaps always are.
                clock[gpu] = row["end_ns"] + 1
                row = _defaults(table, row, len(rows)) | row
            rows.append(row)
    return rows


def _defaults(table: str, row: Row, number: int) -> Row:
    """What follows from the rest of a row, as its table's declaration says."""
    sample = _sample(table)
    with_column, more = sample.fills_with
    seen = {"duration": row["end_ns"] - row["start_ns"], "number": number, **row}
    defaults: Row = {}
    for name, fill in (*sample.fills.items(), *(more.items() if with_column in row else ())):
        if isinstance(fill, tuple):
            whole, *parts = (seen.get(column) or 0 for column in fill)
            defaults[name] = whole - sum(parts)
        else:
            defaults[name] = fill
        seen.setdefault(name, defaults[name])
    return defaults


def _sample(table: str) -> Sample:
    one = declared().get(table)
    return (one and one.sample) or _PLAIN


def _stretches(table: str, row: Row) -> Iterator[Stretch]:
    """What a row lies on, one after another from its start."""
    at = row.get("start_ns", 0)
    for line, columns in _sample(table).lines:
        length = sum(
            (row["end_ns"] - row["start_ns"]) if name == "duration" else row.get(name) or 0 for name in columns
        )
        yield row["rank"], row["device"], _line(table, line, row), at, at + length
        at += length


def _line(table: str, line: str, row: Row) -> str:
    told = line.format_map(row | {column: row.get(column) for column in _COLUMN.findall(line)})
    if told not in LINES:
        prefix, _, rest = line.partition("{")
        known = [one.removeprefix(prefix) for one in LINES if one.startswith(prefix)]
        value = told.removeprefix(prefix)
        raise ValueError(
            f"'{rest.rstrip('}')}' of '{table}' is one of {', '.join(known)}, not '{value}'{did_you_mean(value, known)}"
        )
    return told


def _tiles(window: Row, stretches: list[Stretch]) -> list[Row]:
    """The ledger intervals of one GPU: the stretches that rows name, and compute for the rest."""
    gpu = (window["rank"], window["device"])
    mine = [stretch for stretch in stretches if stretch[:2] == gpu and stretch[4] > stretch[3]]
    if max((end for *_, end in mine), default=0) > window["duration"]:
        raise ValueError(f"the rows are longer than the window of {window['duration']:,} ns")
    covered = union(np.array([start for *_, start, _ in mine], np.int64), np.array([end for *_, end in mine], np.int64))
    free = complement(covered, 0, window["duration"])
    compute = [(*gpu, COMPUTE.name, int(start), int(end)) for start, end in zip(*free, strict=True)]
    return [dict(zip(LEDGER_INTERVALS.schema.names, stretch, strict=True)) for stretch in [*mine, *compute]]


def _ledger(window: Row, tiles: list[Row]) -> Row:
    """The ledger row of one GPU: the sums of its tiles, and whatever the scenario says itself."""
    sums = dict.fromkeys((line.column for line in LINES.values()), 0)
    for tile in tiles:
        if (tile["rank"], tile["device"]) == (window["rank"], window["device"]):
            sums[column(tile["line"])] += tile["end_ns"] - tile["start_ns"]
    idle = sum(sums[line.column] for line in IDLE.values())
    totals = {"start_ns": 0, "end_ns": window["duration"], "idle": idle, "busy": window["duration"] - idle}
    # Nothing recorded counts as nothing seen, as in a real ledger.
    counts = {column.name: 0 for column in LEDGER.columns if column.unit == "count" and column.type == pa.int64()}
    return counts | sums | totals | window
