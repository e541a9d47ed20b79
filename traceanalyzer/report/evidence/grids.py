"""A small table of evidence as one of the page's tables."""

from __future__ import annotations

from traceanalyzer.report.tables.table import Column, DataTable, Kind
from traceanalyzer.result.sections import Grid, Unit

KINDS: dict[Unit, Kind] = {"ns": "duration", "bytes": "bytes", "count": "count", "share": "share", "text": "text"}


def grid_table(grid: Grid, id_: str, most: int) -> DataTable:
    """At most so many of its rows, ordered by its first figure. Raises ValueError for a row that does not have as many values."""
    width = len(grid.columns)
    if any(len(row) != width for row in grid.rows):
        raise ValueError(f"{grid.title}: a row does not have {width} values")
    rows = grid.rows[:most]
    columns = tuple(
        Column(title, KINDS[unit], title, [row[at] for row in rows], is_name=unit == "text" and at == 0)
        for at, (title, unit) in enumerate(grid.columns)
    )
    left = len(grid.rows) - len(rows)
    note = f"The first {len(rows):,} of {len(grid.rows):,} rows." if left else ""
    order = next((at for at, (_, unit) in enumerate(grid.columns) if unit != "text"), 0)
    return DataTable(id_, grid.title, note, len(grid.rows), columns, order=order)
