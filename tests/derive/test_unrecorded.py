"""The host's time without what recording took, told in blocks, against the same made of all that is taken at once."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.derive.test_replay import random_timelines
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.replay import profiler_cost
from traceanalyzer.derive.replay.profiler_cost import ProfilerCost, Recorded
from traceanalyzer.derive.replay.replay import Change, Timeline
from traceanalyzer.derive.replay.unrecorded import unrecorded_hosts
from traceanalyzer.intervals import join
from traceanalyzer.model.schema import API_CALLS, HOST_RANGES
from traceanalyzer.model.trace import Input

THREADS = [(0, 0, 0), (0, 0, 1)]
EXTENTS = (1.0, 1.3, 0.4)
INPUT = Input("a.json", "", 0, "kineto", "PyTorch profiler", None, None, 0, None)


def recorded(*kinds: str) -> st.SearchStrategy[list[tuple[int, int, int, str]]]:
    """(thread, start, end, kind) by thread and start, in ns."""
    row = st.tuples(
        st.integers(0, 1), st.integers(-3, 300).map(lambda us: us * 500), st.integers(0, 20_000), st.sampled_from(kinds)
    )
    return st.lists(row, max_size=25).map(lambda rows: sorted((a, b, b + c, kind) for a, b, c, kind in rows))


def cost(ranges: list[tuple[int, int, int, str]], calls: list[tuple[int, int, int, str]]) -> ProfilerCost:
    tables = []
    for spec, rows, column in ((HOST_RANGES, ranges, "category"), (API_CALLS, calls, "class")):
        given_ = [
            dict(zip(("rank", "process", "thread"), THREADS[thread], strict=True))
            | {"start_ns": start, "end_ns": end, column: kind}
            for thread, start, end, kind in rows
        ]
        tables.append(pa.Table.from_pylist(given_, schema=spec.schema))
    return ProfilerCost(*tables, [INPUT])


@given(
    random_timelines(),
    recorded("operator", "python", "nvtx"),
    recorded("launch", "other"),
    st.integers(1, 2),
    st.lists(st.integers(0, 400_000), max_size=10),
)
def test_told_in_blocks(
    made: tuple[Timeline, Change],
    ranges: list[tuple[int, int, int, str]],
    calls: list[tuple[int, int, int, str]],
    threads: int,
    times: list[int],
) -> None:
    line, asked = made[0], np.array(times, np.int64)
    with patch.object(profiler_cost, "_BLOCK", 8):
        known = cost(ranges, calls).recorded(THREADS[:threads])
        if known is None:
            return
        found = unrecorded_hosts(line, known, EXTENTS, keep=True)
        others = unrecorded_hosts(line, known, EXTENTS, keep=False)
        whole = [known.taken(extent) for extent in EXTENTS]
    alone = [Recorded([lane]) for lane in known.lanes]
    if not any(kind == "operator" for *_, kind in ranges):
        # Only what operators cost is told by all threads together.
        for extent, spans in zip(EXTENTS, whole, strict=True):
            plain = join(*(one.taken(extent) for one in alone))
            assert [side.tolist() for side in spans] == [side.tolist() for side in plain]
    wanted = [line.host_time(spans) for spans in whole]
    called = np.append(line.call, np.zeros(len(line.wait_op), np.int64)) != NULL
    for one, other, plain in zip(found, others, wanted, strict=True):
        assert one.shown[called].tolist() == plain.shown[called].tolist() == other.shown[called].tolist()
    assert found[0].shows(asked).tolist() == wanted[0].shows(asked).tolist()
