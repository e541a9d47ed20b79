"""Whether a series rises: a robust slope, and how likely such a rise is by chance."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np
import numpy.typing as npt

from traceanalyzer.records import dataclass

Floats = npt.NDArray[np.float64]
MOST = 400
"""Values whose pairs are looked at; of more, medians of as many neighbours as need be."""
HALF_AS_STEEP = 0.25
"""A trend is steady that is this part as steep in either half of the series as in all of it: one jump and a slow start are not."""


@dataclass(frozen=True)
class Trend:
    """A line through a series: its value at the first and at the last place, within those of the series, and what speaks for it.

    `chance` is the probability of so clear an order where there is none; `steady` says that both halves rise.
    """

    slope: float
    first: float
    last: float
    chance: float
    steady: bool


def trend(values: Floats) -> Trend:
    """The trend of evenly spaced values, of which there is at least one.

    The slope is the median of those of all pairs (Theil, 1950; Sen, 1968), the chance that of the test by Mann (1945) and Kendall
    (1975) by its normal approximation with a correction for continuity and for ties.
    """
    parts = np.array_split(np.arange(len(values)), min(len(values), MOST))
    place = np.array([part.mean() for part in parts])
    series = np.array([np.median(values[part]) for part in parts], float)
    slope = _slope(place, series)
    start = float(np.median(series - slope * place))
    middle = (len(series) + 1) // 2
    halves = [_slope(place[part], series[part]) for part in (slice(middle), slice(middle, None))]
    low, high = float(values.min()), float(values.max())
    return Trend(
        slope,
        min(max(start, low), high),
        min(max(start + slope * (len(values) - 1), low), high),
        _chance(series),
        all(half * np.sign(slope) > HALF_AS_STEEP * abs(slope) for half in halves),
    )


def _slope(place: Floats, series: Floats) -> float:
    """The median slope of all pairs; 0 without one."""
    low, high = np.triu_indices(len(series), 1)
    return float(np.median((series[high] - series[low]) / (place[high] - place[low]))) if len(low) else 0.0


def _chance(series: Floats) -> float:
    n = len(series)
    low, high = np.triu_indices(n, 1)
    score = float(np.sign(series[high] - series[low]).sum())
    ties = np.unique(series, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0 or not score:
        return 1.0
    return erfc(max(abs(score) - 1, 0.0) / sqrt(2 * variance))
