"""The one place where text leaves for a terminal or the log of a pipeline.

Names in a trace, a rule or a budget are anybody's. A terminal obeys control characters and shows text in another order where it is told
so; GitHub obeys a line of a log that begins with `::command::` (blanks before it do not count) or holds `##[command]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress

# A path has 4,096 characters at most; a line that is longer quotes something that nobody reads to its end.
LONGEST_LINE = 5000


def printable(text: str) -> str:
    """The text with a `?` for each character that is not to be seen: control characters, marks that turn text around, line ends."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def line(text: str) -> str:
    """One line that neither a terminal nor a pipeline takes for a command."""
    text = printable(text).replace("##[", "# #[")
    return text.replace("::", ": :", 1) if text.lstrip().startswith("::") else text


def page(lines: Iterable[str]) -> str:
    """Lines as a text for the terminal."""
    return "".join(f"{line(one)}\n" for one in lines)


def tell(text: str) -> None:
    """One line to standard error, see `tell_lines`."""
    words = " ".join(text.split())
    tell_lines([words if len(words) <= LONGEST_LINE else words[:LONGEST_LINE] + "…"])


def tell_lines(lines: Iterable[str]) -> None:
    """Lines to standard error, where somebody reads it: what is said there never decides what the program ends with."""
    with suppress(OSError, ValueError, AttributeError):  # full, closed, or not there at all
        sys.stderr.write(page(lines))
        sys.stderr.flush()
