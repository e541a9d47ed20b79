"""Two ranks' series of collectives where one has some in between that the other lacks: a record that was dropped, a call too many.

No single shift fits then, but stretches of the two do, each with a shift of its own. On one clock every pair that may belong together
shows itself by its ends, sizes and sequence numbers; which shift a stretch has is what most of it agrees on.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.collectives.alignment import (
    CLEAR,
    HOSTS_NS,
    KNOWN_NS,
    MANY,
    MOST_APART_NS,
    REACH,
    TAIL,
    WAIT_SHARE,
    Line,
)
from traceanalyzer.ranks.collectives.instances import allowed_apart
from traceanalyzer.records import dataclass

MOST_SHIFTS = 16
"""Shifts that are tried, those that most ends speak for."""
NOISES, LEAST_NS = 5.0, 5_000
"""How many times farther than typically ends that belong together may lie apart, and how far they may in any case, to tell shifts."""
ENOUGH = 0.7
"""The share of what both recorded at the same time that must have counterparts."""
FEWEST = 3
"""So many pairs more must agree for a stretch to have a shift of its own; one or two may do so by chance."""
PEAKS_NS, PEAK_SHARE, MOSTLY = (4_000, 20_000, 100_000), 0.7, 0.5
"""How close differences of ends lie that speak for one clock, as timestamps allow, how many may speak for another one at most, as
a share of these, and for which share of the ends they must speak."""


@dataclass(frozen=True)
class Series:
    """The parts of one lane in a chain, by start: their ends, durations, sizes and sequence numbers (`NULL` where not told)."""

    end: Array
    duration: Array
    bytes: Array
    sequence: Array

    def __len__(self) -> int:
        return len(self.end)

    def later(self, by: Array) -> Series:
        return Series(self.end + by, self.duration, self.bytes, self.sequence)


def gapped(reference: Series, part: Series, *, same_size: bool, shift: int | None, noise: float) -> Array | None:
    """For each of the part the place of its counterpart in the reference, -1 without one; both are read on one clock.

    `shift`: of a fit of the whole, if any: the last of the part is the reference's last but so many. `noise`: how far ends that belong
    together typically lie apart, ns. None where the pairs are as many
    as that one gives, or do not reach `ENOUGH` of what both recorded at the same time.
    """
    count, offset = len(part), len(reference) - len(part)
    whole = None if shift is None else offset - shift
    before = 0
    if whole is not None:
        own = _fits(reference, part, np.array([whole]), same_size, noise)[0]
        before = int(own.sum())
        if before == min(count, len(reference) - whole) - max(0, -whole):
            return None
    nearest = _nearest(reference.end, part.end) - np.arange(count)
    shifts, number = np.unique(nearest, return_counts=True)
    tried = np.unique(shifts[np.argsort(-number, kind="stable")[:MOST_SHIFTS]])
    if whole is not None and whole not in tried:
        tried = np.append(tried, whole)
    fits = _fits(reference, part, tried, same_size, noise)
    if not fits.any():
        return None
    found = _stretches(fits)
    own = np.arange(count)
    own = np.arange(count)
    # Now that each has its shift, what lies as far apart as it may belongs together too, unless another shift fits it better: then that
    # one is right where it is the only one, as beside a gap near the end.
    kept = fits[found, own]
    loosely = _fits(reference, part, tried, same_size, None)[found, own]
    others = fits.sum(axis=0)
    found = np.where(~kept & (others == 1), np.argmax(fits, axis=0), found)
    doubtful = ~kept & (others > 0)
    at = _once(np.where((loosely & ~doubtful) | (others == 1), own + tried[found], -1))
    low, high = max(int(reference.end[0]), int(part.end[0])), min(int(reference.end[-1]), int(part.end[-1]))
    both = min(int(((one.end >= low) & (one.end <= high)).sum()) for one in (reference, part))
    better = whole is None or int(kept.sum()) > before or doubtful.any()
    if not better or (at >= 0).sum() < max(FEWEST, ENOUGH * both):
        return None
    return at


def common_clock(reference: Series, part: Series, *, known: bool) -> tuple[Line, float] | None:
    """What to take from the part's times to read the reference's: the difference that most pairs of ends agree on, however the two are
    shifted in between; and how far these ends typically are from it, ns. None where another one does nearly as well, and the clocks do
    not tell which it is, or of fewer than `MANY`."""
    back = np.arange(min(len(part), TAIL))
    own = part.end[len(part) - 1 - back]
    centre = _nearest(reference.end, own)
    at = centre + np.arange(-REACH, REACH + 1)[:, None]
    there = (at >= 0) & (at < len(reference))
    difference = np.sort((own - reference.end[np.clip(at, 0, len(reference) - 1)])[there])
    if min(len(part), len(reference)) < MANY:
        return None
    for width in PEAKS_NS:
        many = np.searchsorted(difference, difference + width, "right") - np.arange(len(difference))
        best = int(np.argmax(many))
        if many[best] < max(FEWEST, MOSTLY * len(own)):
            continue
        peak = difference[best : best + many[best]]
        middle = float(np.median(peak))
        rivals = difference[(np.abs(difference - middle) > 2 * width) & (many > PEAK_SHARE * many[best])]
        bound = CLEAR * max(abs(middle), KNOWN_NS if known else HOSTS_NS)
        if abs(middle) > MOST_APART_NS or bool((np.abs(rivals) < bound).any()):
            return None
        return Line(middle), float(np.median(np.abs(peak - middle)))
    return None


def _nearest(reference: Array, ends: Array) -> Array:
    """The place of the reference's end that is nearest to each."""
    after = np.clip(np.searchsorted(reference, ends), 1, max(len(reference) - 1, 1))
    if len(reference) < 2:
        return np.zeros(len(ends), np.int64)
    before_nearer = ends - reference[after - 1] <= reference[after] - ends
    return after - before_nearer.astype(np.int64)


