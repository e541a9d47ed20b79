"""Advice as its author wrote it: words, and between backticks the code in them."""

from __future__ import annotations

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Piece:
    """A part of an advice: words or, where it stood between backticks, code."""

    text: str
    code: bool = False


def pieces(advice: str) -> list[Piece]:
    """The words and the code of an advice in its order. A last backtick that nothing closes is a sign like any other."""
    parts = advice.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return [Piece(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def plain(advice: str) -> str:
    """An advice where code cannot be told from words."""
    return "".join(piece.text for piece in pieces(advice))
