"""Numbers as Nsight Compute prints them: in the locale of the machine, and in units that fit their size."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_SPACES = re.compile(r"[\s'’\u00a0\u202f\u2009]")
_POINT = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+\.\d*|\d{1,3}(?:,\d{3}){2,}|\d*\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+)")
_COMMA = re.compile(r"-?(?:\d{1,3}(?:\.\d{3})+,\d*|\d{1,3}(?:\.\d{3}){2,}|\d*,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SECONDS = {"n": 1.0, "u": 1e3, "µ": 1e3, "m": 1e6, "": 1e9}
_TIME = re.compile(r"(n|u|µ|m|)(?:s|sec|second)")
_AMOUNT = re.compile(r"([KMGTPE]?)(byte|b|hz|cycle|inst|sector|request|flop)", re.IGNORECASE)


def decimal_mark(values: Iterable[str]) -> str:
    """The mark before decimals, by those numbers that can be read in one way only; a point where none tells."""
    point = comma = 0
    for value in values:
        text = _SPACES.sub("", value)
        point += _POINT.fullmatch(text) is not None
        comma += _COMMA.fullmatch(text) is not None
    return "," if comma > point else "."


def number(text: str, mark: str) -> float | None:
    """A number with separators of thousands; None for what is none (n/a, nan, words)."""
    try:
        value = float(text.replace(",", "") if mark == "." else text.replace(".", "").replace(",", "."))
    except ValueError:
        plain = _SPACES.sub("", text)
        if plain == text:
            return None
        return number(plain, mark)
    return value if math.isfinite(value) else None


def scale(unit: str) -> float:
    """What a value in this unit is multiplied by for shares (of 1), ns, bytes, Hz, or bytes a second; 1 for anything else.

    Nsight Compute counts in powers of ten: a Kbyte has 1,000 bytes (its documentation, Metrics Decoder).
    """
    text = unit.strip()
    if text == "%":
        return 0.01
    whole, _, per = text.partition("/")
    if found := _TIME.fullmatch(whole):
        return _SECONDS[found[1]] if not per else 1.0
    found = _AMOUNT.fullmatch(whole)
    factor = _PREFIX.get(found[1].upper(), 1.0) if found else 1.0
    if per and (time := _TIME.fullmatch(per)):
        factor *= 1e9 / _SECONDS[time[1]]
    return factor
