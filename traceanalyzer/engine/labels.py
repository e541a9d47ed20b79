"""A readable line for a row, as its table's declaration tells: from a template, or from a function beside the code of the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from traceanalyzer.catalog.declarations import declared, function_of
from traceanalyzer.engine.language.message import words
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.names import brief_name
from traceanalyzer.units import BYTES, COUNT, NS, SHARE, format_bytes, format_duration, format_share
from traceanalyzer.vocabulary.copies import way

Row = Mapping[str, Any]
Label = Callable[[Row], str]
Write = Callable[[Any], str]

_PIECE = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)(\?|:\w+)?\}")
_UNITS: dict[str | None, Write] = {
    NS: format_duration,
    BYTES: format_bytes,
    SHARE: format_share,
    COUNT: "{:,}".format,
}
_FORMATS: dict[str, Write] = {"text": str, "way": way, "words": words}


def label_of(table: str) -> Label:
    """The label of a row of a table, in which `duration` is its length in ns; of one that declares none, its length and its name."""
    one = declared().get(table)
    if one is None or one.label is None:
        return _event
    return template(one.label, one.spec) if "{" in one.label else function_of(one.label)


def _event(row: Row) -> str:
    name = next((row[key] for key in ("name", "api_name", "line") if row.get(key)), None)
    length = format_duration(row["duration"])
    return f"{length}: {brief_name(name)}" if name else f"a stretch of {length}"


@cache
def template(text: str, spec: TableSpec | None = None) -> Label:
    """The label that a template makes.

    {column} is the value in its unit, a name short enough to read; {column:text} is all of it, {column:words} an identifier as words
    and {column:way} a kind of copy. What is in [brackets] is left out when a column in it is null or empty, and then what follows its |
    takes its place; {column?} is such a condition and nothing else: that it is neither null nor zero.
    """
    units = {column.name: column.unit for column in spec.columns} if spec else {}
    units.setdefault("duration", NS)

    def written(text: str, row: Row) -> str:
        return _FIELD.sub(lambda found: _write(found, row, units), text)

    def piece(found: re.Match[str], row: Row) -> str:
        for choice in found[1].split("|"):
            if all(_there(field, row) for field in _FIELD.finditer(choice)):
                return written(choice, row)
        return ""

    def label(row: Row) -> str:
        # The values come last: brackets in a name are its own.
        pieces, at = [], 0
        for found in _PIECE.finditer(text):
            pieces += [written(text[at : found.start()], row), piece(found, row)]
            at = found.end()
        return "".join([*pieces, written(text[at:], row)])

    return label


def _there(field: re.Match[str], row: Row) -> bool:
    value = row[field[1]]
    return bool(value) if field[2] == "?" else value is not None and value != ""


def _write(field: re.Match[str], row: Row, units: Mapping[str, str | None]) -> str:
    value, form = row[field[1]], field[2]
    if form == "?":
        return ""
    if form:
        return _FORMATS[form[1:]](value)
    if value is None or isinstance(value, str):
        return brief_name(value)
    if (unit := units.get(field[1])) in _UNITS and unit:
        return _UNITS[unit](value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)
