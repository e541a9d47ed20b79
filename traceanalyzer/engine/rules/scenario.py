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

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.derive.ledger.tables import IDLE_CAUSES, LEDGER, LEDGER_INTERVALS
from traceanalyzer.engine.language.kinds import TEXT, Kind, column_kind, number
from traceanalyzer.engine.rows import GPU_KEYS
from traceanalyzer.engine.rules.rule import Expectation, Rule, RuleTest, literal_of
from traceanalyzer.engine.rules.rule_schema import MOST_TEST_ROWS
from traceanalyzer.engine.run import run_rules
from traceanalyzer.errors import did_you_mean
from traceanalyzer.intervals import complement, union
from traceanalyzer.result.document import Finding
from traceanalyzer.units import COUNT, NS

# A test is a small trace; a stranger's test must not fill the memory.
MOST_GPUS = 32
LARGEST = 1 << 60
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
            rows[name] = _rows(name, table, clock if name in _LINES else {}, left)
        stretches = [stretch for name, line in _LINES.items() for row in rows.get(name, []) for stretch in line(row)]
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


# Columns that are the whole length of a row unless it says otherwise, and those that number the rows.
_WHOLE = {
    "gaps": ("gap_duration",),
    "copies": ("exposed",),
    "communication": ("exposed",),
    "kernels": ("alone",),
    "kernel_chains": ("busy",),
    "collective_waits": ("wait", "exposed_wait"),
    "mpi_waits": ("wait", "exposed_wait", "exposed"),
}
_NUMBERED = {"gaps": "gap", "collective_waits": "instance", "mpi_waits": "instance"}


def _defaults(table: str, row: Row, number: int) -> Row:
    """What follows from the rest of a row."""
    duration = row["end_ns"] - row["start_ns"]
    if table in ("collective_waits", "mpi_waits") and "late" not in row:
        return {"exposed": duration} if table == "mpi_waits" else {}
    defaults: Row = dict.fromkeys(_WHOLE.get(table, ()), duration)
    if table in _NUMBERED:
        defaults[_NUMBERED[table]] = number
    if table == "gaps":
        defaults["earlier_work"] = False
    if table in ("collective_waits", "mpi_waits"):
        defaults["spread"] = 0
    if table == "communication":
        defaults["exposed_transfer"] = row.get("exposed", duration) - row.get("exposed_wait", 0)
    if table == "staged_messages":
        in_mpi = row.get("in_mpi", 0)
        defaults |= {"in_mpi": in_mpi, "exposed": duration - in_mpi}
    if table in ("copy_bursts", "readbacks"):
        idle = row.get("idle", 0)
        defaults |= {"idle": idle, "exposed": duration - idle}
    return defaults


def _gap_stretch(row: Row) -> list[Stretch]:
    cause = row.get("cause")
    if cause not in IDLE_CAUSES:
        raise ValueError(f"a gap has one of the causes {', '.join(IDLE_CAUSES)}{did_you_mean(str(cause), IDLE_CAUSES)}")
    return [(row["rank"], row["device"], f"idle.{row['cause']}", row["start_ns"], row["end_ns"])]


def _exposed_stretch(line: str, *columns: str) -> Callable[[Row], list[Stretch]]:
    def stretch(row: Row) -> list[Stretch]:
        exposed = sum(row.get(column) or 0 for column in columns or ("exposed",))
        return [(row["rank"], row["device"], line, row["start_ns"], row["start_ns"] + exposed)]

    return stretch


def _copies_and_idle(row: Row) -> list[Stretch]:
    """The copies of the row first, then the idle time behind them."""
    middle = row["start_ns"] + row["exposed"]
    return [
        (row["rank"], row["device"], "exposed_memcpy", row["start_ns"], middle),
        (row["rank"], row["device"], "idle.host_work", middle, middle + row["idle"]),
    ]


def _copies_and_mpi(row: Row) -> list[Stretch]:
    middle = row["start_ns"] + row["exposed"]
    return [
        (row["rank"], row["device"], "exposed_memcpy", row["start_ns"], middle),
        (row["rank"], row["device"], "idle.mpi", middle, middle + row["in_mpi"]),
    ]


def _idle_stretch(row: Row) -> list[Stretch]:
    return [(row["rank"], row["device"], "idle.host_work", row["start_ns"], row["end_ns"])]


_LINES: dict[str, Callable[[Row], list[Stretch]]] = {
    "gaps": _gap_stretch,
    "copies": _exposed_stretch("exposed_memcpy"),
    "copy_bursts": _copies_and_idle,
    "readbacks": _copies_and_idle,
    "other_threads": _idle_stretch,
    "communication": _exposed_stretch("exposed_communication"),
    "collective_waits": _exposed_stretch("exposed_communication", "exposed_wait", "exposed_likely_wait"),
    "mpi_waits": _exposed_stretch("idle.mpi", "exposed_wait"),
    "staged_messages": _copies_and_mpi,
}


def _tiles(window: Row, stretches: list[Stretch]) -> list[Row]:
    """The ledger intervals of one GPU: the stretches that rows name, and compute for the rest."""
    gpu = (window["rank"], window["device"])
    mine = [stretch for stretch in stretches if stretch[:2] == gpu and stretch[4] > stretch[3]]
    if max((end for *_, end in mine), default=0) > window["duration"]:
        raise ValueError(f"the rows are longer than the window of {window['duration']:,} ns")
    covered = union(np.array([start for *_, start, _ in mine], np.int64), np.array([end for *_, end in mine], np.int64))
    free = complement(covered, 0, window["duration"])
    compute = [(*gpu, "compute", int(start), int(end)) for start, end in zip(*free, strict=True)]
    return [dict(zip(LEDGER_INTERVALS.schema.names, stretch, strict=True)) for stretch in [*mine, *compute]]


def _ledger(window: Row, tiles: list[Row]) -> Row:
    """The ledger row of one GPU: the sums of its tiles, and whatever the scenario says itself."""
    sums = dict.fromkeys((f"idle_{cause}" for cause in IDLE_CAUSES), 0)
    sums |= {"compute": 0, "exposed_memcpy": 0, "exposed_communication": 0, "exposed_memset": 0}
    for tile in tiles:
        if (tile["rank"], tile["device"]) == (window["rank"], window["device"]):
            sums[tile["line"].replace(".", "_")] += tile["end_ns"] - tile["start_ns"]
    idle = sum(sums[f"idle_{cause}"] for cause in IDLE_CAUSES)
    totals = {"start_ns": 0, "end_ns": window["duration"], "idle": idle, "busy": window["duration"] - idle}
    # Nothing recorded counts as nothing seen, as in a real ledger.
    counts = {column.name: 0 for column in LEDGER.columns if column.unit == "count" and column.type == pa.int64()}
    return counts | sums | totals | window
