"""Names of ranges that mark a whole step: they bound work and are none themselves."""

from __future__ import annotations

import re
from functools import lru_cache

_STEP = re.compile(
    r"""(?:profilerstep [#*]+ \d*
        | (?:(?:train|training|eval|evaluation|validation|inference|global|decode|generation|model)[ _.\-]?)?
          (?:step|iter|iteration) [ _.:=#\-]* \d* (?:\s*(?:/|of)\s*\d+)?
        | .+ \ step_num=\d+
        | (?:(?:train|training)[ _.\-]?)? batch [ _.:=#\-]* \d+ (?:\s*(?:/|of)\s*\d+)?
        )""",
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=1 << 16)
def is_step_name(name: str) -> bool:
    """Whether a range of this name marks a whole step, such as `step_0`, `ProfilerStep#5` or JAX's `train step_num=0`."""
    return _STEP.fullmatch(name.strip()) is not None


_COUNTED = re.compile(r"step[^a-z]*\d|step_num=\d", re.IGNORECASE)


def bounds_window(name: str) -> bool:
    """Whether a mark of this name is part of the run that is judged, GPU work or not: one that says "step" and counts.

    Such are `ProfilerStep#5`, `step_0` and JAX's `train step_num=0`; "iteration 3" and "batch 3" also number the rounds of a solver or
    of a loader.
    """
    return is_step_name(name) and _COUNTED.search(name) is not None
