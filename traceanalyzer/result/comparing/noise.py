"""How much a mean may differ by chance: resampled from the units that were timed and, where there are several, from the captures.

The percentile bootstrap (Efron, 1979) of the ratio of two means. Resampled means of n values vary less than they should by a factor
of sqrt((n - 1) / n), and their spread is itself known from n values only (Student, The Probable Error of a Mean, 1908). For the few
steps of a trace both matter and are put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from traceanalyzer.result.captures.capture import Capture

Floats = npt.NDArray[np.float64]

LEVEL = 0.9
"""The interval holds the true change so often; each of its ends is right in 19 of 20 cases."""
LEAST = 0.02
"""A smaller change is none: the same program on the same machine differs by that much from run to run."""
FEW = 5
"""Among fewer units a first one, whose beginning is not known well, still says something."""
RESAMPLES = 2_000
SEED = 20_240_229
"""What the draws begin with: the same captures give the same interval."""
ONE, OTHER = ("one", "other"), ("other", "one")
"""Each side draws twice, with one generator and with another, in opposite order: whoever compares the other way round gets the same."""
LOW, HIGH = (1 - LEVEL) / 2, (1 + LEVEL) / 2
NORMAL = NormalDist().inv_cdf(HIGH)
"""Standard deviations on either side that hold LEVEL of a normal distribution."""


def source(base: Sequence[Capture], new: Sequence[Capture]) -> str | None:
    """What the noise is measured from: captures, steps or nothing."""
    if max(len(base), len(new)) > 1:
        return "captures"
    most = max((capture.unit.count for capture in (*base, *new) if capture.unit), default=0)
    return "steps" if most > 1 else None


def spread(captures: Sequence[Capture]) -> float | None:
    """Standard deviation of the samples of a side over their mean; of several captures that of their means. None for a single value."""
    times = [capture.unit.time for capture in captures if capture.unit]
    values = [time.mean_ns for time in times] if len(times) > 1 else [ns for time in times for ns in time.samples_ns]
    if len(values) < 2 or not sum(values):
        return None
    return round(float(np.std(values, ddof=1) / np.mean(values)), 6)


def ratio_interval(base: Sequence[Capture], new: Sequence[Capture]) -> tuple[float, float] | None:
    """Between which ratios new / base of the mean unit lies; None where nothing tells the noise.

    A first step that was not timed counts for no mean: it warms up, or its beginning is not known well. That a side was slow it may
    witness all the same: so where steps are few, a bound that takes a side to be slow may count it there, and the tighter one holds.
    """
    if source(base, new) is None:
        return None
    numbers, single = _numbers(_times(base), _times(new)), _apart(base, new)
    alone = [single if number == 1 else [] for number in numbers]
    before, after = _deviation(base, [], alone[0], ONE), _deviation(new, [], alone[1], OTHER)
    slow_before = _deviation(base, _first(base), alone[0], ONE)
    slow_after = _deviation(new, _first(new), alone[1], OTHER)
    low = max(float(np.quantile(one - before, LOW)) for one in (after, slow_after))
    high = min(float(np.quantile(after - one, HIGH)) for one in (before, slow_before))
    ratio, wider = _mean(new) / _mean(base), student(numbers)
    return ratio * float(np.exp(min(low * wider, 0.0))), ratio * float(np.exp(max(high * wider, 0.0)))


def difference_interval(base: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Between which ns new - base of a mean lies; samples by capture. None where there is a single value on each side."""
    if max(sum(map(len, base)), sum(map(len, new))) < 2:
        return None
    numbers = _numbers(base, new)
    before, after = (
        (_means(samples, side) - _middle(samples)) * _widening(number)
        for samples, side, number in zip((base, new), (ONE, OTHER), numbers, strict=True)
    )
    change, wider = _middle(new) - _middle(base), student(numbers)
    low, high = (float(np.quantile(after - before, end)) * wider for end in (LOW, HIGH))
    return change + low, change + high


