"""How much of a trace a page holds, so that it stays below the size it may have and makes use of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from traceanalyzer.errors import InputError

MEGABYTE = 1_000_000
LIMIT = 10 * MEGABYTE
"""Bytes of a page unless the user says otherwise."""
MOST_SLICES = 1_000_000
"""What a browser still draws smoothly (benchmarks/page.py)."""
FILLED = 0.97
"""A page that takes so much of what it may is full."""
WORTH_GROWING = 1.1
GROWTHS = 3
"""How often a page is made again with more: the size of a slice varies, so the first guess can miss."""


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
            round(min(max(cls.slices * share, 10_000), MOST_SLICES)), round(min(max(cls.rows * share, 100), 5_000))
        )

    def halved(self) -> Budget | None:
        """Half of it, down to what still makes a report; None when there is nothing left to halve."""
        smaller = Budget(max(self.slices // 2, 1_000), max(self.rows // 2, 25))
        return smaller if smaller != self else None


@dataclass(frozen=True)
class Made:
    """A page, and of its timeline how many bytes it takes, how many slices it has, and whether these are all there are."""

    page: bytes
    timeline: int = 0
    slices: int = 0
    is_whole: bool = True

    def room_for(self, limit: int) -> int:
        """About how many slices fill a page of `limit` bytes, if each takes as much as those that are there."""
        room = limit * FILLED - (len(self.page) - self.timeline)
        return min(round(self.slices * room / max(self.timeline, 1)), MOST_SLICES)


def fitted(make: Callable[[Budget], Made], limit: int) -> bytes:
    """The page with about as much as `limit` bytes hold. Raises InputError when even the smallest takes more."""
    budget: Budget | None = Budget.of(limit)
    made = Made(b"")
    while budget is not None:
        made = make(budget)
        if len(made.page) <= limit:
            return _filled(make, budget, made, limit)
        budget = budget.halved()
    smallest = -(-len(made.page) // (MEGABYTE // 10)) / 10
    raise InputError(
        f"the report does not fit into {limit / MEGABYTE:g} MB; the smallest for this trace takes {smallest:g} MB (--limit-mb)"
    )


def _filled(make: Callable[[Budget], Made], budget: Budget, made: Made, limit: int) -> bytes:
    """The page with more slices, as long as it has room for notably more and they fit."""
    for _ in range(GROWTHS):
        slices = made.room_for(limit)
        if made.is_whole or slices < budget.slices * WORTH_GROWING:
            break
        budget = replace(budget, slices=slices)
        larger = make(budget)
        if len(larger.page) > limit:
            # What was added takes more than what was there: its own size tells how much of it fits.
            slices = larger.room_for(limit)
            if slices <= made.slices:
                break
            larger = make(replace(budget, slices=slices))
            return larger.page if len(larger.page) <= limit else made.page
        made = larger
    return made.page
