"""The operations behind the expression grammar, on Arrow arrays and scalars, with the grammar's own rules about nulls.

A test on a null is false, and so is a null truth value; arithmetic with a null is null; dividing by zero gives null. Integers stay
exact until a fraction meets them: then both sides are float64, without Arrow's refusal to convert large nanosecond values.

Names stay what they are in the tables, codes of a dictionary: a test on a million names is a test on the few that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Bytes of a text, and of the texts of all rows, that `concat` makes.
MOST_IN_ONE, MOST_JOINED = 1 << 20, 1 << 28
Value = Any  # a pa.Array (one value a row; names as a pa.DictionaryArray) or a pa.Scalar (the same for all)


def by_name(operation: Callable[..., Value]) -> Callable[..., Value]:
    """`operation`, which looks at each row alone, worked out once a distinct name where names are all it is given."""

    def run(*values: Value) -> Value:
        columns = [at for at, value in enumerate(values) if isinstance(value, pa.Array)]
        if len(columns) != 1 or not isinstance(names := values[columns[0]], pa.DictionaryArray):
            return operation(*(plain(value) for value in values))
        if len(names.dictionary) > len(names):
            return operation(*(plain(value) for value in values))
        distinct = [names.dictionary if value is names else value for value in values]
        found = operation(*distinct)
        if pa.types.is_boolean(found.type) and not found.null_count and found.true_count <= 1:
            # No name or just one, as most tests have it: to compare codes is quicker than to look each up.
            return pc.equal(names.indices, pc.index(found, True))
        return found.take(names.indices)

    return run


def plain(value: Value) -> Value:
    """Names as texts; all else as it is."""
    return value.cast(value.type.value_type) if isinstance(value, pa.DictionaryArray) else value


def arithmetic(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """`operation` on numbers, both sides float64 as soon as one of them is."""

    def run(a: Value, b: Value) -> Value:
        return operation(*same_number(a, b))

    return run


def same_number(*values: Value) -> list[Value]:
    """The numbers, all of one Arrow type: int64 where all are integers, else float64."""
    if all(pa.types.is_integer(value.type) for value in values):
        return [value if value.type == pa.int64() else pc.cast(value, pa.int64()) for value in values]
    return [to_float(value) for value in values]


def to_float(value: Value) -> Value:
    """As float64; integers beyond 2^53 lose their last digits, which only matters in fractions."""
    return value if value.type == pa.float64() else pc.cast(value, pa.float64(), safe=False)


add = arithmetic(pc.add_checked)
subtract = arithmetic(pc.subtract_checked)
multiply = arithmetic(pc.multiply_checked)


def divide(a: Value, b: Value) -> Value:
    """a / b as float64, null where b is zero."""
    divisor = to_float(b)
    return pc.divide(to_float(a), pc.if_else(truth(pc.equal(divisor, 0.0)), pa.scalar(None, pa.float64()), divisor))


def truth(condition: Value) -> Value:
    """The condition with its nulls counted as false."""
    # Without nulls there is nothing to fill, and no copy to make.
    full = condition.is_valid if isinstance(condition, pa.Scalar) else not condition.null_count
    return condition if full else pc.fill_null(condition, False)


def compare(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """A comparison that is false where either side is null."""
    named = by_name(operation)

    def run(a: Value, b: Value) -> Value:
        if pa.types.is_floating(a.type) or pa.types.is_floating(b.type):
            a, b = same_number(a, b)
        return truth(named(a, b))

    return run


def member(value: Value, allowed: list[Any]) -> Value:
    """Whether the value is one of those allowed; false where it is null."""
    found = by_name(lambda values: pc.is_in(values, value_set=pa.array(allowed, values.type), skip_nulls=True))
    return truth(found(value))


def both(a: Value, b: Value) -> Value:
    return pc.and_(truth(a), truth(b))


def either(a: Value, b: Value) -> Value:
    return pc.or_(truth(a), truth(b))


def negate(a: Value) -> Value:
    return pc.invert(truth(a))


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """`yes` where the condition holds, else `no`."""
    return pc.if_else(truth(condition), *_alike(yes, no))


def coalesce(*values: Value) -> Value:
    """The first of the values that is not null."""
    if len(values) == 2 and isinstance(values[0], pa.DictionaryArray) and isinstance(values[1], pa.StringScalar):
        return _filled(*values)
    return pc.coalesce(*_alike(*values))


def _filled(names: pa.DictionaryArray, text: pa.StringScalar) -> pa.DictionaryArray:
    """The names with a text in place of null."""
    if not names.null_count or not text.is_valid:
        return names
    place, texts = pc.index(names.dictionary, text).as_py(), names.dictionary
    if place < 0:
        place, texts = len(texts), pa.concat_arrays([texts, pa.array([text.as_py()])])
    return pa.DictionaryArray.from_arrays(names.indices.fill_null(place), texts)


def least(*values: Value) -> Value:
    return pc.min_element_wise(*same_number(*values), skip_nulls=False)


def greatest(*values: Value) -> Value:
    return pc.max_element_wise(*same_number(*values), skip_nulls=False)


def concat(*values: Value) -> Value:
    """The texts one after another; null where one is null. Raises ValueError where that takes more memory than a text is worth."""
    return by_name(_joined)(*values)


def _joined(*texts: Value) -> Value:
    rows = max((len(text) for text in texts if isinstance(text, pa.Array)), default=1)
    size = sum(pc.sum(pc.binary_length(text)).as_py() or 0 for text in texts if isinstance(text, pa.Array))
    size += rows * sum(len(text.as_buffer()) for text in texts if isinstance(text, pa.Scalar) and text.is_valid)
    if size > (MOST_JOINED if rows > 1 else MOST_IN_ONE):
        raise ValueError(f"concat makes texts of {size:,} bytes, which is more than a rule may")
    return pc.binary_join_element_wise(*texts, "")


def plural(count: Value, word: pa.Scalar) -> Value:
    """The word, with an s unless there is exactly one."""
    return pc.if_else(truth(pc.equal(count, 1)), word, pa.scalar(word.as_py() + "s"))


def as_array(value: Value, rows: int) -> pa.Array:
    """One value a row."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def decode_column(column: pa.ChunkedArray) -> pa.Array:
    """A table column as one array of int64, float64, string or bool, or of names in a dictionary that holds each once and no null."""
    return decoded(distinct_names(column))


def distinct_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Names in one dictionary that holds each once and no null; all else as it is."""
    if not pa.types.is_dictionary(column.type):
        return column
    column = column.unify_dictionaries()
    if any(_loose(chunk.dictionary) for chunk in column.chunks[:1]):
        return column.cast(column.type.value_type).dictionary_encode()
    return column


def decoded(column: pa.ChunkedArray) -> pa.Array:
    """Numbers as int64 or float64, in one array."""
    if pa.types.is_signed_integer(column.type):
        column = column if column.type == pa.int64() else column.cast(pa.int64())
    elif pa.types.is_floating(column.type):
        column = column if column.type == pa.float64() else column.cast(pa.float64())
    if column.num_chunks == 1:
        return column.chunk(0)
    # combine_chunks gives a chunked array for none.
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _loose(dictionary: pa.Array) -> bool:
    """Whether a value is in there twice, or none at all: then two codes may mean the same."""
    return dictionary.null_count > 0 or len(dictionary.unique()) < len(dictionary)


def _alike(*values: Value) -> list[Value]:
    if any(pa.types.is_floating(value.type) for value in values):
        return [to_float(value) for value in values]
    return [plain(value) for value in values]
