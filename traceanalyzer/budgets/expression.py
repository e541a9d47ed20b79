"""One comparison of a budget: `step.p95 <= 1.1 * baseline` -> a figure, an operator and what it is held against.

The right side may hold numbers with units, other figures, `baseline` (the same figure there), `baseline.x`, + - * / and parentheses.
Units are checked before any trace is read.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection
from typing import Any

from traceanalyzer.engine.language.kinds import Kind, KindError, common, divide, multiply, number
from traceanalyzer.engine.language.syntax import ExpressionError, Source, parse
from traceanalyzer.errors import did_you_mean
from traceanalyzer.records import dataclass
from traceanalyzer.result.captures.metrics import figure, figure_names
from traceanalyzer.units import SHARE

BASELINE = "baseline"
EXAMPLE = '"idle_share <= 20%"'
Lookup = Callable[[str, bool], float]
"""The value of a figure by its name, of the capture (False) or of the baseline (True). Raises UnknownFigureError."""


class UnknownFigureError(Exception):
    """A figure that cannot be told of this capture or baseline, and why."""


@dataclass(frozen=True)
class Comparison:
    """`limit` is what the right side comes to. `own` are the figures of the capture in it, `baseline` whether it reads the baseline;
    `constant` is whether it is a single number as written."""

    name: str
    unit: str
    sign: str
    limit: Callable[[Lookup], float]
    own: tuple[str, ...]
    baseline: bool
    constant: bool


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.LtE: "<=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
}
Value = tuple[Kind, Callable[[Lookup], float]]


def compile_comparison(text: str, rules: Collection[str]) -> Comparison:
    """Compile and check; `rules` are the ids of all rules. Raises ExpressionError with the column of the first mistake."""
    source = parse(text)
    tree = source.tree
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in _SIGNS:
        raise ExpressionError(f"this must be one comparison, such as {EXAMPLE}")
    compiler = _Compiler(source, rules)
    name = _dotted(source, tree.left)
    if name is None or name.split(".")[0] == BASELINE:
        raise ExpressionError(f"a figure must stand on the left side, such as {EXAMPLE}", source.column(tree.left))
    kind, _ = compiler.figure(name, tree.left)
    compiler.same = name
    right = tree.comparators[0]
    limit_kind, limit = compiler.visit(right)
    compiler.common("compare", (tree.left, kind), (right, limit_kind), at=right)
    compiler.refuse_percent(kind, right)

    def finite(lookup: Lookup) -> float:
        try:
            value = limit(lookup)
        except ArithmeticError:
            value = math.nan
        if not math.isfinite(value):
            raise UnknownFigureError("the limit comes to no number, because it divides by zero or is too large")
        # Figures have six decimals; 10% + 10% is 20% and not a hair less.
        return round(value, 9)

    if not compiler.own and not compiler.baseline:
        try:
            finite(lambda *_: math.nan)
        except UnknownFigureError as error:
            raise ExpressionError(str(error), source.column(right)) from None
    assert kind.unit is not None
    sign = _SIGNS[type(tree.ops[0])]
    constant = isinstance(right, ast.Constant)
    return Comparison(name, kind.unit, sign, finite, tuple(dict.fromkeys(compiler.own)), compiler.baseline, constant)


class _Compiler:
    """Walks one right side. `same` is the figure that a plain `baseline` means."""

    def __init__(self, source: Source, rules: Collection[str]) -> None:
        self.source = source
        self.rules = rules
        self.same = ""
        self.own: list[str] = []
        self.baseline = False

    def visit(self, node: ast.expr) -> Value:
        if (name := _dotted(self.source, node)) is not None:
            return self._name(name, node)
        handlers: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Constant: self._literal,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
        }
        if handler := handlers.get(type(node)):
            return handler(node)
        raise self._error(f"{type(node).__name__} is not part of a budget", node)

    def figure(self, name: str, node: ast.expr) -> tuple[Kind, str]:
        """The kind and the name of a figure."""
        found = figure(name, self.rules)
        if found is None:
            hint = did_you_mean(name, figure_names(self.rules))
            raise self._error(f"there is no figure '{name}'{hint or '; docs/budgets.md lists them'}", node)
        return number(found.unit), name

    def common(self, verb: str, *operands: tuple[ast.expr, Kind], at: ast.expr) -> Kind:
        """The kind that all agree on; a bare zero is zero in every unit."""
        kinds = [kind for node, kind in operands if not _is_zero(node)]
        try:
            return common(kinds or [kind for _, kind in operands], "")
        except KindError:
            words = " and ".join(str(kind) for _, kind in operands)
            plain = any(kind.unit is None for _, kind in operands)
            hint = "; write the unit, as in 20us or 5%" if plain else ""
            raise self._error(f"cannot {verb} {words}{hint}", at) from None

    def refuse_percent(self, kind: Kind, node: ast.expr) -> None:
        """A share held against 5 is 500%, which nobody means and nothing breaks."""
        if kind.unit != SHARE or not isinstance(node, ast.Constant) or self.source.literal(node):
            return
        if isinstance(node.value, int | float) and node.value > 1:
            raise self._error(
                f"this is {node.value * 100:g}% of the time; write {node.value:g}% or {node.value / 100:g}", node
            )

    def _name(self, name: str, node: ast.expr) -> Value:
        first, _, rest = name.partition(".")
        if of_baseline := first == BASELINE:
            self.baseline = True
            name = rest or self.same
        kind, name = self.figure(name, node)
        if not of_baseline:
            self.own.append(name)
        return kind, lambda lookup: lookup(name, of_baseline)

    def _literal(self, node: ast.Constant) -> Value:
        literal = self.source.literal(node)
        value = literal.value if literal else node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e30:
            raise self._error("only numbers and figures are part of a budget", node)
        return number(literal.unit if literal else None), lambda _: value

    def _unary(self, node: ast.UnaryOp) -> Value:
        kind, value = self.visit(node.operand)
        if not isinstance(node.op, ast.USub):
            raise self._error(f"{type(node.op).__name__} is not part of a budget", node)
        return kind, lambda lookup: -value(lookup)

    def _binary(self, node: ast.BinOp) -> Value:
        if type(node.op) not in _ARITHMETIC:
            raise self._error(f"{type(node.op).__name__} is not part of a budget", node)
        verb, operation = _ARITHMETIC[type(node.op)]
        (a_kind, a), (b_kind, b) = self.visit(node.left), self.visit(node.right)
        if verb in ("multiply", "divide"):
            try:
                kind = (multiply if verb == "multiply" else divide)(a_kind, b_kind)
            except KindError as error:
                raise self._error(str(error), node) from None
        else:
            kind = self.common(verb, (node.left, a_kind), (node.right, b_kind), at=node)
        return kind, lambda lookup: operation(a(lookup), b(lookup))

    def _error(self, message: str, node: ast.expr) -> ExpressionError:
        return ExpressionError(message, self.source.column(node))


def _dotted(source: Source, node: ast.expr) -> str | None:
    """The name that a node is, with its dots."""
    if isinstance(node, ast.Attribute):
        before = _dotted(source, node.value)
        return None if before is None else f"{before}.{node.attr}"
    return source.name(node) if isinstance(node, ast.Name) else None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0
