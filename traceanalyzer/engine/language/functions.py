"""The functions of the expression grammar: what each takes, what it yields and how it is computed.

Row functions work anywhere. Aggregates turn the rows of a group into one value; each also takes `where=condition`, which leaves
only the rows where that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.compute import Value
from traceanalyzer.engine.language.gathered import Distinct, Numbers, ascends
from traceanalyzer.engine.language.kinds import BOOL, NULL, NUMBER, TEXT, Kind, KindError, common, number
from traceanalyzer.records import dataclass
from traceanalyzer.units import COUNT, SHARE, format_count, format_share


@dataclass(frozen=True)
class Function:
    """`usage` is shown to authors. `kind` maps argument kinds to the result's or raises KindError. `literal` is the position of an
    argument that must be a literal, because Arrow takes it as an option rather than a column.

    Of an aggregate, `part` is what a block of rows comes to, and `whole` what all blocks do; without them `run` gets all rows at once.
    """

    usage: str
    arity: tuple[int, int]
    kind: Callable[[list[Kind]], Kind]
    run: Callable[..., Value]
    literal: int | None = None
    fold: Fold | None = None

    def part(self, *values: Value) -> Any:
        return self.fold.part(*values) if self.fold else values

    def gather(self) -> Any:
        return self.fold.gather() if self.fold else []

    def whole(self, parts: Any) -> Value:
        if self.fold:
            return self.fold.whole(parts)
        return self.run(*(_end_to_end(values) for values in zip(*parts, strict=True)))


class Fold(NamedTuple):
    """An aggregate worked out block by block; `part` may give back what it was given, and `gather` makes what parts are appended to."""

    part: Callable[..., Any]
    whole: Callable[[Any], Value]
    gather: Callable[[], Any] = list[Any]


def _end_to_end(values: Sequence[Value]) -> Value:
    """An argument of all blocks; a literal is the same in each."""
    return values[0] if len(values) == 1 or isinstance(values[0], pa.Scalar) else pa.concat_arrays(values)


def _reduced(run: Callable[[pa.Array], pa.Scalar]) -> Fold:
    """What is reduced in blocks and then once more. Fractions are not: their sum depends on the order."""

    def part(values: pa.Array) -> Value:
        return values if pa.types.is_floating(values.type) else run(values)

    def whole(parts: list[Value]) -> Value:
        if isinstance(parts[0], pa.Array):
            return run(_end_to_end(parts))
        return parts[0] if len(parts) == 1 else run(pa.array([one.as_py() for one in parts], parts[0].type))

    return Fold(part, whole)


MANY = 16


def _fixed(result: Kind, *wanted: Kind) -> Callable[[list[Kind]], Kind]:
    def kind(given: list[Kind]) -> Kind:
        for one, want in zip(given, wanted, strict=False):
            if one.type != want.type:
                raise KindError(f"needs {want} but gets {one}")
        return result

    return kind


def _texts(given: list[Kind]) -> Kind:
    return _fixed(TEXT, *[TEXT] * len(given))(given)


def _number_like(given: list[Kind]) -> Kind:
    kind = common(given, "cannot mix")
    if kind.type != "number":
        raise KindError(f"needs numbers but gets {kind}")
    return kind


def _same(given: list[Kind]) -> Kind:
    return common(given, "cannot mix")


def _chosen(given: list[Kind]) -> Kind:
    if given[0].type != "bool":
        raise KindError(f"needs a condition first but gets {given[0]}")
    return common(given[1:], "cannot mix")


def _match(name: str) -> Callable[[Value, pa.Scalar], Value]:
    # Arrow matches with RE2, whose time is linear in the text whatever the pattern.
    def run(text: Value, pattern: pa.Scalar) -> Value:
        found = compute.by_name(lambda texts: getattr(pc, name)(texts, pattern.as_py()))
        return compute.truth(found(text))

    return run


def _shares(given: list[Kind]) -> Kind:
    if given[0].type not in ("number", "null") or given[0].unit not in (SHARE, None):
        raise KindError(f"needs a share but gets {given[0]}")
    return TEXT


def _percent(share: Value) -> Value:
    return _worded(share, format_share)


def _counted(count: Value, word: pa.Scalar) -> Value:
    one = word.as_py()
    return _worded(count, lambda number: f"{format_count(number)} {one}" + ("" if number == 1 else "s"))


def _worded(value: Value, words: Callable[[float], str]) -> Value:
    def text(one: float | None) -> str | None:
        return None if one is None else words(one)

    if isinstance(value, pa.Scalar):
        return pa.scalar(text(value.as_py()), pa.string())
    return pa.array([text(one) for one in value.to_pylist()], pa.string())


ROW_FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(number)", (1, 1), _number_like, pc.abs),
    "least": Function("least(a, b, ...)", (2, MANY), _number_like, compute.least),
    "greatest": Function("greatest(a, b, ...)", (2, MANY), _number_like, compute.greatest),
    "contains": Function('contains(text, "part")', (2, 2), _fixed(BOOL, TEXT, TEXT), _match("match_substring"), 1),
    "startswith": Function('startswith(text, "start")', (2, 2), _fixed(BOOL, TEXT, TEXT), _match("starts_with"), 1),
    "matches": Function('matches(text, "regex")', (2, 2), _fixed(BOOL, TEXT, TEXT), _match("match_substring_regex"), 1),
    "plural": Function('plural(count, "gap")', (2, 2), _fixed(TEXT, NUMBER, TEXT), compute.plural, 1),
    "counted": Function('counted(count, "gap")', (2, 2), _fixed(TEXT, NUMBER, TEXT), _counted, 1),
    "percent": Function("percent(share)", (1, 1), _shares, _percent),
    "concat": Function("concat(text, text, ...)", (2, MANY), _texts, compute.concat),
    "coalesce": Function("coalesce(a, b, ...)", (2, MANY), _same, compute.coalesce),
    "if_else": Function("if_else(condition, a, b)", (3, 3), _chosen, compute.choose),
}


def _heaviest(given: list[Kind]) -> Kind:
    if given[1].type not in ("number", "null"):
        raise KindError(f"needs a number second but gets {given[1]}")
    if given[0] not in (TEXT, NUMBER, NULL):
        raise KindError(f"needs a name or a plain number first but gets {given[0]}")
    return given[0]


def _weight_by_name(names: pa.Array, weights: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The distinct names that are not null, and the sum of each one's weights."""
    if names.null_count == len(names) and pa.types.is_integer(weights.type):
        return compute.plain(names[:0]), pa.array([], weights.type)  # no part of what should go
    codes = names.dictionary_encode()
    # numpy, because Arrow takes longer to plan a grouping than this takes for a thousand rows.
    code = _filled(codes.indices, len(codes.dictionary)).to_numpy()
    weight = _filled(weights, 0).to_numpy()
    total = np.zeros(len(codes.dictionary) + 1, weight.dtype)
    np.add.at(total, code, weight)
    found = np.bincount(code, minlength=len(total))
    known = found > 0
    if weights.null_count:
        known = np.bincount(code, weights.is_valid().to_numpy(zero_copy_only=False), len(total)) > 0
    seen = np.flatnonzero(found[:-1])
    return codes.dictionary.take(pa.array(seen)), pa.array(total[seen], mask=~known[seen])