def student(numbers: Sequence[int]) -> float:
    """By what an interval must be wider than that of a normal distribution whose spread is known, where it comes from so many values on
    each side: the quantile of Student's t (Abramowitz and Stegun, 26.7.5), as if no side had more than the one with fewer."""
    fewer = min((number for number in numbers if number > 1), default=2)
    freedom = max(sum(min(number, fewer) - 1 for number in numbers), 1)
    z, v = NORMAL, 4 * freedom
    powers = (
        z,
        (z**3 + z) / v,
        (5 * z**5 + 16 * z**3 + 3 * z) / (6 * v**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (6 * v**3),
    )
    return sum(powers) / NORMAL


def _times(captures: Sequence[Capture]) -> list[list[int]]:
    return [capture.unit.time.samples_ns for capture in captures if capture.unit]


def _first(captures: Sequence[Capture]) -> list[int]:
    """The first unit of a single capture with few others; else nothing."""
    units = [capture.unit for capture in captures if capture.unit]
    return [unit.first_ns for unit in units if unit.first_ns and unit.count < FEW and len(units) == 1]


def _mean(captures: Sequence[Capture]) -> float:
    means = [capture.unit.time.mean_ns for capture in captures if capture.unit]
    return max(sum(means) / len(means), 1.0)


def _numbers(base: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> list[int]:
    """How many values each side's noise is measured from: captures where there are several, else units."""
    several = max(len(base), len(new)) > 1
    return [len(samples) if several else len(samples[0]) for samples in (base, new)]


def _apart(base: Sequence[Capture], new: Sequence[Capture]) -> list[float]:
    """How far single captures, or units of single captures, lie from the mean of their side, as logarithms. A side with only one
    differs from run to run as those of the other side do."""
    found: list[float] = []
    for samples in (_times(base), _times(new)):
        several = max(len(base), len(new)) > 1
        values = np.array([sum(own) / len(own) for own in samples] if several else samples[0], float)
        if len(values) > 1:
            apart = np.log(np.maximum(values, 1.0) / max(float(values.mean()), 1.0))
            found += (apart * _widening(len(values))).tolist()
    return found


def _deviation(captures: Sequence[Capture], first: list[int], alone: list[float], side: tuple[str, ...]) -> Floats:
    """Logarithms of resampled means, which count `first` too, over the mean; `alone` as of `_apart` where it is the only value."""
    samples = _times(captures)
    samples[0] = samples[0] + first
    middle = max(_middle(samples), 1.0)
    wider = _widening(len(samples) if len(samples) > 1 else len(samples[0]))
    deviation: Floats = np.log(np.maximum(_means(samples, side), 1.0) / middle) * wider
    if alone:
        deviation += np.concatenate([draw.choice(np.array(alone), RESAMPLES) for draw in _generators(side, 1)])
    return deviation + float(np.log(middle / _mean(captures)))


def _middle(samples: Sequence[Sequence[int]]) -> float:
    return sum(sum(own) / max(len(own), 1) for own in samples) / len(samples)


def _widening(count: int) -> float:
    """By what resampled means must be spread to vary as means of so many values do."""
    return float(np.sqrt(count / max(count - 1, 1)))


def _generators(side: tuple[str, ...], what: int) -> list[np.random.Generator]:
    return [np.random.default_rng((SEED, what, ONE.index(each))) for each in side]


def _means(samples: Sequence[Sequence[int]], side: tuple[str, ...]) -> Floats:
    """RESAMPLES means of each draw: of captures drawn with replacement and, within each, of its units drawn likewise."""
    return np.concatenate([_drawn_means(samples, generator) for generator in _generators(side, 0)])


def _drawn_means(samples: Sequence[Sequence[int]], generator: np.random.Generator) -> Floats:
    of_captures = np.stack([_drawn(np.array(own, float), generator) for own in samples])
    chosen = generator.integers(len(samples), size=(len(samples), RESAMPLES))
    means: Floats = of_captures[chosen, np.arange(RESAMPLES)].mean(axis=0)
    return means


def _drawn(values: Floats, generator: np.random.Generator) -> Floats:
    count = len(values)
    if not count:
        return np.zeros(RESAMPLES)
    means: Floats = values[generator.integers(count, size=(count, RESAMPLES))].mean(axis=0)
    return means
