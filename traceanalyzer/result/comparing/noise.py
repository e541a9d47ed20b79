"""How much a mean may differ by chance: resampled from the units that were timed and, where there are several, from the captures.

The percentile bootstrap (Efron, 1979) of the ratio of two means. Resampled means of n values vary less than they should by a factor
of sqrt((n - 1) / n), which for the few steps of a trace matters and is put back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceanalyzer.result.capture import Capture

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

    A first step counts for no mean, because its beginning is not known well. That a side was slow it may witness all the same: so where
    steps are few, a bound that takes a side to be slow may count it there, and the tighter one holds.
    """
    if source(base, new) is None and not (_first(base) and _first(new)):
        return None
    between = [*_between(base), *_between(new)]
    before, after = _deviation(base, [], between, ONE), _deviation(new, [], between, OTHER)
    slow_before = _deviation(base, _first(base), between, ONE)
    slow_after = _deviation(new, _first(new), between, OTHER)
    low = max(float(np.quantile(one - before, LOW)) for one in (after, slow_after))
    high = min(float(np.quantile(after - one, HIGH)) for one in (before, slow_before))
    ratio = _mean(new) / _mean(base)
    return ratio * float(np.exp(min(low, 0.0))), ratio * float(np.exp(max(high, 0.0)))


def difference_interval(base: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Between which ns new - base of a mean lies; samples by capture. None where there is a single value on each side."""
    if max(sum(map(len, base)), sum(map(len, new))) < 2:
        return None
    before, after = (
        _middle(samples) + (_means(samples, side) - _middle(samples)) * _widening(samples)
        for samples, side in ((base, ONE), (new, OTHER))
    )
    return float(np.quantile(after - before, LOW)), float(np.quantile(after - before, HIGH))


def _times(captures: Sequence[Capture]) -> list[list[int]]:
    return [capture.unit.time.samples_ns for capture in captures if capture.unit]


def _first(captures: Sequence[Capture]) -> list[int]:
    """The first unit of a single capture with few others; else nothing."""
    units = [capture.unit for capture in captures if capture.unit]
    return [unit.first_ns for unit in units if unit.first_ns and unit.count < FEW and len(units) == 1]


def _mean(captures: Sequence[Capture]) -> float:
    means = [capture.unit.time.mean_ns for capture in captures if capture.unit]
    return max(sum(means) / len(means), 1.0)


def _between(captures: Sequence[Capture]) -> list[float]:
    """How far each capture's mean lies from that of its side, as a logarithm; nothing for a single capture."""
    times = [capture.unit.time.mean_ns for capture in captures if capture.unit]
    return [float(np.log(max(time, 1) / _mean(captures))) for time in times] if len(times) > 1 else []


def _deviation(captures: Sequence[Capture], first: list[int], between: list[float], side: tuple[str, ...]) -> Floats:
    """Logarithms of resampled means, which count `first` too, over the mean."""
    samples = _times(captures)
    samples[0] = samples[0] + first
    middle = max(_middle(samples), 1.0)
    deviation: Floats = np.log(np.maximum(_means(samples, side), 1.0) / middle) * _widening(samples)
    if len(samples) == 1 and between:
        # A single capture differs from run to run as those of the other side do.
        deviation += np.concatenate([draw.choice(np.array(between), RESAMPLES) for draw in _generators(side, 1)])
    return deviation + float(np.log(middle / _mean(captures)))


def _middle(samples: Sequence[Sequence[int]]) -> float:
    return sum(sum(own) / max(len(own), 1) for own in samples) / len(samples)


def _widening(samples: Sequence[Sequence[int]]) -> float:
    """By what resampled means must be spread to vary as means of so many values do."""
    count = len(samples) if len(samples) > 1 else len(samples[0])
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