def _filled(values: pa.Array, by: int) -> pa.Array:
    # Without nulls that would be a copy.
    return values.fill_null(by) if values.null_count else values


Weights = tuple[pa.Array, pa.Array, pa.Scalar]
"""Distinct names, the sum of each one's weights, and that of all weights, nameless rows included."""


def _weights(names: pa.Array, weights: pa.Array) -> Weights:
    return (*_weight_by_name(names, weights), pc.sum(weights, min_count=0))


def _weigh_block(names: pa.Array, weights: pa.Array) -> tuple[Any, ...]:
    return (names, weights) if pa.types.is_floating(weights.type) else _weights(names, weights)


def _all_weights(parts: list[Any]) -> Weights:
    """Of what blocks came to; fractions are added up row by row, see `_reduced`."""
    columns = [_end_to_end(values) for values in list(zip(*parts, strict=True))[:2]]
    if len(parts[0]) == 2:
        return _weights(*columns)
    every = [one for *_, one in parts]
    if len(every) == 1:
        return (*columns, every[0])
    # A name has a weight where it has one in any block.
    return (*_weight_by_name(*columns), pc.sum(pa.array([one.as_py() for one in every], every[0].type)))


def _top(parts: list[Any]) -> pa.Scalar:
    """The heaviest name, of equals the first in their order."""
    distinct, totals, _ = _all_weights(parts)
    heaviest = pc.max(totals)
    return pc.min(distinct.filter(pc.equal(totals, heaviest)) if heaviest.is_valid else distinct)


