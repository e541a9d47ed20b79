"""How much of a trace a page holds, so that it stays below the size it may have and makes use of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass

MEGABYTE = 1_000_000
LIMIT = 10 * MEGABYTE
"""Bytes of a page unless the user says otherwise."""
MOST_SLICES = 1_000_000
"""What a browser still draws smoothly (benchmarks/page.py)."""
NODES_A_ROW = 100
FILLED = 0.97
"""A page that takes so much of what it may is full."""
WORTH_GROWING = 1.1
GROWTHS = 4
"""How often a page is made again with more: the size of a slice varies, so the first guess can miss."""


@dataclass(frozen=True)
class Budget:
    """At most so many slices and points on the timeline, rows in each table, and nodes of trees of calls."""

    slices: int = 200_000
    rows: int = 1_000

    @property
    def nodes(self) -> int:
        """So many nodes of trees of calls go with that."""
        return self.rows * NODES_A_ROW

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


def fit_page(make: Callable[[Budget], Made], limit: int) -> bytes:
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
    too_large: Made | None = None
    for _ in range(GROWTHS):
        slices = _that_fill(made, too_large, limit)
        if made.is_whole or slices < budget.slices * WORTH_GROWING:
            break
        more = make(replace(budget, slices=slices))
        if len(more.page) <= limit:
            budget, made = replace(budget, slices=slices), more
        else:
            too_large = more
    return made.page


def _that_fill(made: Made, too_large: Made | None, limit: int) -> int:
    """About how many slices fill a page: as one that has room tells, or between that and one that is too large."""
    each = made.timeline / max(made.slices, 1)
    if too_large:
        each = (len(too_large.page) - len(made.page)) / max(too_large.slices - made.slices, 1)
    room = limit * FILLED - len(made.page)
    return min(made.slices + int(room / max(each, 0.1)), MOST_SLICES)
