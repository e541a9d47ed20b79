"""A trace in memory: the event tables of one or more files, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.model.schema import EVENT_TABLES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Input:
    """One file. `ordinal` is the value of the tables' `rank` column: the rank when the file says it, else a free number.

    `clock_base_ns` + a time in the tables = nanoseconds since the epoch; None when the file does not say.
    """

    path: str
    sha256: str
    bytes: int
    format: str
    producer: str
    rank: int | None
    world_size: int | None
    ordinal: int
    clock_base_ns: int | None


@dataclass(frozen=True)
class Trace:
    """Event tables by name (see `traceanalyzer.model.schema`); a table that no file filled is there and empty."""

    inputs: tuple[Input, ...]
    tables: dict[str, pa.Table]

    def table(self, name: str) -> pa.Table:
        """The event table `name`. Raises KeyError with the known names for another."""
        try:
            return self.tables[name]
        except KeyError:
            raise KeyError(f"no table '{name}'; the tables are {', '.join(EVENT_TABLES)}") from None

    def to_pandas(self, name: str) -> pd.DataFrame:
        """The event table `name` as a pandas DataFrame (names as categoricals)."""
        return self.table(name).to_pandas()  # type: ignore[no-any-return]

    def rank_of(self, ordinal: int) -> int | None:
        """The job's rank behind a value of the `rank` column, None when no file says it."""
        return self._ranks.get(ordinal)

    @cached_property
    def _ranks(self) -> dict[int, int | None]:
        return {i.ordinal: i.rank for i in self.inputs}