def _top_share(parts: list[Any]) -> pa.Scalar:
    """What the heaviest name holds of all weight, nameless rows included."""
    _, totals, every = _all_weights(parts)
    return compute.divide(pc.max(totals), every)


def _numbers(values: pa.Array, level: pa.Scalar | None = None) -> tuple[pa.Array, float]:
    """Numbers of which a quantile is wanted, and which."""
    return values, 0.5 if level is None else float(level.as_py())


_QUANTILE = Fold(_numbers, Numbers.quantile, Numbers)


def _first(given: list[Kind]) -> Kind:
    return _number_like(given[:1])


def _countable(given: list[Kind]) -> Kind:
    if NULL in given:
        raise KindError("needs a column")
    return number(COUNT)


def _count(parts: list[int]) -> pa.Scalar:
    return pa.scalar(sum(parts), pa.int64())


def _distinct(values: pa.Array) -> pa.Array:
    """Each value once, but null; of names their codes, which are the same in all blocks."""
    codes = (values.indices if isinstance(values, pa.DictionaryArray) else values).drop_null()
    if not pa.types.is_integer(codes.type):
        return codes.unique()
    # Most are in order, and then equal ones stand together: Arrow's unique takes ten times as long.
    plain = codes.to_numpy()
    new = np.append(True, plain[1:] != plain[:-1])[: len(plain)]
    kept = pa.array(plain[new]) if len(plain) else codes
    return kept if ascends(kept) else kept.unique()


def _distinct_count(found: Distinct) -> pa.Scalar:
    return pa.scalar(found.count(), pa.int64())


def _aggregate(
    usage: str, arity: int, kind: Callable[[list[Kind]], Kind], fold: Fold, literal: int | None = None
) -> Function:
    def run(*values: Value) -> Value:
        parts = fold.gather()
        parts.append(fold.part(*values))
        return fold.whole(parts)

    return Function(usage, (arity, arity), kind, run, literal, fold)


AGGREGATES: dict[str, Function] = {
    # count takes no argument: it is given one placeholder a row, so that `where=` works on it as on the others.
    "count": _aggregate("count()", 0, _countable, Fold(len, _count)),
    "sum": _aggregate("sum(number)", 1, _number_like, _reduced(lambda values: pc.sum(values, min_count=0))),
    "min": _aggregate("min(number)", 1, _number_like, _reduced(pc.min)),
    "max": _aggregate("max(number)", 1, _number_like, _reduced(pc.max)),
    "mean": Function("mean(number)", (1, 1), _number_like, pc.mean),
    "median": _aggregate("median(number)", 1, _number_like, _QUANTILE),
    "quantile": _aggregate("quantile(number, 0.95)", 2, _first, _QUANTILE, 1),
    "count_distinct": _aggregate("count_distinct(column)", 1, _countable, Fold(_distinct, _distinct_count, Distinct)),
    "any": _aggregate("any(condition)", 1, _fixed(BOOL, BOOL), _reduced(lambda values: pc.any(values, min_count=0))),
    "all": _aggregate("all(condition)", 1, _fixed(BOOL, BOOL), _reduced(lambda values: pc.all(values, min_count=0))),
    "top": _aggregate("top(name, weight)", 2, _heaviest, Fold(_weigh_block, _top)),
    "top_share": _aggregate(
        "top_share(name, weight)", 2, _fixed(number(SHARE), TEXT, NUMBER), Fold(_weigh_block, _top_share)
    ),
}
