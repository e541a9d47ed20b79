"""Columns of numbers and names from dictionaries that may hold anything: what is not of the kind becomes null, and is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]
NONE = np.iinfo(np.int64).min
"""Stands for null in a column of whole numbers."""
NO_ADDRESS = np.iinfo(np.uint64).max
_MOST = (1 << 63) - 1


class Wrong:
    """How many values were of a wrong type or beyond their range."""

    def __init__(self) -> None:
        self.count = 0


def values(rows: Sequence[dict[str, Any]], key: str) -> list[Any]:
    """One value of each row; None where it lacks the key."""
    try:
        return [row[key] for row in rows]
    except KeyError:
        return [row.get(key) for row in rows]


def ints(rows: Sequence[dict[str, Any]], key: str, wrong: Wrong, least: int = 0) -> Ints:
    """Whole numbers of at least `least`; NONE where there is none."""
    return _column(rows, key, wrong, least, _MOST, np.dtype(np.int64), NONE)


def addresses(rows: Sequence[dict[str, Any]], key: str, wrong: Wrong) -> Addresses:
    """Addresses; NO_ADDRESS where there is none."""
    return _column(rows, key, wrong, 0, NO_ADDRESS - 1, np.dtype(np.uint64), NO_ADDRESS)


def _column(
    rows: Sequence[dict[str, Any]], key: str, wrong: Wrong, least: int, most: int, kind: np.dtype[Any], none: int
) -> npt.NDArray[Any]:
    part = values(rows, key)
    if set(map(type, part)) == {int} and min(part) >= least:
        found: npt.NDArray[Any]
        with suppress(OverflowError):
            found = np.array(part, kind)
            if found.max() <= most:
                return found
    found = np.full(len(rows), none, kind)
    for place, value in enumerate(part):
        if type(value) is int and least <= value <= most:
            found[place] = value
        else:
            wrong.count += value is not None
    return found


class Names:
    """Numbers for names, in order of appearance; -1 for what is no string."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(known)}

    def codes(self, found: Sequence[Any], wrong: Wrong) -> npt.NDArray[np.int32]:
        numbers = self._numbers
        try:
            return np.array([numbers[value] for value in found], np.int32)
        except (KeyError, TypeError):
            return np.array([self.code(value, wrong) for value in found], np.int32)

    def code(self, value: Any, wrong: Wrong) -> int:
        """The number of one name, a new one if need be."""
        if type(value) is not str:
            wrong.count += value is not None
            return -1
        return self._numbers.setdefault(value, len(self._numbers))

    def of(self, codes: npt.NDArray[Any]) -> pa.DictionaryArray:
        """The names with these numbers; null for -1."""
        names = pa.array([clean(name) for name in self._numbers], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), names)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers


def clean(text: str) -> str:
    """The text without halves of characters that UTF-8 cannot say."""
    return text.encode("utf-8", "replace").decode("utf-8")


def nullable(found: Ints) -> pa.Array:
    """An Arrow column; null for NONE."""
    return pa.array(found, mask=found == NONE)


def nullable_addresses(found: Addresses) -> pa.Array:
    """An Arrow column; null for NO_ADDRESS."""
    return pa.array(found, mask=found == NO_ADDRESS)


def filled(found: Ints) -> Ints:
    """The same with 0 for NONE, for sums."""
    return np.where(found == NONE, 0, found)
