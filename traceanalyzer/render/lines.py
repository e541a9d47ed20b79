"""Lines of plain text."""

from __future__ import annotations

import textwrap

from traceanalyzer.names import printable

__all__ = ["WIDTH", "printable", "wrap"]

WIDTH = 100


def wrap(text: str, first: str, rest: str) -> list[str]:
    """Lines of at most WIDTH characters, cut between words only: a command with hyphens must survive copying."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first]
