from __future__ import annotations

import pytest

from traceanalyzer.units import format_bytes, format_count, format_duration, format_share, parse_quantity


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1 us"),
        (999_600, "1 ms"),
        (1_234_567, "1.23 ms"),
        (123_456_789, "123 ms"),
        (45_600_000_000, "45.6 s"),
        (-1500, "-1.5 us"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.613, "61%"),
        (0.014, "1.4%"),
        (0.0996, "10%"),
        (0.00001, "<0.1%"),
        (0, "0%"),
        (1, "100%"),
        (0.9999, "over 99%"),
    ],
)
def test_shares(share: float, text: str) -> None:
    assert format_share(share) == text


def test_bytes_and_counts() -> None:
    assert [format_bytes(n) for n in (512, 65536, 134_217_728)] == ["512 B", "64 KiB", "128 MiB"]
    assert [format_count(n) for n in (3, 3.75, 12_345)] == ["3", "3.8", "12,345"]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("20us", 20_000, "ns"),
        ("1.5ms", 1_500_000, "ns"),
        ("7%", 0.07, "share"),
        ("64KiB", 65_536, "bytes"),
        ("-2", -2, None),
        ("0.5", 0.5, None),
    ],
)
def test_literals(text: str, value: float, unit: str | None) -> None:
    assert parse_quantity(text) == (value, unit)


@pytest.mark.parametrize("text", ["", "20 us", "20parsec", "us", "1ms2", "__import__('os')"])
def test_no_literals(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)
