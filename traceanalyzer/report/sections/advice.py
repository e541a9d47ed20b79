"""Advice as words and code: code can be copied without the sentence around it, and stands on lines of its own where it ends one."""

from __future__ import annotations

import re

from traceanalyzer.records import dataclass
from traceanalyzer.result.advice import pieces

BLOCK = 24
"""Code of so many characters stands on lines of its own where it ends a sentence."""


@dataclass(frozen=True)
class Part:
    """A piece of an advice: words, code within them, or code on lines of its own (`block`)."""

    text: str
    code: bool = False
    block: bool = False


@dataclass(frozen=True)
class Advice:
    """`code` is what the copy button copies, one line a piece; empty where the advice is words only."""

    parts: list[Part]
    code: str


def advice(text: str) -> Advice:
    """The words and the code of one recommendation, in its order."""
    found = pieces(text)
    parts = []
    for at, piece in enumerate(found):
        before, after = (found[at - 1].text if at else ""), (found[at + 1].text if at + 1 < len(found) else "")
        block = piece.code and len(piece.text) >= BLOCK and _opens(before) and _closes(after)
        parts.append(Part(piece.text, piece.code, block))
    return Advice(
        parts, "\n".join(dict.fromkeys(part.text for part in parts if part.code and _worth_copying(part.text)))
    )


def _opens(before: str) -> bool:
    """Whether what comes next may begin a line: at the beginning, or after a colon."""
    return not before.strip() or before.rstrip().endswith(":")


def _closes(after: str) -> bool:
    """Whether a sentence ends here: with its stop, or with the advice."""
    return not after or after == "." or (after[:1] == "." and after[1:2].isspace())


def _worth_copying(code: str) -> bool:
    """Whether it is more than a name."""
    return re.search(r"\([^)]|[= @]", code) is not None
