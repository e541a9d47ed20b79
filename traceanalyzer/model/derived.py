"""How a derived table, or a value that several of them share, is declared: once, beside the code that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from traceanalyzer.model.schema import TableSpec
from traceanalyzer.records import dataclass

Fill = int | tuple[str, ...]
"""What a column holds unless a row says otherwise: a number or truth value, or the first of some columns less the others."""


@dataclass(frozen=True)
class Needs:
    """The table that must have rows for a derived one to say something about the program, and what to say when it has none.

    `settings` are what would record it, as `doctor` names them; how a profiler does that, its format says of the table
    of `events`, where that is not `table` itself. `always_recorded` is true of work that any recording of a GPU holds, so that none of
    it means that none ran.
    """

    table: str
    reason: str
    settings: tuple[str, ...] = ()
    events: str | None = None
    always_recorded: bool = False


@dataclass(frozen=True)
class Sample:
    """How a row of a table, as the tests of rules write it, becomes a part of a small trace.

    `fills` are the columns that follow from the rest, in order; of these, `duration` is the length of the row and `number` its place
    among the rows. `fills_with` are those of rows that have some column. `lines` are the stretches of the ledger that a row lies on,
    one after another from its start: the line, in which {column} stands for a value of the row, and columns whose sum is its length.
    """

    fills: Mapping[str, Fill] = field(default_factory=dict)
    fills_with: tuple[str, Mapping[str, Fill]] = ("", {})
    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Derived:
    """One derived table or shared value.

    `made_by` is "module:function", imported when the table is first asked for; the function is called with `inputs`, tables and values
    by name, and nothing else. `spec` is None for a value that is no table (interval sets, a replayed timeline). A table is empty, and
    no code for it is imported, where `empty_without` is: an input, or what an input is made from.

    `internal` tables are what others are made of, and not for rules. `small` says that it does not grow with the trace, so that it
    travels between processes and is there of the whole job; `of_job` that it says something of all ranks together, and so do rules
    that read it; `kept` that a part in memory keeps it for the report.

    `label` makes a readable line of one row, as evidence of a finding: a template, in which {column} stands for the value in its unit
    and what is in [brackets] is left out when a column in it is null, or "module:function" of a row.
    """

    name: str
    made_by: str
    inputs: tuple[str, ...]
    spec: TableSpec | None = None
    needs: Needs | None = None
    small: bool = False
    label: str | None = None
    empty_without: str | None = None
    internal: bool = False
    of_job: bool = False
    kept: bool = False
    sample: Sample | None = None
