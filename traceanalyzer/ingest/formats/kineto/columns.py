"""From decoded events of one category to Arrow columns of one event table."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.kineto.text.decode import Args, Event, Number, Times, plain
from traceanalyzer.model.schema import NAME

NO_ARGS = Args()
INT32, INT64 = pa.int32(), pa.int64()
UNSIGNED_MINUS_ONE = 2**32 - 1
MOST_RANKS = 1 << 16
"""A group of more is a wrong number; the list of its ranks is not written out."""

Numbers = npt.NDArray[np.int32]


def arguments(events: Sequence[Event]) -> list[Args]:
    """The arguments of each event, empty ones where it has none."""
    return [e.args or NO_ARGS for e in events]


def patch_values(values: Sequence[Any], fallbacks: Iterable[Any]) -> list[Any]:
    """The values, each `None` replaced by its fallback."""
    return [fallback if value is None else value for value, fallback in zip(values, fallbacks, strict=True)]


class Integers:
    """Makes integer columns of numbers and of strings that spell one. What an integer of the type cannot hold becomes null.

    `lost` counts those, `first_lost` shows the first. Names that stand where a process or thread id should get a number of their own,
    which depends on nothing but the name; `names` holds them.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.first_lost: str | None = None
        self.names: dict[int, str] = {}

    def column(
        self,
        values: Sequence[Number],
        type_: pa.DataType = INT64,
        instead: Callable[[], Iterable[Number]] | None = None,
    ) -> pa.Array:
        """The column; where a value is None, the one that is given `instead`."""
        # Arguments are often absent from all events of a kind.
        if instead is None and values and values[0] is None and values.count(None) == len(values):
            return pa.nulls(len(values), type_)
        return self._column(values, type_, _whole, instead)

    def nonzero(self, values: Sequence[Number], type_: pa.DataType = INT64) -> pa.Array:
        """As `column`, where 0 says that there is none."""
        column = self.column(values, type_)
        if column.null_count == len(column):
            return column
        if column.null_count:
            return pc.if_else(pc.equal(column, 0), pa.scalar(None, type_), column)
        numbers = column.to_numpy()
        none = numbers == 0
        return pa.array(numbers, type_, mask=none) if none.any() else column

    def streams(self, values: Sequence[Number], instead: Callable[[], Iterable[Number]] | None = None) -> pa.Array:
        """Stream ids, from numbers or names such as "stream 7". 2^32 - 1 is an unsigned -1."""
        column = self._column(values, INT64, _stream, instead)
        if not column.null_count and not (column.to_numpy() == UNSIGNED_MINUS_ONE).any():
            return column
        return pc.if_else(pc.equal(column, UNSIGNED_MINUS_ONE), -1, column)

    def identities(self, values: Sequence[Number]) -> pa.Array:
        """Process or thread ids."""
        return self._column(values, INT64, self._identity)

    def _column(
        self,
        values: Sequence[Number],
        type_: pa.DataType,
        read: Callable[[Number], int | None],
        instead: Callable[[], Iterable[Number]] | None = None,
    ) -> pa.Array:
        try:
            column = pa.array(values, type_)
            if instead is None or not column.null_count:
                return column
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            if instead is None:
                return pa.array([self._fitting(value, type_, read) for value in values], type_)
        return self._column(patch_values(values, instead()), type_, read)

    def _fitting(self, value: Number, type_: pa.DataType, read: Callable[[Number], int | None]) -> int | None:
        if value is None or value == "":
            return None
        try:
            number = read(value)
            pa.scalar(number, type_)
        except (TypeError, ValueError, OverflowError, pa.ArrowInvalid):
            self.lost += 1
            self.first_lost = self.first_lost or str(value)[:200]
            return None
        return number

    def _identity(self, value: Number) -> int:
        try:
            return _whole(value)
        except ValueError:
            number = name_id(str(value))
            self.names[number] = str(value)
            return number


def name_id(name: str) -> int:
    """The number that stands for a process or thread that only has a name; no real id is below -2^31."""
    return -(1 << 32) - zlib.crc32(name.encode("utf-8", "replace"))


