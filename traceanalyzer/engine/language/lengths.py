"""How long a text may become that an expression makes, told before any row is seen.

A metric that joins the one before it to itself doubles, and a few lines of such a rule fill any memory. Names of a trace may have any
length; here each counts as one of the longest that are met. The limit at run time (`compute.concat`) counts what there really is.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

LONGEST_NAME = 1_000
LONGEST_TEXT = 100_000
# A number or a share in words.
_NUMBER = 32


def longest_text(node: ast.expr, metrics: Mapping[str, int]) -> int:
    """Characters of the longest text that the expression of a text gives; `metrics` are those of the metrics it may use."""
    match node:
        case ast.Constant(value=str(text)):
            return len(text)
        case ast.Name(id=name):
            return metrics.get(name, LONGEST_NAME)
        case ast.Call(func=ast.Name(id=function), args=arguments):
            if function in ("counted", "plural", "percent"):
                return _NUMBER + sum(longest_text(one, metrics) for one in arguments[1:])
            lengths = [longest_text(one, metrics) for one in arguments]
            return sum(lengths) if function == "concat" else max(lengths, default=0)
    return LONGEST_NAME
