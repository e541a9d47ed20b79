"""Where the level of a series of measurements changes, told from the noise of the series itself.

The series is cut in two where the difference of the levels on both sides, in units of its standard error, is largest, if chance would
hardly make it as large; then each part is cut again (binary segmentation: Scott and Knott, A cluster analysis method for grouping means
in the analysis of variance, Biometrics 30, 1974; for benchmarks in continuous integration: Fleming et al., Hunter: using change point
detection to hunt for performance regressions, ICPE 2023). Three things make it fit for nightly captures:

- A single night may be far off and says nothing of the nights after it. So each part is clipped at a few times the noise around its
  median before it is cut (Huber, Robust estimation of a location parameter, 1964).
- The noise is what one capture differs from the next by, as a median (the MAD of first differences), which a change or two and a noisy
  night leave as it is.
- Neighbours may be alike (a warm week, a busy cluster). Then fewer values than there are tell the level: the noise is taken as
  larger by sqrt((1 + r) / (1 - r)), r being the correlation of one capture's rest with the next one's, where that is more than
  chance makes it.
"""

from __future__ import annotations

from itertools import pairwise
from math import erfc, sqrt

import numpy as np
import numpy.typing as npt

from traceanalyzer.records import dataclass

Values = npt.NDArray[np.float64]

CHANCE = 0.001
"""A series in which nothing changes shows a change about so often."""
CLIPPED = 4.0
"""So many times the noise, a value counts for in the level of a part. Two nights at it are seen, one is not."""
SHORTEST = 2
"""Fewer values are no level: one night may be anything."""
FEWEST = 5
"""Captures from which on the noise between them is told."""
_TO_DEVIATION = 1.4826
"""Median absolute deviation to standard deviation, for a normal distribution."""
_ALIKE = 2.0
"""Standard errors from which on a correlation between neighbours is believed."""
_MOST_ALIKE = 0.8


@dataclass(frozen=True)
class Level:
    """A part of the series between two changes: values `first` to `end` (behind the last), their `mean` without those that are far off,
    and its standard error `error`."""

    first: int
    end: int
    mean: float
    error: float

    @property
    def count(self) -> int:
        """Values of the part."""
        return self.end - self.first


@dataclass(frozen=True)
class Levels:
    """The parts of a series in order; `noise` is the standard deviation from one value to the next, `far` the places of values that are
    off their part's level by more than `CLIPPED` times that."""

    parts: list[Level]
    noise: float
    far: list[int]


