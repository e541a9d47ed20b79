"""Ranks, calls and places in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_NAMED = 8


def numbers(ranks: Iterable[int]) -> str:
    """Ranks in words: "1, 3, 5-7"."""
    stretches: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if stretches and rank == stretches[-1][1] + 1:
            stretches[-1][1] = rank
        else:
            stretches.append([rank, rank])
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in stretches[:MOST_NAMED]]
    left = sum(b - a + 1 for a, b in stretches[MOST_NAMED:])
    return ", ".join(words) + (f" and {left} more" if left else "")


def listed(words: Sequence[str], most: int = MOST_NAMED) -> str:
    """ "a, b and c"."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def called(operation: str | None, number: int | None) -> str:
    """ "all_reduce 19"."""
    return f"{operation or 'call'} {number:,}" if number is not None else operation or "a call"


def of_group(label: str | None) -> str:
    """What follows the name of a call where the job has several groups."""
    return f" of {label}" if label else ""
