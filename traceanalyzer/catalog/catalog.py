"""All tables of a trace by name: event tables as they are, derived ones computed once, on demand.

Each derived table is a function of the inputs it declares and gets nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from traceanalyzer.arrow import give_back
from traceanalyzer.catalog.declarations import declared, event_tables, function_of, needs
from traceanalyzer.columns.frames import Key
from traceanalyzer.columns.lean import lean_table
from traceanalyzer.columns.spill import forget, spilled
from traceanalyzer.errors import ConfigError
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.kinds import FORMATS, kinds_of
from traceanalyzer.model.placed import PLACED
from traceanalyzer.model.trace import Trace

_LARGE = 100_000
"""Events from which on tables lie in files, and what was read of them leaves memory after each step."""


class Catalog:
    """The tables of one trace. `input_patterns` are extra name patterns of data-loader ranges, `communication_patterns` of kernels that
    communicate.

    `given` are derived tables that somebody who knows more than this trace has made already: what all ranks together tell.
    """

    def __init__(
        self,
        trace: Trace,
        input_patterns: tuple[str, ...] = (),
        given: Mapping[str, pa.Table] | None = None,
        communication_patterns: tuple[str, ...] = (),
    ) -> None:
        self._trace = trace
        self._declared = declared()
        self._derived: set[str] = set()
        self.is_large = trace.table("gpu_ops").num_rows + trace.table("host_ranges").num_rows >= _LARGE
        self._made: dict[str, Any] = {
            "input_patterns": input_patterns,
            "communication_patterns": communication_patterns,
            "inputs": trace.inputs,
            "recorded_health": trace.table("health"),
            "recorded_ops": trace.table("gpu_ops"),
            "portions": {},
            PLACED.name: trace.tables.get(PLACED.name, PLACED.empty()),
        }
        self.give(given or {})

    def give(self, tables: Mapping[str, pa.Table]) -> None:
        """Use these tables, of which nothing that was asked for so far may be made."""
        self._made.update(tables)
        self._derived.difference_update(tables)

    def keep(self, names: Collection[str]) -> None:
        """Give back the memory of all derived and given tables but these. Others that are asked for are derived anew, of the trace
        alone."""
        self._made = {name: made for name, made in self._made.items() if name in names or name not in self._declared}

    def make(self, names: Collection[str]) -> None:
        """Have these tables and values before they are asked for."""
        for name in names:
            self._input(name)

    def release(self, later: Collection[str]) -> None:
        """Give back the memory of derived tables of which nothing is made that will be asked for `later`.

        What is asked for all the same is derived anew.
        """
        needed = set(later)
        for one in set[str]().union(*map(self._made_of, later)):
            needed.update(self._inputs(one))
        for name in self._derived.intersection(self._made) - needed:
            del self._made[name]
        if self.is_large:
            self._tidy()

    def _made_of(self, name: str) -> set[str]:
        """The tables that are still to be made for this one, itself among them."""
        found: set[str] = set()
        asked = [name]
        while asked:
            one = asked.pop()
            if one not in found and one not in self._made and one in self._declared:
                found.add(one)
                asked += self._inputs(one)
        return found

    def _inputs(self, name: str) -> list[str]:
        one = self._declared[name]
        return [*one.inputs, *filter(None, [one.empty_without])]

    def share(self, portions: Mapping[Key, object]) -> None:
        """What other files on the same GPUs leave to this one; all that is made of the windows is made anew."""
        if not portions and not self._made["portions"]:
            return
        stale = {"portions"}
        while more := {one.name for one in self._declared.values() if stale.intersection(one.inputs)} - stale:
            stale |= more
        self._made = {name: made for name, made in self._made.items() if name not in stale}
        self._made["portions"] = portions

    def table(self, name: str) -> pa.Table:
        """An event or derived table. Raises KeyError for an unknown name, and for that of a value."""
        found = self._input(name)
        if not isinstance(found, pa.Table):
            raise KeyError(f"'{name}' is a value and no table")
        return found

    def value(self, name: str) -> Any:
        """What is shared by several tables and is none itself: see the function of its declaration. Raises KeyError as `table`."""
        found = self._input(name)
        if isinstance(found, pa.Table):
            raise KeyError(f"'{name}' is a table and no value")
        return found

    def _input(self, name: str) -> Any:
        if name in self._made:
            return self._made[name]
        if name not in self._declared:
            other = None if name in self._trace.tables else event_tables().get(name)
            return self._trace.table(name) if other is None else other.empty()
        found = self._make(self._declared[name])
        self._derived.add(name)
        if self.is_large:
            found = spilled(lean_table(found)) if isinstance(found, pa.Table) else found
            self._tidy()
        self._made[name] = found
        return found

    @staticmethod
    def _tidy() -> None:
        """Leave in memory what is used, and of what was freed no more than is worth keeping."""
        forget()
        give_back()

    def _make(self, one: Derived) -> Any:
        if one.spec and one.empty_without and not self.table(one.empty_without).num_rows:
            return one.spec.empty()
        made = function_of(one.made_by)(*(self._input(name) for name in one.inputs))
        if (made.schema if isinstance(made, pa.Table) else None) != (one.spec and one.spec.schema):
            raise ConfigError(f"the table '{one.name}' is not what is declared of it; {one.made_by} makes it")
        return made

    def unavailable(self, name: str) -> str | None:
        """Why an empty table says nothing in this trace; None when it has rows or when being empty is an answer."""
        needed = needs().get(name)
        if needed is None or self.table(needed.table).num_rows:
            return None
        return lacking(needed, {one.format for one in self._made["inputs"]})


def lacking(needed: Needs, formats: Collection[str]) -> str:
    """The reason of what a table needs, and how the profilers that write these formats record it."""
    ways = (kind.recorded_with.get(needed.events or needed.table) for kind in kinds_of(FORMATS) if kind.name in formats)
    return "; ".join([needed.reason, *filter(None, ways)])
