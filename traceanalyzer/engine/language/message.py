"""Messages: text with `{expression}` or `{expression:format}` parts, formatted by us and never by `str.format`.

A part is an expression of the rule grammar at group level, so it reaches metrics, group keys, params and the window and nothing else.
Formats are percent, duration, bytes, count, text (a sentence, not cut short) and words (an identifier such as host_work as words);
without one, the unit decides. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from traceanalyzer.engine.language.compute import Value
from traceanalyzer.engine.language.expression import compile_expression
from traceanalyzer.engine.language.kinds import TEXT, Kind
from traceanalyzer.engine.language.names import Aggregate, Expression, Names, Rows
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.units import (
    BYTES,
    COUNT,
    NS,
    SHARE,
    format_bytes,
    format_count,
    format_duration,
    format_share,
    format_value,
)
from traceanalyzer.vocabulary.copies import way

# Name of a format -> the units it can be given, and how it writes.
FORMATS: dict[str, tuple[tuple[str | None, ...], Callable[[float], str]]] = {
    "percent": ((SHARE, None), format_share),
    "duration": ((NS,), format_duration),
    "bytes": ((BYTES,), format_bytes),
    "count": ((COUNT, None), format_count),
}
# Kernel names can be many hundred characters long; a message stays one readable sentence. `{x:text}` is for what is a sentence.
LONGEST_NAME = 80
LONGEST_TEXT = 600
# Of what an author writes, and of what becomes of it.
LONGEST_TEMPLATE, LONGEST_MESSAGE = 2_000, 10_000
Write = Callable[[Any], str]
_PART = re.compile(r"""\{\{|\}\}|\{((?:"[^"]*"|'[^']*'|[^{}"'])*)\}|[{}]""")
_FORMAT = re.compile(r":\s*(\w+)\s*$")
# Marks a stop that belongs to a name.
_WITHIN = "\0"


@dataclass(frozen=True)
class Message:
    """A compiled message: plain texts and (expression, format) parts in order."""

    parts: tuple[str | tuple[Expression, Write | None], ...]

    def __call__(self, rows: Rows) -> str:
        return self._text(rows, _BriefRows(rows))

    def first_sentence(self, rows: Rows) -> str:
        """What the message says first, without the stop. A stop within a name ends no sentence: `1. forward` is a range."""
        text = self._text(rows, _BriefRows(rows, lambda name: name.replace(". ", f".{_WITHIN} ")))
        return text.partition(". ")[0].removesuffix(".").replace(_WITHIN, "")

    def _text(self, rows: Rows, brief: Rows) -> str:
        written = (
            part if isinstance(part, str) else _written(part[0], part[1], rows if part[1] is _whole else brief)
            for part in self.parts
        )
        return shorten("".join(written), LONGEST_MESSAGE)


class _BriefRows:
    """The same rows, with the names among their values cut to a readable length."""

    def __init__(self, rows: Rows, written: Callable[[str], str] = str) -> None:
        self._rows = rows
        self.values = {name: _brief(value, written) for name, value in rows.values.items()}

    @property
    def count(self) -> int:
        return self._rows.count

    def column(self, name: str) -> pa.Array:
        return self._rows.column(name)

    def window(self, name: str) -> pa.Array:
        return self._rows.window(name)

    def summed(self, aggregate: Aggregate) -> Value:
        return self._rows.summed(aggregate)

    def once(self, key: Hashable, run: Callable[[], Value]) -> Value:
        return self._rows.once(key, run)


def _brief(value: pa.Scalar, written: Callable[[str], str]) -> pa.Scalar:
    if not value.is_valid or not pa.types.is_string(value.type):
        return value
    return pa.scalar(written(readable_name(value.as_py(), LONGEST_NAME)))


def _whole(text: str) -> str:
    return shorten(text, LONGEST_TEXT)


def words(identifier: str) -> str:
    """An identifier such as host_work as words."""
    return identifier.replace("_", " ")


TEXT_FORMATS: dict[str, Write] = {"text": _whole, "words": words, "way": way}


def compile_message(text: str, names: Names) -> Message:
    """Compile and check. Raises ExpressionError with the column within the message."""
    if len(text) > LONGEST_TEMPLATE:
        raise ExpressionError(f"a message has at most {LONGEST_TEMPLATE:,} characters", LONGEST_TEMPLATE)
    parts: list[str | tuple[Expression, Write | None]] = []
    end = 0
    for match in _PART.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
        elif match[1] is None:
            raise ExpressionError(f"'{match[0]}' has no partner; write it twice for a brace", match.start())
        else:
            parts.append(_part(match[1], match.start() + 1, names))
    parts.append(text[end:])
    return Message(tuple(part for part in parts if part))


def written_names(text: str) -> list[str]:
    """The names that a message writes as they are, with or without a format, in its order."""
    bodies = (match[1] for match in _PART.finditer(text) if match[1] is not None)
    return [body for body in (_FORMAT.sub("", body).strip() for body in bodies) if body.isidentifier()]


def shorten(text: str, longest: int) -> str:
    """The text on one line, cut to `longest` characters with an ellipsis."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _part(body: str, column: int, names: Names) -> tuple[Expression, Write | None]:
    form = _FORMAT.search(body)
    try:
        expression = compile_expression(body[: form.start()] if form else body, names)
    except ExpressionError as error:
        raise ExpressionError(str(error), column + error.column) from None
    if not form:
        return expression, None
    if form[1] in TEXT_FORMATS and expression.kind == TEXT:
        return expression, TEXT_FORMATS[form[1]]
    if form[1] not in FORMATS:
        known = ", ".join([*FORMATS, *TEXT_FORMATS])
        raise ExpressionError(
            f"'{form[1]}' is no format for {expression.kind}; there are {known}", column + form.start(1)
        )
    units, write = FORMATS[form[1]]
    if expression.kind.type != "number" or expression.kind.unit not in units:
        raise ExpressionError(f"'{form[1]}' cannot write {expression.kind}", column + form.start(1))
    return expression, write


def _written(expression: Expression, write: Write | None, rows: Rows) -> str:
    value = expression(rows).as_py()
    if value is None:
        return "unknown"
    return write(value) if write else _plain(value, expression.kind)


def _plain(value: object, kind: Kind) -> str:
    """A value in the form its kind suggests."""
    if isinstance(value, int | float) and kind.type == "number":
        # A plain integer such as a rank is a name rather than an amount.
        return str(value) if kind.unit is None and isinstance(value, int) else format_value(value, kind.unit)
    return str(value)
