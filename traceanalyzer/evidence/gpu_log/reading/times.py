"""Times of a log in nanoseconds: since the epoch, by a wall clock whose zone is not told, or from an unknown start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.model.trace import Clock

Ints = npt.NDArray[np.int64]
NONE = np.iinfo(np.int64).min
"""In place of a time that could not be read."""
_TEXT = (
    r"^\s*(?P<date>\d{4}[-/]\d{2}[-/]\d{2})[T ](?P<clock>\d{2}:\d{2}:\d{2})(?:[.,](?P<part>\d{1,9})\d*)?\s*"
    r"(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2})?\s*$"
)
# Numbers of this size count from the epoch in this unit: from 2001 to 2100.
_EPOCH = ((1e9, 4.2e9, 1_000_000_000), (1e12, 4.2e12, 1_000_000), (1e15, 4.2e15, 1_000), (1e18, 4.2e18, 1))


def times_of_texts(texts: pa.Array) -> tuple[Ints, Clock]:
    """Times that are written with date and time of day, with or without a zone, or as numbers; `NONE` for what is neither."""
    parts = pc.extract_regex(texts, _TEXT)
    good = pc.is_valid(parts)
    if not pc.any(good).as_py():
        return times_of_numbers(_numbers(texts))
    date, clock, part, zone = (pc.struct_field(parts, name) for name in ("date", "clock", "part", "zone"))
    text = pc.binary_join_element_wise(pc.replace_substring(date, "/", "-"), clock, "T")
    seconds = _seconds(text)
    found = pc.fill_null(seconds, NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    digits = pc.utf8_rpad(pc.fill_null(part, ""), 9, "0")
    nanos = pc.fill_null(digits.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    known = found != NONE
    whole = np.where(known, found * 1_000_000_000 + nanos, NONE)
    zones = zone.dictionary_encode()
    shifts = np.array([_shift(one) for one in zones.dictionary.to_pylist()] + [0], np.int64)
    zoned = any(one for one in zones.dictionary.to_pylist())
    codes = zones.indices.fill_null(len(shifts) - 1).to_numpy(zero_copy_only=False)
    return np.where(known, whole - shifts[codes], NONE), "epoch" if zoned else "local"


def _seconds(texts: pa.Array) -> pa.Array:
    """Since the epoch as if in UTC; null for a date that there is not."""
    try:
        return texts.cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return pc.strptime(texts, "%Y-%m-%dT%H:%M:%S", "s", error_is_null=True).cast(pa.int64())


def _shift(zone: str | None) -> int:
    """How far a zone is ahead of UTC, in ns."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-minutes if zone[0] == "-" else minutes) * 60_000_000_000


def _numbers(texts: pa.Array) -> npt.NDArray[np.float64]:
    plain = pc.utf8_trim_whitespace(texts)
    good = pc.match_substring_regex(plain, r"^\d{1,19}(\.\d*)?([eE][+-]?\d+)?$")
    return pc.if_else(good, plain, None).cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def times_of_numbers(values: npt.NDArray[np.float64]) -> tuple[Ints, Clock]:
    """Times that are numbers: how large they are tells their unit. What counts from no known moment is in seconds."""
    known = values[np.isfinite(values)]
    if not len(known):
        return np.full(len(values), NONE), "none"
    middle = float(np.median(known))
    for low, high, unit in _EPOCH:
        if low <= middle < high:
            inside = np.isfinite(values) & (values >= low) & (values < high)
            return _whole(values, inside, unit), "epoch"
    inside = np.isfinite(values) & (np.abs(values) < 1e9)
    return _whole(values, inside, 1_000_000_000), "none"


def _whole(values: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_], unit: int) -> Ints:
    """In ns. Whole units and what is left are scaled apart, since no float64 holds nanoseconds since the epoch."""
    safe = np.where(inside, values, 0.0)
    whole = np.floor(safe)
    found = whole.astype(np.int64) * unit + np.rint((safe - whole) * unit).astype(np.int64)
    return np.where(inside, found, NONE)
