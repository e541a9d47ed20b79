"""How two ranks' series of ends lie beside each other: which are ends of the same collectives, and how the clocks differ.

The parts of a synchronizing collective end together. So the right shift between two series is the one at which the differences of their
ends agree, and what they agree on is how far apart the clocks are. Programs repeat themselves, so that other shifts can fit nearly as
well: where several do, the clocks tell which it is, however roughly, and where they cannot, nobody can.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

MOST_APART_NS = 1_000_000_000
"""Hosts keep their clocks within milliseconds of each other; a second and more is another run, with no collective in common, or no
clock at all."""
REACH, TAIL = 64, 256
"""How many places around the one that the clocks say are tried, and on how many collectives."""
FEW = 3
"""With fewer in common, an offset would explain any difference: the clocks must agree as they are."""
SAME_CLOCK_NS = 20_000
"""So well do clocks of one host agree. Where ends do too, as well as timestamps resolve, no other shift is tried."""
ALIKE_NS, ALIKE, ALIKE_SHARE = 2_000, 2.0, 0.02
"""Shifts fit alike when most ends lie as close together, but for what timestamps resolve, or a factor, and as many agree."""
MANY, FEW_ALIKE_NS = 16, 30_000
"""Fewer ends than these tell clocks of two hosts apart only where they agree as well as work under way at the same time lets them."""
CLEAR, HOSTS_NS, SAME_NS, KNOWN_NS = 4.0, 2_000_000, 50_000, 5_000
"""Of shifts that fit alike, one is right when any other wants clocks so many times farther apart, and than clocks are anyway: those of
two hosts, those of one, and those that are known."""
MOST = 0.9
WAIT_SHARE = 0.02
"""Ends may lie so much of the wait farther apart: timestamps of a kernel that spins for long are less sure, and another collective ends
a whole wait later."""
MOST_DRIFT = 2e-4
"""Crystals are good to some 50 parts per million; a clock that is being slewed runs off by more, but not by this."""
FEWEST_FOR_DRIFT = 32

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A difference between two clocks in ns, at time t: offset + slope * t."""

    offset: float = 0.0
    slope: float = 0.0

    def at(self, time: Array) -> Array:
        """Rounded to ns."""
        difference: Array = np.rint(self.offset + self.slope * time).astype(np.int64)
        return difference

    def __add__(self, other: Line) -> Line:
        return Line(self.offset + other.offset, self.slope + other.slope)

    def __sub__(self, other: Line) -> Line:
        return Line(self.offset - other.offset, self.slope - other.slope)


@dataclass(frozen=True)
class Fit:
    """The last of a series is the reference's last but `shift`; `clock` is what to take from its times to read the reference's.

    `scatter` is the median distance in ns that is left between the ends, less what waiting explains; `blur` is all of it, and `spare`
    how much waiting typically explains. `agree`: the share of those that lie within bounds. `sure`: no other shift would do as well.
    """

    shift: int
    clock: Line
    scatter: float
    blur: float
    spare: float
    agree: float
    sure: bool


