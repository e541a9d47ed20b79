"""What the launching thread did during the parts of gaps, in names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.in_blocks import says_nothing
from traceanalyzer.derive.host.host import Host, Thread
from traceanalyzer.derive.host.ranges import Ranges, mostly
from traceanalyzer.derive.host.stack import QUESTIONS, PlaceOf
from traceanalyzer.intervals import EMPTY, Array

NAMES = ("range_name", "operator", "annotation", "frame", "source", "phase", "place", "call_name")
"""The columns of `gaps` that hold names of the host's list."""
NUMBERS = ("place_duration", "samples", "off_cpu")
"""Those that hold numbers, which belong to the names."""


def part_names(
    start: Array,
    end: Array,
    asked: Array,
    by_range: Sequence[tuple[npt.NDArray[np.bool_], Ranges]],
    launched: Array,
    thread: Thread,
    place_of: PlaceOf,
) -> tuple[dict[str, Array], Array]:
    """The columns of `NAMES`, and `place_duration` in ns, for some parts of gaps; the outermost operators at `launched`.

    The names are those that hold most of a part, or those around the time at which one `asked`, where that is not `NULL`. `by_range`
    says which parts are the time of certain ranges, whose names say more than those of what they happen to run.
    """
    low, high = np.where(asked == NULL, start, asked), np.where(asked == NULL, end, asked + 1)
    around = (np.concatenate((low, launched)), np.concatenate((high, launched + 1))) if len(thread.stack) else EMPTY
    stack = thread.stack.within(*around)
    found = stack.names(low, high, place_of)
    call_name, in_call = thread.calls.main_name(low, high)
    # An API call says something where no range does.
    range_name, place, length = found.range, call_name, in_call
    if not says_nothing(found.place):
        bare = found.place == NULL
        place, length = np.where(bare, call_name, found.place), np.where(bare, in_call, found.place_length)
    every = np.arange(len(low))
    for question, (some, ranges) in enumerate(by_range, QUESTIONS):
        if not len(ranges.start):
            continue
        name, inside = ranges.main_name(low, high)
        range_name = np.where(some, name, range_name)
        if ranges is not thread.input:
            told = place_of(name, found.source, found.annotation, question, every)
            place = np.where(some, told, place)
            length = np.where(some, inside, length)
    names = {
        "range_name": range_name,
        "operator": found.operator,
        "annotation": found.annotation,
        "frame": found.frame,
        "source": found.source,
        "phase": found.phase,
        "place": place,
        "call_name": mostly(call_name, in_call, high - low),
        "place_duration": np.where(asked == NULL, length, np.where(place == NULL, 0, end - start)),
    }
    return names, stack.outermost_operator(launched)


def by_samples(
    start: Array,
    end: Array,
    untraced: npt.NDArray[np.bool_],
    system: npt.NDArray[np.bool_],
    found: dict[str, Array],
    thread: Thread,
    host: Host,
) -> None:
    """Fill in what CPU samples and the scheduler tell of the parts of gaps on one thread: what ran in `untraced` ones, and who made the
    calls of the operating `system`, of which no range and no Python frame tells it. `found` has the columns `NAMES` and `NUMBERS`."""
    lane = thread.samples
    low, high = start[untraced], end[untraced]
    found["off_cpu"][untraced] = lane.off_cpu(low, high)
    if lane.sampled:
        told = lane.untraced(low, high)
        found["samples"][untraced] = told.count
        found["place"][untraced], found["source"][untraced] = told.place, told.own
        found["place_duration"][untraced] = told.place_length
    bare = system & (found["source"] == NULL) & (found["annotation"] == NULL)
    if lane.known and bare.any():
        own = lane.callers(start[bare], end[bare])
        none = np.full(len(own), NULL, np.int64)
        found["source"][bare] = own
        found["place"][bare] = np.where(
            own == NULL, found["place"][bare], host.place(found["range_name"][bare], own, none)
        )
