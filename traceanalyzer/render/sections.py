"""Sections of other kinds of evidence, shortly: their words, the head of their tables, and of the rest the most there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceanalyzer.names import readable_name
from traceanalyzer.render.lines import printable, wrap
from traceanalyzer.render.md import LEFT, RIGHT, code, table, text
from traceanalyzer.result.sections import Block, Flame, Grid, Levels, Scatter, Section, Unit, Words
from traceanalyzer.units import format_bytes, format_count, format_duration, format_share

ROWS = 5
"""Of a table the first so many rows."""
LONGEST = 48
LINES = 8
"""Of lines over time the first so many are said."""


def section_lines(sections: Sequence[Section]) -> list[str]:
    """As plain text, with an empty line before each."""
    lines = []
    for section in _in_order(sections):
        said = [line for block in section.blocks for line in _lines(block)]
        if said:
            lines += ["", printable(section.title).upper(), *said]
    return lines


def section_blocks(sections: Sequence[Section]) -> list[str]:
    """As blocks of Markdown."""
    blocks = []
    for section in _in_order(sections):
        said = [block for one in section.blocks for block in _blocks(one)]
        if said:
            blocks += [f"#### {text(section.title)}", *said]
    return blocks


def _in_order(sections: Sequence[Section]) -> list[Section]:
    return sorted(sections, key=lambda one: (one.order, one.name))


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Words):
        yield from wrap(printable(" ".join(block.text.split())), "", "")
    elif isinstance(block, Grid):
        yield from _grid_lines(block)
    elif said := _most(block):
        yield from wrap(printable(f"{block.title}: {said}."), "", "  ")


def _blocks(block: Block) -> Iterator[str]:
    if isinstance(block, Words):
        pieces = block.text.split("`")
        yield "".join(code(piece) if at % 2 else _inside(piece) for at, piece in enumerate(pieces) if piece)
    elif isinstance(block, Grid):
        if block.rows:
            rows = [
                [text(_cell(value, unit)) for value, (_, unit) in zip(row, block.columns, strict=True)]
                for row in block.rows[:ROWS]
            ]
            align = [LEFT if unit == "text" else RIGHT for _, unit in block.columns]
            yield f"**{text(block.title)}**{text(_more(block))}"
            yield table([text(title) for title, _ in block.columns], rows, align)
    elif said := _most(block):
        yield f"{text(block.title)}: {text(said)}."


def _inside(words: str) -> str:
    """Words between pieces of code: the spaces at their ends stay."""
    before, after = (" " if end.isspace() else "" for end in (words[0], words[-1]))
    said = text(words)
    return f"{before}{said}{after}" if said else " "


def _grid_lines(grid: Grid) -> Iterator[str]:
    if not grid.rows:
        return
    yield printable(grid.title + _more(grid))
    rows = [
        [_cell(value, unit) for value, (_, unit) in zip(row, grid.columns, strict=True)] for row in grid.rows[:ROWS]
    ]
    cells = [[title for title, _ in grid.columns], *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(grid.columns))]
    for row in cells:
        aligned = [
            cell.ljust(width) if unit == "text" else cell.rjust(width)
            for cell, width, (_, unit) in zip(row, widths, grid.columns, strict=True)
        ]
        yield f"  {'  '.join(aligned)}".rstrip()


def _more(grid: Grid) -> str:
    return f" (the first {ROWS} of {format_count(len(grid.rows))})" if len(grid.rows) > ROWS else ""


def _most(block: Levels | Scatter | Flame) -> str:
    """The highest sum of all series, from where to where each goes that stands for itself, the point that weighs most, or the path that
    holds most."""
    if isinstance(block, Scatter):
        heaviest = max(block.points, key=lambda one: one.weight, default=None)
        if heaviest is None:
            return ""
        place = f"{block.x} {_digits(heaviest.x)}, {block.y} {_digits(heaviest.y)}"
        return f"{readable_name(heaviest.label, LONGEST)} weighs most: {place}"
    if isinstance(block, Levels) and not block.stacked:
        return "; ".join(_reaches(block))
    if isinstance(block, Levels):
        sums = [
            sum(value for value in values if value is not None)
            for values in zip(*(values for _, values in block.series), strict=True)
        ]
        return f"at most {_amount(max(sums), block.unit)}" if sums else ""
    paths = [(amount, path) for path, amount in block.paths if amount > 0 and path]
    if not paths:
        return ""
    amount, path = max(paths, key=lambda one: one[0])
    whole = sum(amount for amount, _ in paths)
    end = readable_name(path[-1], LONGEST)
    return f"{_amount(amount, block.unit)} of {_amount(whole, block.unit)} on the path with most, which ends in {end}"


def _reaches(block: Levels) -> Iterator[str]:
    for name, values in block.series[:LINES]:
        if known := [value for value in values if value is not None]:
            low, high = (_amount(value, block.unit) for value in (min(known), max(known)))
            yield f"{printable(readable_name(name, LONGEST))} {low}" + (f" to {high}" if low != high else "")
    if len(block.series) > LINES:
        yield f"{len(block.series) - LINES} more"


def _cell(value: int | float | str | None, unit: Unit) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        name = printable(" ".join(value.split()))
        return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    return _amount(value, unit)


def _amount(value: float, unit: Unit) -> str:
    if unit == "bytes":
        return format_bytes(int(value))
    if unit == "ns":
        return format_duration(value)
    return format_share(value) if unit == "share" else format_count(int(value))


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
