"""Pieces of GitHub-flavoured Markdown that mean the same wherever they stand: in a paragraph, a table cell or an HTML block.

Names in a trace are anybody's. What could be markup is written as a character reference, which is text in Markdown and in HTML alike
and never structure (CommonMark 0.31, 2.5). What GitHub and GitLab look for in the finished page (`@name`, `#12`, `:tada:`) is parted
by a space of no width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceanalyzer.render.lines import printable
from traceanalyzer.result.advice import pieces

LIMIT = 60_000
"""What is written stays below so many bytes of UTF-8: a comment on GitHub holds 65,536 characters, a step summary 1 MiB."""
LEFT, RIGHT = ":--", "--:"
_MARKUP = re.compile(r"""[\\`*\[\]<&|~$]|(?<![^\W_])_|_(?![^\W_])""")
_OPENING = re.compile(r"^(?:[-+=#/:>]|\d+(?=[.)](?:\s|$)))")
"""What would begin a heading, a list, a rule or a command at the beginning of a line."""
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_REFERENCE = re.compile(r"@(?=[\w-])|(?<=\bGH)-(?=\d)|[#!](?=\d)|(?<!:):(?=[\w+-]+:(?!:))", re.IGNORECASE)
_APART = "&#8203;"


def text(words: str) -> str:
    """Words that render as they are: no markup, link, mention, reference to an issue or emoji. One line."""
    parted = _REFERENCE.sub(lambda found: found[0] + "\0", _ADDRESS.sub(lambda found: found[0] + "\0", _line(words)))
    return _escaped(parted).replace("\0", _APART)


def code(words: str) -> str:
    """Words as inline code, to be copied as they are: neither backticks nor pipes end it. One line."""
    return f"<code>{_ADDRESS.sub(_reference, _MARKUP.sub(_reference, _line(words)))}</code>"


def marked(words: str) -> str:
    """Advice, whose code stands between backticks."""
    return "".join(code(piece.text) if piece.code else _within(piece.text) for piece in pieces(words))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """A table; its cells are Markdown (`text`, `code`), `align` is LEFT or RIGHT for each column."""
    lines = [headers, align, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def details(summary: str, *blocks: str) -> str:
    """Blocks that are folded away under a summary, which is what `text` and `code` give."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *blocks, "</details>"])


def clip_blocks(
    blocks: Sequence[str], limit: int = LIMIT, rest: str = "more sections are in the result as JSON"
) -> str:
    """The blocks with an empty line between them, as many as fit into `limit` bytes of UTF-8, and how many are left out.

    A block is whole or not there, so no table ends in the middle. Ends in a newline.
    """
    kept: list[str] = []
    room = limit - len(f"\n\n… and {len(blocks)} {rest}\n".encode())
    for block in blocks:
        room -= len(block.encode()) + 2
        if room < 0:
            break
        kept.append(block)
    left = len(blocks) - len(kept)
    return "\n\n".join([*kept, *([f"… and {left} {rest}"] if left else [])]) + "\n"


def _within(words: str) -> str:
    """Words beside code, from which spaces part them."""
    before, after = (" " if edge.isspace() else "" for edge in (words[:1], words[-1:]))
    return f"{before}{text(words)}{after}" if words.strip() else " "


def _line(words: str) -> str:
    return printable(" ".join(words.split()))


def _escaped(line: str) -> str:
    opening = _OPENING.match(line)
    if opening:
        # Of a number before a stop, the stop is what makes it a list.
        at = opening.end() if opening[0].isdigit() else 0
        return _MARKUP.sub(_reference, line[:at]) + f"&#{ord(line[at])};" + _MARKUP.sub(_reference, line[at + 1 :])
    return _MARKUP.sub(_reference, line)


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"
