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
"""How often a page is made again with more: the size of a slice varies, so what was said of it can miss."""
LEAST_CUT = 0.9
"""A page that is too large is made again with at most so much of its timeline."""
LEAST_TIMELINE = 5
"""Before tables get shorter too, the timeline goes down to one in so many of the slices that usually fit."""


@dataclass(frozen=True)
class Budget:
    """At most so many slices and points on the timeline, rows in each table, and nodes of trees of calls."""

    slices: int = MOST_SLICES
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
    too_large: Made | None = None
    while budget is not None:
        made = make(budget)
        if len(made.page) <= limit:
            return _filled(make, budget, made, too_large, limit)
        less = _with_less_timeline(budget, made, limit)
        too_large = made if less else None  # what has longer tables too says nothing of the size of a slice
        budget = less or budget.halved()
    smallest = -(-len(made.page) // (MEGABYTE // 10)) / 10
    raise InputError(
        f"the report does not fit into {limit / MEGABYTE:g} MB; the smallest for this trace takes {smallest:g} MB (--limit-mb)"
    )


def _with_less_timeline(budget: Budget, made: Made, limit: int) -> Budget | None:
    """With the slices that will fit beside all else that is on a page that is too large; None where it has few already."""
    least = Budget.of(limit).slices // LEAST_TIMELINE
    if made.slices <= least:
        return None
    room = limit * FILLED - (len(made.page) - made.timeline)
    return replace(budget, slices=max(int(min(room / max(made.timeline, 1), LEAST_CUT) * made.slices), least))


def _filled(make: Callable[[Budget], Made], budget: Budget, made: Made, too_large: Made | None, limit: int) -> bytes:
    """The page with more slices, as long as it has room for notably more and they fit; fewer than there were on one that was
    `too_large`."""
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