def by_order(
    reference: Array,
    ends: Array,
    allowed: float,
    *,
    known: bool,
    pinned: bool = False,
    later: int = 0,
    shift: int | None = None,
    durations: tuple[Array, Array] | None = None,
) -> Fit | None:
    """Fit two ascending series of ends, read as far as possible on one clock: one that is `known`, or as recorded.

    `allowed`: how far apart the ends of one collective may lie, ns. `pinned`: the ends say nothing of the clocks, and only the shift is
    looked for; `later`: 1 where none of them can come before its counterpart, -1 where none can come after it. `shift` is given where
    sequence numbers tell it. `durations`: of both, where the ends of what was waited in for long may lie farther apart. None when no
    shift fits.
    """
    spare = (np.zeros_like(reference), np.zeros_like(ends)) if durations is None else durations
    centre = _by_clock(reference, ends) if shift is None else shift
    tried = _compare(reference, ends, np.array([centre]), allowed, pinned, later, spare)
    if not tried.common[0]:
        return None
    if shift is not None or min(len(reference), len(ends)) < FEW:
        return _chosen(reference, ends, tried, 0, pinned, True, allowed)
    quiet = ALIKE_NS if tried.common[0] >= FEW else SAME_CLOCK_NS
    if tried.scatter[0] <= quiet and abs(tried.offset[0]) <= SAME_CLOCK_NS:
        return _chosen(reference, ends, tried, 0, pinned, True, allowed)
    least = max(FEW, tried.common[0] // 2)
    tried = _compare(reference, ends, np.arange(centre - REACH, centre + REACH + 1), allowed, pinned, later, spare)
    usable = (tried.common >= least) & (np.abs(tried.offset) <= MOST_APART_NS) & (tried.wrong <= ALIKE_SHARE)
    usable &= (tried.agree > 0) if pinned else (tried.typical <= allowed)
    if not pinned:
        usable &= (tried.common >= MANY) | (tried.beyond <= FEW_ALIKE_NS) | (np.abs(tried.offset) <= SAME_NS)
        usable &= (np.abs(tried.offset) <= HOSTS_NS) | (tried.typical <= FEW_ALIKE_NS)
    if not usable.any():
        at = int(np.argmin(np.where(tried.common >= least, tried.scatter, np.inf)))
        if tried.common[at] < least:
            return None
        return _chosen(reference, ends, tried, at, pinned, False, allowed)
    usable &= tried.agree >= tried.agree[usable].max() - ALIKE_SHARE
    many = tried.common[usable].max() >= MANY
    # Of a few, what waiting explains may be nearer by chance.
    far = tried.far if many else tried.beyond
    usable &= far <= max(ALIKE * far[usable].min(), ALIKE_NS if many else FEW_ALIKE_NS)
    rows = np.flatnonzero(usable)
    rows = rows[np.argsort(np.abs(tried.offset[rows]), kind="stable")]
    apart = np.abs(tried.offset[rows])
    usual = KNOWN_NS if known else SAME_NS if apart[0] <= SAME_CLOCK_NS else HOSTS_NS
    sure = len(rows) == 1 or bool(apart[1] >= CLEAR * max(apart[0], usual))
    # Clocks that say one thing and ends that say another leave it open.
    sure &= bool(tried.far[rows[0]] <= CLEAR * max(float(tried.far[rows].min()), FEW_ALIKE_NS))
    return _chosen(reference, ends, tried, int(rows[0]), pinned, sure, allowed)


def by_sequence(
    reference: tuple[Array, Array, Array], part: tuple[Array, Array, Array], allowed: float, pinned: bool
) -> Fit | None:
    """As `by_order`, for series of (sequence numbers, ends, durations), whose numbers are all different. None when they share none."""
    _, a, b = np.intersect1d(reference[0], part[0], assume_unique=True, return_indices=True)
    if not len(a):
        return None
    time, difference = part[1][b], part[1][b] - reference[1][a]
    clock, scatter = (Line(), float(np.median(np.abs(difference)))) if pinned else line(time, difference)
    spare = WAIT_SHARE * np.maximum(part[2][b], reference[2][a])
    left = np.maximum(np.abs(difference - clock.at(time)) - (0.0 if pinned else spare), 0.0)
    agree = float(np.mean(left <= allowed))
    return (
        Fit(0, clock, min(scatter, float(np.median(left))), scatter, float(np.median(spare)), agree, True)
        if abs(np.median(difference)) <= MOST_APART_NS
        else None
    )


def line(time: Array, difference: Array) -> tuple[Line, float]:
    """The clock difference that these differences show, and their median distance from it in ns; a drift only where it is plain."""
    offset = float(np.median(difference))
    scatter = float(np.median(np.abs(difference - offset)))
    third = len(time) // 3
    if len(time) < FEWEST_FOR_DRIFT or scatter <= ALIKE_NS:
        return Line(offset), scatter
    first, last = slice(None, third), slice(-third, None)
    rise = float(np.median(difference[last]) - np.median(difference[first]))
    slope = rise / max(float(np.median(time[last]) - np.median(time[first])), 1.0)
    level = difference - slope * time
    offset_then = float(np.median(level))
    scatter_then = float(np.median(np.abs(level - offset_then)))
    if abs(slope) <= MOST_DRIFT and scatter_then <= scatter / 2:
        return Line(offset_then, slope), scatter_then
    return Line(offset), scatter


@dataclass(frozen=True)
class _Tried:
    """For each shift: how many ends have a counterpart, the median difference, the median distance from it and what nine of ten keep
    below, both once more less what waiting explains, the median of that, the share within bounds, and the share that lies on the wrong
    side of its counterpart."""

    shift: Array
    common: Array
    offset: Floats
    scatter: Floats
    far: Floats
    typical: Floats
    beyond: Floats
    spare: Floats
    agree: Floats
    wrong: Floats


def _by_clock(reference: Array, ends: Array) -> int:
    """The shift that the clocks say."""
    if ends[-1] > reference[-1]:
        before = np.searchsorted(ends, reference[-1])
        nearer = before > 0 and reference[-1] - ends[before - 1] < ends[before] - reference[-1]
        return -(len(ends) - 1 - int(before) + int(nearer))
    after = np.searchsorted(reference, ends[-1])
    nearer = after > 0 and ends[-1] - reference[after - 1] < reference[after] - ends[-1]
    return len(reference) - 1 - int(after) + int(nearer)


def _compare(
    reference: Array,
    ends: Array,
    shifts: Array,
    allowed: float,
    pinned: bool,
    later: int,
    durations: tuple[Array, Array],
) -> _Tried:
    # Counted from the end: the i-th end lies beside the reference's (i + shift)-th.
    back = np.arange(min(len(ends), TAIL + max(-int(shifts.min()), 0)))
    at = back + shifts[:, None]
    there = (at >= 0) & (at < len(reference))
    mine, theirs = len(ends) - 1 - back, len(reference) - 1 - np.clip(at, 0, len(reference) - 1)
    difference = ends[mine] - reference[theirs]
    common = there.sum(axis=1)
    offset = np.zeros(len(shifts))
    if not pinned:
        offset = np.where(common >= FEW, _quantiles(difference, there, common, 0.5)[0], 0.0)
    distance = np.abs(difference - offset[:, None])
    waited = WAIT_SHARE * np.maximum(durations[1][mine], durations[0][theirs])
    left = np.maximum(distance - waited, 0.0)
    agree = ((left <= allowed) & there).sum(axis=1) / np.maximum(common, 1)
    wrong = ((later * difference < -allowed) & there).sum(axis=1) / np.maximum(common, 1)
    scatter, far = _quantiles(distance, there, common, 0.5, MOST)
    typical, beyond = _quantiles(left, there, common, 0.5, MOST)
    spare = _quantiles(waited, there, common, 0.5)[0]
    return _Tried(shifts, common, offset, scatter, far, typical, beyond, spare, agree, wrong)


def _quantiles(values: npt.NDArray[Any], there: npt.NDArray[np.bool_], common: Array, *shares: float) -> list[Floats]:
    """For each share, below which value so much of each row's values lies that are there; infinity where none is."""
    ordered = np.sort(np.where(there, values, np.inf), axis=1)
    rows, last = np.arange(len(values)), np.maximum(common - 1, 0)
    at = [share * last for share in shares]
    return [(ordered[rows, np.floor(a).astype(np.int64)] + ordered[rows, np.ceil(a).astype(np.int64)]) / 2 for a in at]


def _chosen(
    reference: Array, ends: Array, tried: _Tried, at: int, pinned: bool, sure: bool, allowed: float
) -> Fit | None:
    """The fit at one of the shifts tried, on all that the two have in common."""
    shift, scatter, offset = int(tried.shift[at]), float(tried.scatter[at]), float(tried.offset[at])
    clock = Line(offset)
    if not pinned and tried.common[at] >= FEW:
        common = min(len(ends) + min(shift, 0), len(reference) - max(shift, 0))
        a = reference[: len(reference) - shift] if shift > 0 else reference
        b = ends[: len(ends) + shift] if shift < 0 else ends
        fitted, left = line(b[-common:], b[-common:] - a[-common:])
        # Where one of the two lacks some in between, no line fits them all; then what the last ones tell counts.
        clock, scatter = (fitted, left) if left <= max(2 * scatter, KNOWN_NS) else (clock, scatter)
    typical = min(scatter, float(tried.typical[at]))
    return (
        Fit(shift, clock, typical, scatter, float(tried.spare[at]), float(tried.agree[at]), sure)
        if abs(offset) <= MOST_APART_NS
        else None
    )
