"""What an expression yields, known before any row is seen: a number with its unit, a text, or a truth value.

The unit algebra is here: times add to times, a time over a time is a share, a share of a time is a time. Whatever makes no sense
(10% of nothing compared with a time) is a KindError, so that a threshold in the wrong unit is found without a trace.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from traceanalyzer.model.schema import Column
from traceanalyzer.units import BYTES, COUNT, NS, SHARE, Unit


class KindError(ValueError):
    """Two kinds that do not go together; the message says which."""


class Kind(NamedTuple):
    """`type` is number, text, bool or null; `unit` is ns, bytes, share, count or None, and only numbers have one."""

    type: str
    unit: Unit | None = None

    def __str__(self) -> str:
        if self.type == "number":
            return {NS: "a time", BYTES: "a size in bytes", SHARE: "a share", COUNT: "a count"}.get(
                self.unit or "", "a plain number"
            )
        return {"text": "a text", "bool": "a truth value", "null": "None"}[self.type]


NUMBER, TEXT, BOOL, NULL = Kind("number"), Kind("text"), Kind("bool"), Kind("null")


def number(unit: Unit | None) -> Kind:
    """The kind of a number in `unit`."""
    return Kind("number", unit)


def column_kind(column: Column) -> Kind | None:
    """What a table column yields in an expression; None for lists, which no expression can use."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind):
        return TEXT
    if pa.types.is_boolean(kind):
        return BOOL
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return number(column.unit)
    return None


def common(kinds: list[Kind], what: str) -> Kind:
    """The one kind that all of `kinds` agree on; None literals agree with all. Raises KindError, naming `what` they were for."""
    result = NULL
    for kind in kinds:
        if NULL in (result, kind):
            result = kind if result == NULL else result
        elif result.type != kind.type:
            raise KindError(f"{what} {result} and {kind}")
        elif result.unit != kind.unit:
            result = number(_common_unit(result, kind, what))
    return result


def _common_unit(a: Kind, b: Kind, what: str) -> Unit | None:
    # Plain numbers go with counts (gaps >= 200) and with shares (1 - busy), never with times or sizes: there a unit is missing.
    if None in (a.unit, b.unit) and {a.unit, b.unit} <= {None, COUNT, SHARE}:
        return a.unit or b.unit
    hint = ""
    if SHARE in (a.unit, b.unit):
        hint = "; write 10% * window.duration for a share of the window"
    elif None in (a.unit, b.unit):
        hint = "; write the unit, as in 20us or 64KiB"
    raise KindError(f"{what} {a} and {b}{hint}")


def multiply(a: Kind, b: Kind) -> Kind:
    """Kind of a product. Raises KindError for time times time and the like."""
    _numbers("multiply", a, b)
    for measure, factor in ((a, b), (b, a)):
        if factor.unit is None:
            return measure
        if factor.unit == SHARE or (factor.unit == COUNT and measure.unit in (NS, BYTES, COUNT)):
            return measure
    raise KindError(f"cannot multiply {a} by {b}")


def divide(a: Kind, b: Kind) -> Kind:
    """Kind of a quotient: time over time is a share, count over count a plain number. Raises KindError for rates."""
    _numbers("divide", a, b)
    if a.unit == b.unit:
        return number(SHARE) if a.unit in (NS, BYTES) else NUMBER
    if b.unit in (None, COUNT, SHARE) and a.unit is not None:
        return a
    if a.unit is None and b.unit in (COUNT, SHARE):
        return NUMBER
    raise KindError(f"cannot divide {a} by {b}")


def _numbers(verb: str, *kinds: Kind) -> None:
    for kind in kinds:
        if kind.type != "number":
            raise KindError(f"cannot {verb} {kind}")
