"""The expression grammar: compiles one expression, checked against the names it may use, to `pyarrow.compute`.

Names are columns, `params.x`, `window.x` (the ledger of the row's or group's GPU), `program.x` (whether the recorded program is of this
kind) and, at group level, metrics and group keys.
Operators are + - * /, comparisons (chained too), and, or, not, in and not in with a list of literals, and `is None`. The functions
are listed in `functions`. Nothing else exists: no attribute, index, call of a value, comprehension or lambda.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.engine.language import compute
from traceanalyzer.engine.language.aggregate import CompiledAggregate
from traceanalyzer.engine.language.compute import Value
from traceanalyzer.engine.language.functions import AGGREGATES, ROW_FUNCTIONS, Function
from traceanalyzer.engine.language.kinds import BOOL, NULL, TEXT, Kind, KindError, common, divide, multiply, number
from traceanalyzer.engine.language.lengths import LONGEST_TEXT, longest_text
from traceanalyzer.engine.language.names import PROGRAM_KINDS, Aggregate, Expression, Names, NoRows, Rows, Run
from traceanalyzer.engine.language.syntax import ExpressionError, Source, parse
from traceanalyzer.errors import did_you_mean


def compile_expression(text: str, names: Names) -> Expression:
    """Compile and check. Raises ExpressionError with the column of the first mistake."""
    compiler = _Compiler(parse(text), names)
    tree = compiler.source.tree
    kind, run = compiler.visit(tree)
    longest = longest_text(tree, names.longest) if kind == TEXT else 0
    safe = not compiler.fallible
    return Expression(text, kind, run, longest, tuple(compiler.aggregates), frozenset(compiler.uses), safe)


def compile_condition(text: str, names: Names) -> Expression:
    """As `compile_expression`, for what must be true or false; its nulls count as false."""
    expression = compile_expression(text, names)
    if expression.kind != BOOL:
        raise ExpressionError(f"a condition is needed here, but this is {expression.kind}")
    return replace(expression, run=lambda rows: compute.truth(expression(rows)))


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Value, Value], Value]]] = {
    ast.Add: ("add", compute.add),
    ast.Sub: ("subtract", compute.subtract),
    ast.Mult: ("multiply", compute.multiply),
    ast.Div: ("divide", compute.divide),
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: compute.compare(pc.equal),
    ast.NotEq: compute.compare(pc.not_equal),
    ast.Lt: compute.compare(pc.less),
    ast.LtE: compute.compare(pc.less_equal),
    ast.Gt: compute.compare(pc.greater),
    ast.GtE: compute.compare(pc.greater_equal),
}
_CONSTANTS = {"true": True, "false": False, "null": None}


_Operand = tuple[ast.expr, Kind, Run | None]


class _Compiler:
    """Walks one checked tree. `row_level` says whether a name means one value a row (also inside an aggregate); `fallible` counts what
    was met that fails on some values."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source = source
        self.names = names
        self.row_level = names.values is None
        self.in_aggregate = False
        self.aggregates: list[Aggregate] = []
        self.uses: set[str] = set()
        self.fallible = 0

    def visit(self, node: ast.expr) -> tuple[Kind, Run]:
        self.fallible += _fallible(node)
        try:
            if handler := _HANDLERS.get(type(node)):
                return handler(self, node)
            raise KindError(f"{type(node).__name__} is not part of the rule language")
        except KindError as error:
            raise ExpressionError(str(error), self.source.column(node)) from None

    def _literal(self, node: ast.Constant) -> tuple[Kind, Run]:
        kind, value = self._constant(node)
        return kind, lambda rows: value

    def _constant(self, node: ast.Constant) -> tuple[Kind, pa.Scalar]:
        literal = self.source.literal(node)
        value = literal.value if literal else node.value
        if value is None:
            return NULL, pa.scalar(None)
        if isinstance(value, bool):
            return BOOL, pa.scalar(value)
        if isinstance(value, str):
            return TEXT, pa.scalar(value)
        if isinstance(value, int) and abs(value) < 1 << 63:
            return number(literal.unit if literal else None), pa.scalar(value, pa.int64())
        if isinstance(value, float) and math.isfinite(value):
            return number(literal.unit if literal else None), pa.scalar(value, pa.float64())
        raise ExpressionError("this literal is not part of the rule language", self.source.column(node))

    def _name(self, node: ast.Name) -> tuple[Kind, Run]:
        name = self.source.name(node)
        if name in _CONSTANTS:
            return self.visit(ast.copy_location(ast.Constant(_CONSTANTS[name]), node))
        if not self.row_level:
            values = self.names.values or {}
            if name in values:
                self.uses.add(name)
                return values[name], lambda rows: rows.values[name]
            if name in self.names.columns:
                raise KindError(f"'{name}' has one value a row here; it needs an aggregate, such as sum({name})")
            raise KindError(f"unknown name '{name}'{did_you_mean(name, [*values, *self.names.columns])}")
        if name in self.names.columns:
            return self.names.columns[name], lambda rows: rows.column(name)
        if self.names.values and name in self.names.values:
            raise KindError(f"'{name}' has one value a group; an aggregate works on columns of the rows")
        raise KindError(f"unknown column '{name}'{did_you_mean(name, self.names.columns)}")

    def _dotted(self, node: ast.Attribute) -> tuple[Kind, Run]:
        spaces = {"params": self.names.params, "window": self.names.window, "program": PROGRAM_KINDS}
        if not isinstance(node.value, ast.Name) or node.value.id not in spaces:
            raise KindError("only params.x, window.x and program.x have a dot in the rule language")
        space, name = node.value.id, node.attr
        known = spaces[space]
        key = f"{space}.{name}"
        if known is None:
            raise KindError(f"'{key}' has no meaning here: rows or groups without rank and device have no window")
        if name not in known:
            raise KindError(f"unknown name '{key}'{did_you_mean(name, known)}")
        if space == "window" and self.row_level:
            return known[name], lambda rows: rows.window(name)
        return known[name], lambda rows: rows.values[key]

    def _unary(self, node: ast.UnaryOp) -> tuple[Kind, Run]:
        kind, run = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and kind == BOOL:
            return BOOL, lambda rows: compute.negate(run(rows))
        if isinstance(node.op, ast.USub) and kind.type == "number":
            return kind, lambda rows: pc.negate_checked(run(rows))
        raise KindError(f"{type(node.op).__name__} cannot be applied to {kind}")

    def _binary(self, node: ast.BinOp) -> tuple[Kind, Run]:
        if type(node.op) not in _ARITHMETIC:
            raise KindError(f"{type(node.op).__name__} is not part of the rule language")
        verb, operation = _ARITHMETIC[type(node.op)]
        (a_kind, a), (b_kind, b) = self.visit(node.left), self.visit(node.right)
        if verb == "multiply":
            kind = multiply(a_kind, b_kind)
        elif verb == "divide":
            kind = divide(a_kind, b_kind)
        else:
            kind = self._common([(node.left, a_kind), (node.right, b_kind)], f"cannot {verb}")
            if kind.type != "number":
                raise KindError(f"cannot {verb} {kind}; texts are joined with concat(a, b)")
        return kind, lambda rows: operation(a(rows), b(rows))

    def _logic(self, node: ast.BoolOp) -> tuple[Kind, Run]:
        operation = compute.both if isinstance(node.op, ast.And) else compute.either
        parts: list[tuple[Kind, Run, bool]] = []
        for value in node.values:
            before = self.fallible
            parts.append((*self.visit(value), self.fallible == before))
        for kind, *_ in parts:
            if kind != BOOL:
                raise KindError(f"'and' and 'or' join conditions, not {kind}")
        (_, result, _), *others = parts
        for _, run, safe in others:
            result = _joined(operation, result, run, isinstance(node.op, ast.And) and safe)
        return BOOL, result

    def _compare(self, node: ast.Compare) -> tuple[Kind, Run]:
        # Each operand is visited once, also the middle one of a chain: else nested chains take time without end.
        operands = [(one, *self._operand(one)) for one in (node.left, *node.comparators)]
        tests = [self._comparison(*pair) for pair in zip(operands, node.ops, operands[1:], strict=False)]
        runs = [run for _, _, run in operands]

        def compared(rows: Rows) -> Value:
            values = [run(rows) if run else None for run in runs]
            result = tests[0](values[0], values[1])
            for at, test in enumerate(tests[1:], 1):
                result = compute.both(result, test(values[at], values[at + 1]))
            return result

        return BOOL, compared

    def _operand(self, node: ast.expr) -> tuple[Kind, Run | None]:
        """What a comparison is made of; a list of literals is no value and has no run."""
        return (NULL, None) if isinstance(node, ast.List | ast.Tuple) else self.visit(node)

    def _comparison(self, left: _Operand, operator: ast.cmpop, right: _Operand) -> Callable[[Value, Value], Value]:
        (left_node, kind, _), (right_node, other, _) = left, right
        if isinstance(left_node, ast.List | ast.Tuple):
            self.visit(left_node)
        if isinstance(operator, ast.In | ast.NotIn):
            return self._membership(left_node, kind, right_node, isinstance(operator, ast.NotIn))
        if isinstance(right_node, ast.List | ast.Tuple):
            self.visit(right_node)
        if isinstance(operator, ast.Is | ast.IsNot) and other != NULL:
            raise KindError("'is' only works with None; compare with ==")
        if other == NULL:
            if isinstance(operator, ast.Is | ast.Eq):
                return lambda value, _: pc.is_null(value)
            if isinstance(operator, ast.IsNot | ast.NotEq):
                return lambda value, _: pc.is_valid(value)
            raise KindError("None has no order; use 'is None' or 'is not None'")
        both = self._common([(left_node, kind), (right_node, other)], "cannot compare")
        if both.type != "number" and not isinstance(operator, ast.Eq | ast.NotEq):
            raise KindError(f"{both} has no order; use == or !=")
        return _COMPARISONS[type(operator)]

    def _membership(
        self, left: ast.expr, kind: Kind, right: ast.expr, negated: bool
    ) -> Callable[[Value, Value], Value]:
        if not isinstance(right, ast.List | ast.Tuple) or not all(isinstance(e, ast.Constant) for e in right.elts):
            raise KindError('\'in\' needs a list of literals, such as ["htod", "dtoh"]')
        members = [self._constant(element) for element in right.elts if isinstance(element, ast.Constant)]
        self._common([(left, kind), *((right, member) for member, _ in members)], "cannot compare")
        allowed = [member.as_py() for _, member in members]
        wanted = pa.float64() if any(isinstance(one, float) for one in allowed) else None

        def contained(values: Value, _: Value) -> Value:
            values = compute.to_float(values) if wanted else values
            found = compute.member(values, allowed)
            # A test on a null is false, negated or not.
            return pc.and_(pc.is_valid(values), pc.invert(found)) if negated else found

        return contained

    def _call(self, node: ast.Call) -> tuple[Kind, Run]:
        if not isinstance(node.func, ast.Name):
            raise KindError("only the functions of the rule language can be called")
        name = node.func.id
        function = ROW_FUNCTIONS.get(name) or AGGREGATES.get(name)
        if function is None:
            raise KindError(f"unknown function '{name}'{did_you_mean(name, [*ROW_FUNCTIONS, *AGGREGATES])}")
        low, high = function.arity
        if not low <= len(node.args) <= high:
            raise KindError(f"{name} is used as {function.usage}")
        if function.literal is not None and not isinstance(node.args[function.literal], ast.Constant):
            raise KindError(f"argument {function.literal + 1} of {function.usage} must be a literal")
        if name in AGGREGATES:
            return self._aggregate(name, function, node)
        if node.keywords:
            raise KindError(f"{name} is used as {function.usage}")
        arguments = [self.visit(argument) for argument in node.args]
        kind = self._result(name, function, arguments)
        if name == "concat" and (longest := longest_text(node, self.names.longest)) > LONGEST_TEXT:
            raise KindError(
                f"this text may be {longest:,} characters long, and no more than {LONGEST_TEXT:,} are allowed"
            )
        runs = [run for _, run in arguments]
        return kind, lambda rows: function.run(*(run(rows) for run in runs))

    def _aggregate(self, name: str, function: Function, node: ast.Call) -> tuple[Kind, Run]:
        if self.in_aggregate:
            raise KindError("an aggregate cannot stand inside another")
        if self.row_level:
            raise KindError(
                f"{name}() sums up a group; it cannot stand in a test of one row, only in metrics or having"
            )
        self.row_level = self.in_aggregate = True
        arguments = [self.visit(argument) for argument in node.args]
        condition: Run | None = None
        for keyword in node.keywords:
            filter_kind, condition = self.visit(keyword.value)
            if keyword.arg != "where" or len(node.keywords) > 1 or filter_kind != BOOL:
                raise KindError(f"{name} takes one keyword at most: where=condition")
        self.row_level = self.in_aggregate = False
        kind = self._result(name, function, arguments)
        # count() is given one placeholder a row.
        runs = [run for _, run in arguments] or [lambda rows: pa.scalar(True)]

        texts = [self.source.written(child) for child in (*node.args, *(keyword.value for keyword in node.keywords))]
        one = CompiledAggregate(
            function,
            tuple(zip([*texts[: len(node.args)], ""], runs, strict=False)),
            (texts[-1], condition) if condition else None,
            (function.fold.part if function.fold else name, len(node.args), *texts),
        )
        self.aggregates.append(one)
        return kind, lambda rows: rows.summed(one)

    def _result(self, name: str, function: Function, arguments: list[tuple[Kind, Run]]) -> Kind:
        try:
            kind = function.kind([kind for kind, _ in arguments])
            if name == "matches":
                # A pattern that RE2 refuses is found now rather than in somebody's trace.
                function.run(pa.array([""]), arguments[1][1](_NO_ROWS))
        except (KindError, pa.ArrowInvalid) as error:
            raise KindError(f"{name}: {error}") from None
        return kind

    def _common(self, operands: list[tuple[ast.expr, Kind]], what: str) -> Kind:
        # A bare zero is zero in every unit.
        kinds = [kind for node, kind in operands if not _is_zero(node)]
        return common(kinds or [kind for _, kind in operands], what)