def _whole(value: Any) -> int:
    if isinstance(value, str) and "_" in value:  # Python alone spells numbers like that.
        raise ValueError(value)
    return int(value)


def _stream(value: Any) -> int:
    found = re.fullmatch(r"\s*(?:stream)?\s*#?(-?\d+)\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    return _whole(found[1] if found else value)


class Vocabulary:
    """The distinct names of a column so far. Each name is looked at once, whatever the number of events and chunks.

    `meanings` are further columns, each a function of the name; None becomes null.
    """

    LIMIT, LIMIT_BYTES = 1 << 16, 4 << 20
    """Names, and bytes of them, after which it begins anew, so that it stays small however many and long the names of a file are."""

    def __init__(self, column: str, **meanings: Callable[[str], str | None]) -> None:
        self._column, self._meanings = column, meanings
        self._begin()

    def _begin(self) -> None:
        self._names = _Texts()
        self._values = {column: _Texts() for column in self._meanings}
        # Per meaning the code of each name's value. The last place is that of a null name, whose code is -1.
        self._value_codes = {column: np.full(1, -1, np.int32) for column in self._meanings}

    def columns(self, names: Sequence[str | None]) -> dict[str, pa.DictionaryArray]:
        """The column and those of its meanings for these names, dictionary-encoded."""
        if len(self._names.texts) > self.LIMIT or self._names.texts.nbytes > self.LIMIT_BYTES:
            self._begin()
        codes, new = self._names.take(names)
        if new:
            self._learn(new)
        return {
            self._column: encode_names(codes, self._names.texts),
            **{
                column: encode_names(self._value_codes[column][codes], self._values[column].texts)
                for column in self._meanings
            },
        }

    def _learn(self, new: list[str]) -> None:
        for column, meaning in self._meanings.items():
            known = self._value_codes[column]
            values, _ = self._values[column].take([*map(meaning, new)])
            self._value_codes[column] = np.concatenate((known[:-1], values, known[-1:]))


class _Texts:
    """Distinct texts in the order in which they come, also as Arrow's `texts`."""

    def __init__(self) -> None:
        self._codes = Codes()
        self.texts = pa.array([], pa.string())

    def take(self, names: Sequence[str | None]) -> tuple[Numbers, list[str]]:
        """The number of each text, and those that are new."""
        codes = self._codes.of(names)
        if new := self._codes.names(len(self.texts)):
            self.texts = pa.concat_arrays([self.texts, pa.array(new, pa.string())])
        return codes, new


class Codes(dict[str | None, int]):
    """Numbers names in the order in which they come; None is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, name: str | None) -> int:
        code = self[name] = len(self) - 1
        return code

    def of(self, names: Sequence[str | None]) -> Numbers:
        return np.fromiter(map(self.__getitem__, names), np.int32, len(names))

    def names(self, first: int = 0) -> list[str]:
        """The names from the number `first` on."""
        return [name for name in islice(self, first + 1, None) if name is not None]


def encode_names(codes: Numbers, texts: pa.Array) -> pa.DictionaryArray:
    """A dictionary column; negative codes are null."""
    nulls = codes < 0
    if nulls.any():
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=nulls), texts)
    # Without another look at each code.
    return pa.DictionaryArray.from_buffers(NAME, len(codes), [None, pa.py_buffer(codes)], texts, null_count=0)


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """A dictionary column of one text."""
    return encode_names(np.zeros(rows, np.int32), pa.array([text]))


def texts(values: Iterable[str | None]) -> pa.DictionaryArray:
    """Texts, dictionary-encoded."""
    return pa.array(list(values), pa.string()).dictionary_encode()


def raw_texts(values: Sequence[msgspec.Raw]) -> pa.Array:
    """JSON kept as the text it was; absent values become null."""
    length = np.fromiter(map(len, values), np.int32, len(values))
    joined = b"".join(values)
    try:
        if not joined.isascii():
            joined.decode()
    except UnicodeDecodeError:
        return pa.array([bytes(v).decode("utf-8", "replace") or None for v in values], pa.string())
    ends = np.concatenate((np.zeros(1, np.int32), np.cumsum(length, dtype=np.int32)))
    present = np.packbits(length > 0, bitorder="little")
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(joined), pa.py_buffer(present))


_WITH_ARGUMENTS = re.compile(r"conv|attention|attn")
_MOST_ARGUMENTS = 4_096


def with_arguments(name: str) -> str | None:
    """A text for the names of operators of which `operator_arguments` gives the values."""
    return "values" if _WITH_ARGUMENTS.search(name) else None


def operator_arguments(told: pa.BooleanArray, args: Sequence[Args]) -> pa.DictionaryArray:
    """Of convolutions and attention (`told`) the values of inputs that are no tensors, as recorded; of kernels that TorchInductor made
    with `kernel_flop` and `kernel_num_gb` these. Null for others, and for what is not as long as such lists are."""
    # Few have any.
    found: dict[int, str] = {}
    for numbers in ([a.kernel_flop for a in args], [a.kernel_num_gb for a in args]):
        if numbers.count(None) < len(numbers):
            found |= {row: _from_compiler(args[row]) for row, number in enumerate(numbers) if number is not None}
    for row in np.flatnonzero(told).tolist():
        concrete = args[row].concrete_inputs
        if 0 < len(concrete) <= _MOST_ARGUMENTS:
            found[row] = bytes(concrete).decode("utf-8", "replace")
    codes, names, rows = np.full(len(args), -1, np.int32), Codes(), sorted(found)
    codes[rows] = names.of([found[row] for row in rows])
    return encode_names(codes, pa.array(names.names(), pa.string()))


def _from_compiler(a: Args) -> str:
    found = {"kernel_flop": a.kernel_flop, "kernel_num_gb": a.kernel_num_gb}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def group_ranks(args: Sequence[Args]) -> pa.Array:
    """The ranks of each collective's group as JSON. A list that was cut short is written out where the file tells how it goes on.

    A group without any rank is one whose ranks nobody recorded.
    """
    seen: dict[tuple[Any, ...], str | None] = {}
    found = []
    for a in args:
        key = (bytes(a.group_ranks), a.first_rank, a.rank_stride, a.group_size)
        if key not in seen:
            ranks = plain(a.group_ranks)
            text = ranks if ranks is None or isinstance(ranks, str) else json.dumps(ranks)
            seen[key] = _whole_group(text, *key[1:])
        found.append(seen[key])
    return pa.array(found, pa.string())


def _whole_group(text: str | None, first: Number, stride: Number, size: Number) -> str | None:
    if text and "..." not in text:
        return text if any(letter.isdigit() for letter in text) else None
    start, step, count = (_count(number) for number in (first, stride, size))
    if start is None or not step or not count or count > MOST_RANKS:
        return text or None
    return json.dumps([*range(start, start + step * count, step)])


def _count(value: Number) -> int | None:
    """A number that counts something; None for any other value."""
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 1 << 31 else None


def shares(percents: Sequence[Number]) -> pa.Array:
    """Percentages as shares from 0 to 1; what is no finite number becomes null."""
    try:
        numbers = pa.array(percents, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        numbers = pa.array([_number(v) for v in percents], pa.float64())
    found = numbers.to_numpy(zero_copy_only=False)  # NaN for null
    finite = np.isfinite(found)
    with np.errstate(all="ignore"):
        return pa.array((found / 100.0).astype(np.float32), mask=None if finite.all() else ~finite)


def _number(value: Number) -> float | None:
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return None


def triples(values: Sequence[list[int] | None]) -> pa.Array:
    """x, y, z sizes; anything but three numbers that an int32 holds becomes null."""
    whole = [v for v in values if v is not None and len(v) == 3]
    if len(whole) == len(values):
        try:
            sizes = np.fromiter(chain.from_iterable(whole), np.int32, 3 * len(whole))
            return pa.FixedSizeListArray.from_arrays(pa.array(sizes), 3)
        except OverflowError:
            pass
    kept = [v if v is not None and len(v) == 3 and max(map(abs, v)) < 1 << 31 else None for v in values]
    return pa.array(kept, pa.list_(INT32, 3))


def span(start: Times, duration: Times) -> dict[str, pa.Array]:
    """The time columns, both int64 ns."""
    return {"start_ns": pa.array(start), "end_ns": pa.array(start + duration)}
