"""What the names of an expression mean, before and while it runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Any, Protocol

import pyarrow as pa

from traceanalyzer.engine.language.compute import Value
from traceanalyzer.engine.language.kinds import BOOL, Kind
from traceanalyzer.model.programs import TRAITS
from traceanalyzer.records import dataclass

PROGRAM_KINDS: Mapping[str, Kind] = dict.fromkeys(TRAITS, BOOL)
"""The names behind `program.`."""


@dataclass(frozen=True)
class Names:
    """What names an expression may use, and their kinds.

    `values` are the metrics and group keys at group level, and None at row level, where aggregates have no meaning. `window` is None
    where rows belong to no GPU. `longest` are the characters that the texts among the metrics may have.
    """

    columns: Mapping[str, Kind]
    params: Mapping[str, Kind]
    window: Mapping[str, Kind] | None
    values: Mapping[str, Kind] | None = None
    longest: Mapping[str, int] = field(default_factory=dict)


class Rows(Protocol):
    """What an expression runs on: rows, and at group level the values that hold for all of them."""

    @property
    def count(self) -> int: ...

    @property
    def values(self) -> Mapping[str, pa.Scalar]:
        """`params.x` and `program.x`, and at group level also `window.x`, metrics and group keys."""
        ...

    def column(self, name: str) -> pa.Array: ...

    def window(self, name: str) -> pa.Array:
        """A ledger column, one value a row."""
        ...

    def summed(self, aggregate: Aggregate) -> Value:
        """What an aggregate comes to over all rows."""
        ...

    def once(self, key: Hashable, run: Callable[[], Value]) -> Value:
        """What `run` gives, which is asked once of these rows for all that is asked by the same key."""
        ...


class Aggregate(Protocol):
    """What turns rows into one value, a block of them at a time."""

    @property
    def alike(self) -> Hashable:
        """Two of the same rule for which it is equal have the same parts."""
        ...

    def part(self, rows: Rows) -> Any:
        """What a block of rows comes to."""
        ...

    def gather(self) -> Any:
        """What parts are appended to, in their order."""
        ...

    def whole(self, parts: Any) -> Value:
        """The value, of what all blocks come to, as gathered."""
        ...


Run = Callable[[Rows], Value]


@dataclass(frozen=True)
class Expression:
    """A compiled expression. Calling it gives an array (row level, not constant) or a scalar. `longest` is for texts, see `Names`.

    `aggregates` are those in it, `uses` the values of the group that it reads; one that is `safe` fails on no rows whatever.
    """

    text: str
    kind: Kind
    run: Run
    longest: int = 0
    aggregates: tuple[Aggregate, ...] = ()
    uses: frozenset[str] = frozenset()
    safe: bool = False

    def __call__(self, rows: Rows) -> Value:
        return self.run(rows)


class NoRows:
    """No rows and no values: enough to run a literal."""

    count = 0
    values: Mapping[str, pa.Scalar] = {}

    def column(self, name: str) -> pa.Array:
        raise KeyError(name)

    window = column

    def summed(self, aggregate: Aggregate) -> Value:
        raise KeyError(aggregate)

    def once(self, key: Hashable, run: Callable[[], Value]) -> Value:
        return run()
