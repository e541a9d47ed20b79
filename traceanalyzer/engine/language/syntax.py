"""Text of an expression -> a checked Python syntax tree, and where in the text each part stands.

Only the tree is used: nothing is ever executed. Unit literals are replaced by a number of the same width before Python parses, so
that every column stays true; their units are remembered by column.
"""

from __future__ import annotations

import ast
import re
import warnings

from traceanalyzer.records import dataclass
from traceanalyzer.units import NUMBER, SUFFIX, SUFFIXES, Quantity, quantity

MAX_LENGTH = 2000
MAX_DEPTH = 40
# Columns that Python keeps for itself -> a stand-in of the same width.
_RESERVED = {"class": "klass"}
_TOKEN = re.compile(
    rf"""(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<name>[A-Za-z_]\w*)|(?P<number>{NUMBER})(?P<suffix>{SUFFIX})?(?P<junk>\w*)"""
)


class ExpressionError(ValueError):
    """A wrong expression. `column` is the 0-based character in the expression; the message is for the rule's author."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Source:
    """A parsed expression: its tree, the unit literals by the column they start at, and the text from `indent` on as Python saw it."""

    text: str
    tree: ast.expr
    literals: dict[int, Quantity]
    indent: int
    encoded: bytes

    def column(self, node: ast.expr) -> int:
        """0-based character of a node. ast counts UTF-8 bytes from the first character that is no blank."""
        return self.indent + len(self.encoded[: node.col_offset].decode("utf-8", "ignore"))

    def literal(self, node: ast.Constant) -> Quantity | None:
        """The quantity a numeric constant was written as; None when it is no unit literal."""
        return self.literals.get(self.column(node))

    def written(self, node: ast.expr) -> str:
        """An expression as the author wrote it, units included."""
        return self.encoded[node.col_offset : node.end_col_offset].decode("utf-8", "ignore")

    @staticmethod
    def name(node: ast.Name) -> str:
        """The name as the author wrote it."""
        return next((column for column, stand_in in _RESERVED.items() if node.id == stand_in), node.id)


def parse(text: str) -> Source:
    """Parse one expression. Raises ExpressionError for what is no expression, too long or too deep."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH:,} characters")
    literals: dict[int, Quantity] = {}

    def plain(match: re.Match[str]) -> str:
        if match["name"]:
            return _RESERVED.get(match["name"], match["name"])
        if match["junk"]:
            units = ", ".join(SUFFIXES)
            raise ExpressionError(f"'{match[0]}' has no unit that is known; the units are {units}", match.start())
        if match["suffix"]:
            try:
                literals[match.start()] = quantity(match["number"], match["suffix"])
            except ValueError as error:
                raise ExpressionError(str(error), match.start()) from None
            return match["number"].ljust(len(match[0]))
        return match[0]

    body = _TOKEN.sub(plain, text.replace("\n", " ").replace("\t", " "))
    # A leading blank is an indentation error to Python.
    indent = len(body) - len(body.lstrip())
    try:
        with warnings.catch_warnings():
            # A regular expression such as "\\d+" is no Python string to warn about.
            warnings.simplefilter("ignore")
            tree = ast.parse(body[indent:], mode="eval").body
    except SyntaxError as error:
        # Python gives no offset where the text ends too early.
        column = error.offset - 1 + indent if error.offset else len(text)
        raise ExpressionError(f"this is no expression: {error.msg}", min(column, len(text))) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("this is no expression that can be read") from None
    source = Source(text, tree, literals, indent, _encoded(text[indent:]))
    _check_depth(source)
    return source


def _check_depth(source: Source) -> None:
    # Level by level, not by recursion: a hostile tree must not exhaust the stack before it is refused.
    level: list[ast.AST] = [source.tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH} levels")


def _encoded(text: str) -> bytes:
    # The unit suffix µs is replaced by blanks before Python sees the text, so it counts as one byte a character there.
    if "µ" in text:
        text = _TOKEN.sub(lambda match: match[0].replace("µ", "u") if match["suffix"] else match[0], text)
    return text.encode()
