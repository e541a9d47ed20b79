"""How a derived table, or a value that several of them share, is declared: once, beside the code that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from traceanalyzer.model.schema import TableSpec


@dataclass(frozen=True)
class Needs:
    """The table that must have rows for a derived one to say something about the program, and what to say when it has none.

    `recorded_with` tells how the profiler that writes a format records it, by format, for those to whom that is news.
    """

    table: str
    reason: str
    recorded_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Derived:
    """One derived table or shared value.

    `made_by` is "module:function", imported when the table is first asked for; the function is called with `inputs`, tables and values
    by name, and nothing else. `spec` is None for a value that is no table (interval sets, a replayed timeline). `small` says that it
    does not grow with the trace, so that it travels between processes. `label` is a template for a readable line of one row, as
    evidence of a finding.
    """

    name: str
    made_by: str
    inputs: tuple[str, ...]
    spec: TableSpec | None = None
    needs: Needs | None = None
    small: bool = False
    label: str | None = None