def levels_of(values: Values, least_noise: float) -> Levels:
    """The levels of a series of at least one value. The noise is taken for no less than `least_noise`, which is more than 0.

    Of fewer than `FEWEST` values all are one level.
    """
    noise = max(noise_of(values), least_noise)
    steady = _without_single(values, noise)
    cuts = _cuts(steady, noise)
    alike = _alike(steady, cuts, noise)
    if alike:
        noise *= sqrt((1 + alike) / (1 - alike))
        cuts = _cuts(steady, noise)
    parts = [_level(values, first, end, noise) for first, end in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    off = np.concatenate([np.abs(values[part.first : part.end] - part.mean) for part in parts])
    return Levels(parts, noise, np.flatnonzero(off > CLIPPED * noise).tolist())


def noise_of(values: Values) -> float:
    """The standard deviation from one value to the next, by the median of their differences; 0 for fewer than three."""
    if len(values) < 3:
        return 0.0
    # Over one value too, lest a single one that is off counts for two differences of three.
    apart = np.concatenate([np.abs(np.diff(values)), np.abs(values[2:] - values[:-2])])
    return float(_TO_DEVIATION * np.median(apart) / sqrt(2))


def _cuts(values: Values, noise: float) -> list[int]:
    """The places of the changes, in order: each is that of the first value behind one."""
    if len(values) < FEWEST:
        return []
    needed = _needed(len(values))
    found: list[int] = []
    open_parts = [(0, len(values))]
    while open_parts:
        first, end = open_parts.pop()
        if end - first < 2 * SHORTEST:
            continue
        at, size = _largest(_clipped(values[first:end], noise))
        if size > needed * noise:
            found.append(first + at)
            open_parts += [(first, first + at), (first + at, end)]
    return _settled(values, sorted(found), noise, needed)


def _without_single(values: Values, noise: float) -> Values:
    """The values, where one is far off both of its neighbours, and these are near each other, the mean of these."""
    if len(values) < FEWEST:
        return values
    one, inner, other = values[:-2], values[1:-1], values[2:]
    far = CLIPPED * noise
    single = (np.abs(inner - one) > far) & (np.abs(inner - other) > far) & (np.abs(one - other) <= far)
    return np.concatenate([values[:1], np.where(single, (one + other) / 2, inner), values[-1:]])


def _largest(part: Values) -> tuple[int, float]:
    """Where the means before and behind differ most, and by how much, in standard errors times the noise."""
    count = len(part)
    before = np.arange(1, count)
    sums = np.cumsum(part)[:-1]
    apart = np.abs(sums / before - (part.sum() - sums) / (count - before)) * np.sqrt(before * (count - before) / count)
    at = int(apart[SHORTEST - 1 : count - SHORTEST].argmax()) + SHORTEST
    return at, float(apart[at - 1])


def _clipped(part: Values, noise: float) -> Values:
    middle = np.median(part)
    return np.clip(part, middle - CLIPPED * noise, middle + CLIPPED * noise)


def _settled(values: Values, cuts: list[int], noise: float, needed: float) -> list[int]:
    """The cuts, each at its best place between its neighbours; those that do not hold there are left out, the weakest first."""
    while cuts:
        borders = [0, *cuts, len(values)]
        sizes = []
        for number, (first, end) in enumerate(zip(borders, borders[2:], strict=False)):
            _, size = _largest(_clipped(values[first:end], noise))
            cuts[number] = first + _placed(values[first:end], borders[number + 1] - first, noise)
            sizes.append(size)
        weakest = int(np.argmin(sizes))
        if sizes[weakest] > needed * noise and all(one < other for one, other in pairwise(cuts)):
            return cuts
        del cuts[weakest]
    return cuts


def _placed(part: Values, cut: int, noise: float) -> int:
    """The place near which a part is cut, where each value lies on the level of its side as nearly as possible. One that is far off
    both counts no more than one that is `CLIPPED` times the noise off."""
    loss = [np.minimum((part - np.median(side)) ** 2, (CLIPPED * noise) ** 2) for side in (part[:cut], part[cut:])]
    behind = np.cumsum(loss[0])[:-1] + loss[1].sum() - np.cumsum(loss[1])[:-1]
    return int(behind[SHORTEST - 1 : len(part) - SHORTEST].argmin()) + SHORTEST


def _needed(count: int) -> float:
    """How many standard errors a difference must have that chance makes in one of 1 / `CHANCE` series of so many values
    (Bonferroni)."""
    low, high = 0.0, 40.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if count * erfc(middle / sqrt(2)) > CHANCE else (low, middle)
    return high


def _alike(values: Values, cuts: list[int], noise: float) -> float:
    """How much one value's rest is like the next one's, where that is more than chance makes it; else 0."""
    rests = [_clipped(part, noise) for part in np.split(values, cuts)]
    rests = [part - part.mean() for part in rests]
    pairs = sum(max(len(part) - 1, 0) for part in rests)
    spread = sum(float(part @ part) for part in rests)
    if pairs < FEWEST or not spread:
        return 0.0
    found = sum(float(part[1:] @ part[:-1]) for part in rests) / spread
    # A part's own mean takes some of it away (Marriott and Pope, Biometrika 41, 1954).
    found += (1 + 3 * found) * len(rests) / pairs
    return min(found, _MOST_ALIKE) if found > _ALIKE / sqrt(pairs) else 0.0


def _level(values: Values, first: int, end: int, noise: float) -> Level:
    part = values[first:end]
    return Level(first, end, float(_clipped(part, noise).mean()), noise / sqrt(end - first))
