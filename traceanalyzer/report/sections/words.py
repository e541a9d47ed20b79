"""How the page writes durations, names and the result document's texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from traceanalyzer.result.sections import Unit
from traceanalyzer.units import format_bytes, format_count, format_share
from traceanalyzer.units import format_duration as plain_duration


def format_duration(ns: float) -> str:
    """A duration as people read it on a page, with the micro sign."""
    return plain_duration(ns).replace(" us", " µs")


_UNIT = re.compile(r"(?<=\d) (ns|µs|ms|s|min|B|KiB|MiB|GiB|TiB|GB/s)\b")


def readable(text: str) -> str:
    """A text of the result document with the page's micro sign, and no line break between a figure and its unit."""
    return _UNIT.sub("\N{NO-BREAK SPACE}\\1", re.sub(r"(?<=\d) us\b", " µs", text))


def sentence(text: str) -> str:
    """A clause as a sentence: with a capital, and a stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def amount_words(value: float | None, unit: Unit) -> str:
    """An amount as the page writes it."""
    if value is None:
        return "–"
    if unit == "bytes":
        return format_bytes(int(value))
    if unit == "ns":
        return format_duration(value)
    return format_share(value) if unit == "share" else format_count(int(value))


def day(time_ns: int) -> str:
    """A moment, in ns since 1970, as a day and minute of UTC."""
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M}"
