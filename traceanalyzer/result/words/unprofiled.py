"""What times are without the profiler, in words that text and page share."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.result.document import Saving, Steps

ALIKE = 0.03
"""A difference within this share is none."""
Duration = Callable[[int], str]


def steps_without_profiler(steps: Steps, duration: Duration) -> str | None:
    """For example "about 5.1 ms (4.0 ms to 6.2 ms) without the profiler"; None where it is as with it or cannot be told."""
    about, least, most = steps.unprofiled_step_ns, steps.unprofiled_least_ns, steps.unprofiled_most_ns
    if about is None or least is None or most is None or about >= (1 - ALIKE) * steps.median_ns:
        return None
    return f"about {duration(about)} ({duration(least)} to {duration(most)}) without the profiler"


def saving_without_profiler(saving: Saving, duration: Duration) -> str | None:
    """For example "about 3.1 ms instead of 5.1 ms without the profiler"; None where it is as with it or cannot be told, as of what may
    be anything in a range."""
    now, then = saving.unprofiled_step_ns, saving.predicted_unprofiled_step_ns
    if (
        saving.predicted_speedup_range
        or now is None
        or then is None
        or saving.step_ns is None
        or now >= (1 - ALIKE) * saving.step_ns
    ):
        return None
    return f"about {duration(then)} instead of {duration(now)} without the profiler"
