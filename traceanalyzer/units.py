"""Units as people write and read them: `20us`, `3%`, `64KiB` in; "1.23 ms", "61%", "128 MiB" out.

Times are nanoseconds, sizes bytes, shares fractions from 0 to 1. No heavy import: the command line reads this before anything else.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal, NamedTuple

Unit = Literal["ns", "bytes", "share", "count"]
"""What columns, figures and thresholds are measured in; None in its place is a plain number."""
NS: Final = "ns"
BYTES: Final = "bytes"
SHARE: Final = "share"
COUNT: Final = "count"
UNITS: tuple[Unit, ...] = (NS, BYTES, SHARE, COUNT)

# Suffix of a literal -> (unit, how many of that unit it stands for).
SUFFIXES: dict[str, tuple[Unit, float]] = {
    "ns": (NS, 1),
    "us": (NS, 1_000),
    "µs": (NS, 1_000),
    "ms": (NS, 1_000_000),
    "s": (NS, 1_000_000_000),
    "min": (NS, 60_000_000_000),
    "%": (SHARE, 0.01),
    "B": (BYTES, 1),
    "KiB": (BYTES, 1 << 10),
    "MiB": (BYTES, 1 << 20),
    "GiB": (BYTES, 1 << 30),
    "KB": (BYTES, 1_000),
    "MB": (BYTES, 1_000_000),
    "GB": (BYTES, 1_000_000_000),
}
LARGEST = 1 << 63
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
SUFFIX = "|".join(sorted((re.escape(s) for s in SUFFIXES), key=len, reverse=True))
_LITERAL = re.compile(rf"\s*(?P<sign>-?)(?P<number>{NUMBER})(?P<suffix>{SUFFIX})?\s*")
_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class Quantity(NamedTuple):
    """A number and its unit, None for a plain number."""

    value: int | float
    unit: Unit | None


def quantity(number: str, suffix: str | None) -> Quantity:
    """The value of a literal in its base unit; whole nanoseconds and bytes stay integers. `number` matches NUMBER.

    Raises ValueError for one that no column of a table could hold.
    """
    unit, factor = SUFFIXES[suffix] if suffix else (None, 1)
    value = float(number)
    if unit == SHARE:
        # Divided, not multiplied: 7 / 100 is 0.07, 7 * 0.01 is not.
        amount = value / 100
    elif number.isdecimal() and value < LARGEST:
        amount = int(number) * int(factor)
    else:
        amount = round(value * factor) if suffix and value < LARGEST else value
    if not can_be_held(amount):
        raise ValueError(f"'{number[:20]}{suffix or ''}' is too large")
    return Quantity(amount, unit)


def can_be_held(value: float) -> bool:
    """Whether a column of a table can hold the number: a whole one in 64 bits, any other if it is finite."""
    return -LARGEST < value < LARGEST if isinstance(value, int) else math.isfinite(value)


def parse_quantity(text: str) -> Quantity:
    """Read `20us`, `1.5ms`, `3%`, `64KiB`, `-1` or `0.5`. Raises ValueError with a message for the user."""
    match = _LITERAL.fullmatch(text)
    if not match:
        raise ValueError(f"'{text}' is not a quantity such as 20us, 1.5ms, 3% or 64KiB")
    value, unit = quantity(match["number"], match["suffix"])
    return Quantity(-value if match["sign"] else value, unit)


def format_duration(ns: float) -> str:
    """Nanoseconds with three significant digits in the unit that fits: 1234567 -> "1.23 ms"."""
    return _scaled(ns, _TIMES, "ns")


def format_bytes(count: float) -> str:
    """Bytes in binary units: 134217728 -> "128 MiB"."""
    return _scaled(count, _SIZES, "B")


def bytes_digits(count: float) -> tuple[float, str, int]:
    """What `format_bytes` writes, as number, unit, and how many decimals three digits take."""
    return _digits(count, _SIZES, "B")


def format_share(share: float) -> str:
    """A fraction as percent: 0.613 -> "61%", 0.014 -> "1.4%"; what is tiny but there is never shown as zero, nor nearly all as all."""
    percent = share * 100
    if 99.5 <= percent < 100:
        return "over 99%"
    if percent == 0:
        return "0%"
    if abs(percent) < 0.1:
        return "<0.1%" if percent > 0 else ">-0.1%"
    return f"{percent:.0f}%" if abs(percent) >= 9.95 else f"{percent:.1f}%"


def format_count(count: float) -> str:
    """A count with thousands separators; at most one decimal for means: 12345 -> "12,345", 3.75 -> "3.8"."""
    rounded = round(count, 1)
    return f"{round(count):,}" if rounded == int(rounded) or abs(count) >= 100 else f"{rounded:,.1f}"


def format_value(value: float, unit: str | None) -> str:
    """A value the way its unit is usually read."""
    formats = {NS: format_duration, BYTES: format_bytes, SHARE: format_share}
    return formats.get(unit or COUNT, format_count)(value)


def _scaled(value: float, scales: tuple[tuple[int, str], ...], base: str) -> str:
    scaled, unit, digits = _digits(value, scales, base)
    text = f"{scaled:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def _digits(value: float, scales: tuple[tuple[int, str], ...], base: str) -> tuple[float, str, int]:
    """The number in the unit that fits, that unit, and how many decimals three digits take; whole in the smallest unit."""
    # 999.6 us would print as "1000 us": a unit is left as soon as rounding reaches the next one.
    scale, unit = next(((s, u) for s, u in scales if abs(value) >= s * 0.9995), (1, base))
    scaled = value / scale
    return (round(scaled), unit, 0) if scale == 1 else (scaled, unit, max(0, 3 - len(str(int(abs(scaled))))))
