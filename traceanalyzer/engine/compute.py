"""The operations behind the expression grammar, on Arrow arrays and scalars, with the grammar's own rules about nulls.

A test on a null is false, and so is a null truth value; arithmetic with a null is null; dividing by zero gives null. Integers stay
exact until a fraction meets them: then both sides are float64, without Arrow's refusal to convert large nanosecond values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Value = Any  # a pa.Array (one value a row) or a pa.Scalar (the same for all)


def arithmetic(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """`operation` on numbers, both sides float64 as soon as one of them is."""

    def run(a: Value, b: Value) -> Value:
        return operation(*same_number(a, b))

    return run


def same_number(*values: Value) -> list[Value]:
    """The numbers, all of one Arrow type: int64 where all are integers, else float64."""
    if all(pa.types.is_integer(value.type) for value in values):
        return [pc.cast(value, pa.int64()) for value in values]
    return [to_float(value) for value in values]


def to_float(value: Value) -> Value:
    """As float64; integers beyond 2^53 lose their last digits, which only matters in fractions."""
    return pc.cast(value, pa.float64(), safe=False)


add = arithmetic(pc.add_checked)
subtract = arithmetic(pc.subtract_checked)
multiply = arithmetic(pc.multiply_checked)


def divide(a: Value, b: Value) -> Value:
    """a / b as float64, null where b is zero."""
    divisor = to_float(b)
    return pc.divide(to_float(a), pc.if_else(truth(pc.equal(divisor, 0.0)), pa.scalar(None, pa.float64()), divisor))


def truth(condition: Value) -> Value:
    """The condition with its nulls counted as false."""
    return pc.fill_null(condition, False)


def compare(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """A comparison that is false where either side is null."""

    def run(a: Value, b: Value) -> Value:
        if pa.types.is_floating(a.type) or pa.types.is_floating(b.type):
            a, b = same_number(a, b)
        return truth(operation(a, b))

    return run


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
    return pc.coalesce(*_alike(*values))


def least(*values: Value) -> Value:
    return pc.min_element_wise(*same_number(*values), skip_nulls=False)


def greatest(*values: Value) -> Value:
    return pc.max_element_wise(*same_number(*values), skip_nulls=False)


def concat(*values: Value) -> Value:
    """The texts one after another; null where one is null."""
    return pc.binary_join_element_wise(*values, "")


def plural(count: Value, word: pa.Scalar) -> Value:
    """The word, with an s unless there is exactly one."""
    return pc.if_else(truth(pc.equal(count, 1)), word, pa.scalar(word.as_py() + "s"))


def as_array(value: Value, rows: int) -> pa.Array:
    """One value a row."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def decoded(column: pa.ChunkedArray) -> pa.Array:
    """A table column as one array of int64, float64, string or bool."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif pa.types.is_signed_integer(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    # combine_chunks is a copy only where there is more than one chunk; it gives a chunked array for none.
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _alike(*values: Value) -> list[Value]:
    if any(pa.types.is_floating(value.type) for value in values):
        return [to_float(value) for value in values]
    return list(values)
