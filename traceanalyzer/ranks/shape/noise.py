"""How long ranks wait for one another by the noise of their own step times alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST = 3
"""Steps of a rank from which its noise is told."""
MOST_VALUES = 4096
"""The largest values, and as many at equal shares of the others, at which distributions are compared where there are many more."""


def expected_wait(own: Floats) -> int | None:
    """ns that all ranks wait in all steps, were each step of each rank as long as any other of its own, and ranks met once a step.

    `own` has a row a rank and a column a step: what the step takes without waiting, NaN where not recorded whole. What a rank takes
    usually is not noise: of each row the median is taken off. With F_r the distribution of what is left, ranks wait
    n (E max - mean), E max = least + the integral of 1 - prod F_r over all values. None for less than two ranks with three steps each.
    """
    rows = own[(~np.isnan(own)).sum(axis=1) >= FEWEST]
    if len(rows) < 2:
        return None
    left = rows - np.nanmedian(rows, axis=1, keepdims=True)
    values = np.unique(left[~np.isnan(left)])
    if len(values) > 2 * MOST_VALUES:
        few = np.linspace(0, len(values) - MOST_VALUES, MOST_VALUES).astype(np.int64)
        values = np.unique(np.concatenate((values[few], values[-MOST_VALUES:])))
    log_all = np.zeros(len(values))
    with np.errstate(divide="ignore"):
        for row in left:
            known = np.sort(row[~np.isnan(row)])
            log_all += np.log(np.searchsorted(known, values, side="right") / len(known))
    last = values[0] + float(((1 - np.exp(log_all[:-1])) * np.diff(values)).sum())
    meetings = (~np.isnan(rows)).sum(axis=1)
    return round(float(((last - np.nanmean(left, axis=1)) * meetings).sum()))
