"""How much of a trace a page holds, so that it stays below the size it may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traceanalyzer.errors import InputError

MEGABYTE = 1_000_000
LIMIT = 10 * MEGABYTE
"""Bytes of a page unless the user says otherwise."""


@dataclass(frozen=True)
class Budget:
    """At most so many slices and points on the timeline, and rows in each table."""

    slices: int = 200_000
    rows: int = 1_000

    @classmethod
    def of(cls, limit: int) -> Budget:
        """What usually fits into `limit` bytes: a share of the usual budget, within sensible bounds."""
        share = limit / LIMIT
        return cls(
            round(min(max(cls.slices * share, 10_000), 1_000_000)), round(min(max(cls.rows * share, 100), 5_000))
        )

    def halved(self) -> Budget | None:
        """Half of it, down to what still makes a report; None when there is nothing left to halve."""
        smaller = Budget(max(self.slices // 2, 1_000), max(self.rows // 2, 25))
        return smaller if smaller != self else None


def fitted(page: Callable[[Budget], bytes], limit: int) -> bytes:
    """`page` with the largest budget whose result has at most `limit` bytes. Raises InputError when none has."""
    budget: Budget | None = Budget.of(limit)
    made = b""
    while budget is not None:
        made = page(budget)
        if len(made) <= limit:
            return made
        budget = budget.halved()
    smallest = -(-len(made) // (MEGABYTE // 10)) / 10
    raise InputError(
        f"the report does not fit into {limit / MEGABYTE:g} MB; the smallest for this trace takes {smallest:g} MB (--limit-mb)"
    )