_HANDLERS: dict[type[ast.expr], Callable[[_Compiler, Any], tuple[Kind, Run]]] = {
    ast.Constant: _Compiler._literal,
    ast.Name: _Compiler._name,
    ast.Attribute: _Compiler._dotted,
    ast.UnaryOp: _Compiler._unary,
    ast.BinOp: _Compiler._binary,
    ast.BoolOp: _Compiler._logic,
    ast.Compare: _Compiler._compare,
    ast.Call: _Compiler._call,
}
_NO_ROWS = NoRows()
_FALLIBLE = {"concat", "percent", "counted", "plural", "abs"}
"""Functions that fail on some values; so do sums, differences and products of whole numbers, which may be too large."""
_FRACTIONS = {"top_share", "mean", "median", "quantile"}


def _fallible(node: ast.expr) -> bool:
    """Whether it fails on some values, whatever it is made of; an expression without such a part is safe."""
    if isinstance(node, ast.BinOp):
        return not (
            isinstance(node.op, ast.Div)
            or (isinstance(node.op, ast.Mult) and (_fraction(node.left) or _fraction(node.right)))
        )
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FALLIBLE
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _fraction(node: ast.expr) -> bool:
    """Whether the number is no whole one: products with it are not checked."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FRACTIONS
    return isinstance(node, ast.BinOp) and (
        isinstance(node.op, ast.Div)
        or (isinstance(node.op, ast.Mult) and (_fraction(node.left) or _fraction(node.right)))
    )


def _joined(operation: Callable[[Value, Value], Value], a: Run, b: Run, skip: bool) -> Run:
    """Both at once; with `skip`, `b` is left alone where `a` holds for no row, which settles it."""

    def run(rows: Rows) -> Value:
        first = a(rows)
        if skip and isinstance(first, pa.Array) and not first.true_count:
            return compute.truth(first)
        return operation(first, b(rows))

    return run


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0
