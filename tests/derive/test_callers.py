"""Which range of a thread is around a time, found by going up from the last one that began."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer import intervals
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.model.schema import EVENT_TABLES

SIZE = 30
spans = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE), st.booleans()), max_size=12)


def host_ranges(threads: list[list[tuple[int, int, bool]]]) -> pa.Table:
    """Ranges of some threads, by start and end, as a store has them."""
    schema = EVENT_TABLES["host_ranges"].schema
    columns: dict[str, list[object]] = {name: [] for name in schema.names}
    for thread, ranges in enumerate(threads):
        before = len(columns["rank"])
        start, end = (np.array([one[at] for one in ranges], np.int64) for at in (0, 1))
        depth, parent = intervals.nesting(start, end)
        for at in range(len(ranges)):
            known = {
                "rank": 0,
                "process": 1,
                "thread": thread,
                "start_ns": start[at],
                "end_ns": end[at],
                "name": "range",
            }
            around = None if parent[at] < 0 else before + parent[at]
            known |= {"category": "annotation", "depth": depth[at], "parent": around, "open": False}
            for name, values in columns.items():
                values.append(known.get(name))
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


@given(st.lists(spans, min_size=1, max_size=2))
def test_it_is_the_last_of_those_that_are_open(threads):
    """Also where ranges cross: the one around the last that began may be over when that is not."""
    ranges = [sorted((min(a, b), -max(a, b), wanted) for a, b, wanted in thread) for thread in threads]
    ordered = [[(start, -end, wanted) for start, end, wanted in thread] for thread in ranges]
    every = [(at, *one) for at, thread in enumerate(ordered) for one in thread]
    callers = Callers(host_ranges(ordered))
    wanted = np.array([one[3] for one in every], bool)
    time = np.tile(np.arange(-1, SIZE + 2), len(threads))
    thread = np.repeat(np.arange(len(threads)), SIZE + 3)
    where = np.zeros(len(time), np.int64), np.ones(len(time), np.int64), thread, time

    def expected(some) -> list[int]:
        return [
            max(
                (
                    row
                    for row, (own, start, end, _) in enumerate(every)
                    if own == of and start <= at < end and some[row]
                ),
                default=-1,
            )
            for of, at in zip(thread.tolist(), time.tolist(), strict=True)
        ]

    assert callers.around(*where).tolist() == expected(np.ones(len(every), bool))
    assert callers.around(*where, wanted=wanted).tolist() == expected(wanted)


def test_a_thread_without_ranges_has_none():
    callers = Callers(host_ranges([[(0, 10, True)]]))
    nowhere = np.array([0]), np.array([1]), np.array([7]), np.array([5])
    assert callers.around(*nowhere).tolist() == [-1]
