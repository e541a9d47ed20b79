"""What sets the length of a step, as plain text and as Markdown: the largest links of the critical path."""

from __future__ import annotations

from traceanalyzer.render.lines import WIDTH
from traceanalyzer.render.md import LEFT, RIGHT, details, table, text
from traceanalyzer.result.document import Result
from traceanalyzer.result.words.critical_path import PathRow, left_words, path_length, path_rows, path_title
from traceanalyzer.units import format_duration, format_share

LINKS = 3
WIDTHS = (10, 7, 12)
GIVES = "gives"


def path_section(result: Result) -> list[str]:
    """The section after an empty line; nothing where no path is told."""
    path, rows = result.critical_path, path_rows(result, LINKS)
    if path is None or not rows:
        return []
    lines = ["", f"{path_title(path).upper()}: {path_length(path)}", _row(("time", "share", GIVES), "what")]
    for one in rows:
        lines.append(_row((format_duration(one.ns), format_share(one.share), _gain(one)), one.what))
    left = left_words(path, rows)
    return [*lines, f"  {left}"] if left else lines


def path_block(result: Result) -> list[str]:
    """The same as a block of Markdown, folded away."""
    path, rows = result.critical_path, path_rows(result, LINKS)
    if path is None or not rows:
        return []
    cells = [[text(one.what), format_duration(one.ns), format_share(one.share), text(_gain(one))] for one in rows]
    body = [table(["what", "time", "share", GIVES], cells, [LEFT, RIGHT, RIGHT, RIGHT])]
    if left := left_words(path, rows):
        body.append(text(left))
    return [details(f"{path_title(path)}: {path_length(path)}", *body)]


def _gain(one: PathRow) -> str:
    return "-" if one.gain_ns is None else format_duration(one.gain_ns)


def _row(cells: tuple[str, ...], what: str) -> str:
    line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)) + f"  {what}"
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rstrip() + "…"
