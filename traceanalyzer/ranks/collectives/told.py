"""What is told of collectives, column by column: of each communication kernel, or of what several calls ask for together."""

from __future__ import annotations

from collections.abc import Collection

from traceanalyzer.columns.grouped import Flags, Names, known
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Told:
    """`texts` with None and `numbers` with `NULL` where nothing is told, one value a kernel or group of calls."""

    texts: dict[str, Names]
    numbers: dict[str, Array]

    @property
    def has_kind(self) -> Flags:
        return known(self.texts["kind"])

    def fill(self, rows: Array, said: Told, at: Array, columns: Collection[str]) -> None:
        """Put what `said` tells at these places into these rows."""
        for column in columns:
            if column in self.texts:
                self.texts[column][rows] = said.texts[column][at]
            else:
                self.numbers[column][rows] = said.numbers[column][at]
