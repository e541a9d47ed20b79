"""The first rows of a table as texts: what paper and readers without scripts get, figure for figure as tables-data.js writes them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from traceanalyzer.records import dataclass
from traceanalyzer.report.tables.table import Column, DataTable
from traceanalyzer.units import bytes_digits, format_count

FIRST_ROWS = 25
"""As many as tables.js shows at first."""
LONGEST_NAME, LONGEST_TEXT = 160, 60


@dataclass(frozen=True)
class PlainTable:
    """`headings` are (title, unit, whether its cells are figures), `rows` the texts of cells; `colours` are of the column `swatch`."""

    headings: list[tuple[str, str, bool]]
    rows: list[list[str]]
    colours: list[str]
    swatch: int
    left: int
    """How many rows of the table are not here."""


def plain_table(table: DataTable, most: int = FIRST_ROWS) -> PlainTable:
    """At most so many of its rows."""
    shown = min(table.rows, most)
    columns = [_texts(column, table.unit(column), shown) for column in table.columns]
    return PlainTable(
        [(column.title, table.unit(column) or "", column.kind != "text") for column in table.columns],
        [list(row) for row in zip(*columns, strict=True)],
        list(table.colours[:shown]) if table.colours is not None else [],
        table.swatch,
        table.count - shown,
    )


def _texts(column: Column, unit: str | None, shown: int) -> list[str]:
    write = _format(column, unit)
    most = LONGEST_NAME if column.is_name else LONGEST_TEXT
    texts = []
    for row, value in enumerate(column.values[:shown]):
        short = column.short[row] if column.short is not None else None
        text = "–" if value is None else short or write(value)
        text = text if len(text) <= most else text[: most - 1] + "…"
        is_bound = value is not None and column.at_least is not None and column.at_least[row]
        texts.append(f"≥ {text}" if is_bound else text)
    return texts


def _format(column: Column, unit: str | None) -> Callable[[Any], str]:
    size, decimals = (1e6, 3) if unit == "ms" else (1e3, 2)
    formats: dict[str, Callable[[Any], str]] = {
        "text": str,
        "count": lambda value: (
            format_count(value) if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")
        ),
        "duration": lambda value: _fixed(value, size, decimals),
        "change": lambda value: f"{'−' if value < 0 else '+' if value else ''}{_fixed(abs(value), size, decimals)}",
        "bytes": _size,
        "share": lambda value: f"{_fixed(value, 0.01, 1)}%",
        "rate": lambda value: _fixed(value, 1, 2),
        "ratio": lambda value: f"{_fixed(value, 1, 3 if value < 0.1 else 2)}×",
    }
    return formats[column.kind]


def _size(value: int) -> str:
    """Bytes with three digits, whose zeros stay as in a browser."""
    amount, unit, digits = bytes_digits(value)
    amount = round(amount, digits)
    decimals = 0 if unit == "B" else max(3 - len(str(int(amount))), 0)
    return f"{amount:.{decimals}f} {unit}"


def _fixed(value: float, size: float, decimals: int) -> str:
    """In multiples of `size`; what is tiny but there is never shown as zero, nor zero as a figure that was rounded."""
    if value == 0:
        return "0"
    least = 10**-decimals
    shown = Decimal(str(value / size)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)  # as browsers round
    return f"<{least:.{decimals}f}" if value / size < least / 2 else f"{shown:,}"