def _fits(reference: Series, part: Series, shifts: Array, same_size: bool, noise: float | None) -> Flags:
    """For each shift (a row) whether each of the part fits its counterpart: as well as with this `noise`, or as it must."""
    at = np.arange(len(part)) + shifts[:, None]
    there = (at >= 0) & (at < len(reference))
    at = np.clip(at, 0, len(reference) - 1)
    took = reference.duration[at]
    allowed = allowed_apart(np.minimum(took, part.duration), np.maximum(took, part.duration), np.ones_like(there))
    if noise is not None:
        wait = WAIT_SHARE * np.maximum(took, part.duration)
        allowed = np.minimum(allowed, max(NOISES * noise, LEAST_NS) + wait)
    fits: Flags = there & (np.abs(part.end - reference.end[at]) <= allowed)
    for ours, theirs, must in (
        (part.bytes, reference.bytes[at], same_size),
        (part.sequence, reference.sequence[at], True),
    ):
        if must:
            fits &= (ours == theirs) | (ours == NULL) | (theirs == NULL)
    return fits


def _stretches(fits: Flags) -> Array:
    """For each of the part which row of `fits` its stretch has: those with which most fit, less `FEWEST` for each change."""
    code = np.packbits(fits, axis=0).astype(np.int64)
    start = np.flatnonzero(np.append(True, (np.diff(code, axis=1) != 0).any(axis=0)))
    length, alike = np.diff(start, append=fits.shape[1]), fits[:, start]
    # The most that can fit up to each run of like columns, by the row of its last one, and the row before.
    best = np.zeros(len(fits), np.int64)
    came = np.empty((len(start), len(fits)), np.int64)
    rows = np.arange(len(fits))
    for run in range(len(start)):
        from_any = int(np.argmax(best))
        changes = best < best[from_any] - FEWEST
        came[run] = np.where(changes, from_any, rows)
        best = np.where(changes, best[from_any] - FEWEST, best) + length[run] * alike[:, run]
    chosen = np.empty(len(start), np.int64)
    row = int(np.argmax(best))
    for run in range(len(start) - 1, -1, -1):
        chosen[run] = row
        row = int(came[run, row])
    return np.repeat(chosen, length)


def _once(at: Array) -> Array:
    """The same, but what is the counterpart of several is nobody's, and order is kept."""
    kept = at >= 0
    place, number = np.unique(at[kept], return_counts=True)
    single = np.isin(at, place[number == 1]) & kept
    highest = np.maximum.accumulate(np.where(single, at, -1))
    ascending = single & (highest == at)
    return np.where(ascending, at, -1)
