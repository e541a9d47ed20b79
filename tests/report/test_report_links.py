"""Numbers of launch calls: each pair of `launches` has one of its own, and nothing else has any."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from report_sample import rows

from traceanalyzer.model.launch_links import launch_links

# Rank, thread, start and name of calls; times and threads so few that they meet.
CALLS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 9), st.sampled_from("ab")),
    min_size=1,
    max_size=20,
    unique=True,
)


@given(CALLS, st.data())
def test_each_operation_has_the_number_of_its_call(calls: list[tuple[int, int, int, str]], data: st.DataObject) -> None:
    rank, thread, start, name = map(list, zip(*calls, strict=True))
    launched = data.draw(st.lists(st.integers(0, len(calls) - 1), min_size=1, max_size=30))
    ranks = sorted(rank[call] for call in launched)
    launched.sort(
        key=lambda call: rank[call]
    )  # operations of a rank lie together, as parts are joined one after another
    begin = [100 * i for i in range(len(launched))]
    first = {r: ranks.index(r) for r in ranks}
    api_calls = rows("api_calls", rank=rank, process=1, thread=thread, start_ns=start, end_ns=start, name=name)
    gpu_ops = rows("gpu_ops", rank=ranks, start_ns=begin, end_ns=[b + 7 for b in begin])
    known = data.draw(st.sets(st.sampled_from(range(len(launched)))))
    at = data.draw(st.permutations(sorted(known)))
    launches = None
    if at:
        of = [launched[i] for i in at]
        launches = rows(
            "launches",
            rank=[rank[call] for call in of],
            process=1,
            thread=[thread[call] for call in of],
            start_ns=[start[call] for call in of],
            end_ns=[start[call] for call in of],
            api_name=[name[call] for call in of],
            op=[i - first[ranks[i]] for i in at],
            op_start_ns=[begin[i] for i in at],
            op_end_ns=[begin[i] + 7 for i in at],
        )
    links = launch_links(launches, api_calls, gpu_ops)
    for i, call in enumerate(launched):
        assert links.ops[i] == (links.calls[call] if i in known else 0)
    launching = sorted({launched[i] for i in known})
    assert links.calls[launching].tolist() == list(range(1, len(launching) + 1))
    assert np.count_nonzero(links.calls) == len(launching)


def test_a_launch_of_an_operation_that_is_not_there_has_no_number() -> None:
    api_calls = rows("api_calls", rank=0, process=1, thread=1, start_ns=[5], end_ns=6, name="a")
    gpu_ops = rows("gpu_ops", rank=[0], start_ns=10, end_ns=20)
    same = {"rank": 0, "process": 1, "thread": 1, "start_ns": 5, "end_ns": 6, "api_name": "a"}
    launches = rows("launches", op=[0, 3, None], op_start_ns=[11, 10, 10], op_end_ns=20, **same)
    links = launch_links(launches, api_calls, gpu_ops)
    assert (links.calls.tolist(), links.ops.tolist()) == ([0], [0])
