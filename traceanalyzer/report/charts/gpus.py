"""The GPUs whose charts the page has: those of the timeline, each with its label and where its times lie on the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from traceanalyzer.columns import Ints
from traceanalyzer.columns.frames import row_parts
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import Jump
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.report.timeline.places import Place
from traceanalyzer.result.document import Evidence
from traceanalyzer.result.words.gpu_names import gpu_of

Placing = Callable[[Evidence], Place | None]
MOST = 16
SOURCES = ("ledger_intervals", "step_ledger", "kernel_stats")


@dataclass(frozen=True)
class Gpu:
    """One GPU by its rank in the tables and its device number."""

    rank: int
    device: int
    label: str


@dataclass(frozen=True)
class Gpus:
    """The GPUs in the order of the page's list, and the tables about them."""

    every: list[Gpu]
    tables: Tables
    placing: Placing

    def rows(self, name: str) -> Iterator[tuple[int, pa.Table]]:
        """For each GPU that a table has rows of: its number and those rows."""
        table = table_or_none(self.tables, name)
        if table is None:
            return
        at = {(gpu.rank, gpu.device): number for number, gpu in enumerate(self.every)}
        for key, rows in row_parts(table, ("rank", "device")):
            if key in at:
                yield at[key[0], key[1]], table[rows] if isinstance(rows, slice) else table.take(pa.array(rows))

    def number(self, key: tuple[int, ...]) -> int | None:
        """That of a (rank, device) in the list."""
        return next((at for at, gpu in enumerate(self.every) if (gpu.rank, gpu.device) == key), None)

    def place(self, number: int, start: int, end: int) -> Place | None:
        """Where a stretch of that GPU's time, in the file's own ns, lies on the timeline."""
        gpu = self.every[number]
        return self.placing(Evidence(gpu.rank, gpu.device, int(start), int(end), ""))

    def jumps(self, number: int, starts: Ints, ends: Ints) -> list[Jump | None]:
        """The same of several, for a figure's marks."""
        places = [self.place(number, start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return [None if place is None else (place.start, place.end, place.group) for place in places]


def gpus_of(tables: Tables, rank_name: RankName, placing: Placing) -> Gpus:
    """Those that the timeline shows; without its tables, the first that any table about steps or kernels knows."""
    found = next((table for name in SOURCES if (table := table_or_none(tables, name)) is not None), None)
    keys = [] if found is None else [key for key, _ in row_parts(found, ("rank", "device"))]
    every = [Gpu(rank, device, gpu_of(rank_name(rank), device)) for rank, device in keys[:MOST]]
    return Gpus(every, tables, placing)
