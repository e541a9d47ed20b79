"""Sections of kinds of evidence as plain text: their paragraphs and small tables; what is drawn is in the report alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.sections import Grid, Section, Words
from traceanalyzer.units import format_value

_MOST_ROWS = 10


def render_sections(sections: Sequence[Section]) -> str:
    """A heading each, with what of it can be said in text; empty without any. Ends in a newline."""
    lines: list[str] = []
    for section in sections:
        own = list(_lines(section))
        lines += ["", section.title.upper(), "", *own] if own else []
    return page(lines) if lines else ""


def _lines(section: Section) -> Iterator[str]:
    for block in section.blocks:
        if isinstance(block, Words):
            yield from wrap(block.text, "  ", "  ")
        elif isinstance(block, Grid):
            yield from ("", f"  {block.title}", *_grid(block))


def _grid(grid: Grid) -> Iterator[str]:
    units = [unit for _, unit in grid.columns]
    rows = [[_cell(value, unit) for value, unit in zip(row, units, strict=True)] for row in grid.rows[:_MOST_ROWS]]
    cells = [[name for name, _ in grid.columns], *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        told = (_aligned(*one) for one in zip(row, widths, units, strict=True))
        yield f"    {'  '.join(told)}".rstrip()
    if len(grid.rows) > _MOST_ROWS:
        yield f"    and {len(grid.rows) - _MOST_ROWS} more in the report"


def _aligned(text: str, width: int, unit: str) -> str:
    return text.ljust(width) if unit == "text" else text.rjust(width)


def _cell(value: int | float | str | None, unit: str) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else format_value(value, unit)
