"""The place that causes most of what is claimed, against one piece after another."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.derive.replay import idle_places
from traceanalyzer.derive.replay.idle_places import A_PHASE, ALL_BUT, NOBODYS, IdlePlaces
from traceanalyzer.intervals import union
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.model.replayed import MOSTLY
from traceanalyzer.vocabulary.lines import HOST_UNTRACED, HOST_WORK, INPUT, LAUNCH_LATENCY, TURNAROUND

CAUSES = [line.cause for line in (HOST_WORK, HOST_UNTRACED, INPUT, LAUNCH_LATENCY, TURNAROUND)]
US = 1_000
NAME = st.sampled_from((None, "a", "b", "c"))
PIECES = st.lists(
    st.fixed_dictionaries(
        {
            "pause": st.integers(0, 2),
            "length": st.integers(1, 9),
            "share": st.sampled_from((0.3, 0.5, 0.8, 1.0)),
            "gap": st.sampled_from((50, 200)),
            "cause": st.sampled_from(CAUSES),
            "operator": st.sampled_from((None, None, "aten::add")),
            "source": NAME,
            "annotation": NAME,
            "place": NAME,
        }
    ),
    min_size=1,
    max_size=25,
)


def table(pieces: list[dict]) -> pa.Table:
    columns = {name: [one[name] for one in pieces] for name in ("cause", "operator", "source", "annotation", "place")}
    names = {name: pa.array(values, pa.string()).dictionary_encode() for name, values in columns.items()}
    numbers = {name: pa.array([one[name] for one in pieces], pa.int64()) for name in ("start_ns", "end_ns")}
    numbers["place_duration"] = pa.array([one["inner"] for one in pieces], pa.int64())
    numbers["gap_duration"] = pa.array([one["gap"] * US for one in pieces], pa.int64())
    ids = {name: pa.array([0] * len(pieces), pa.int32()) for name in ("rank", "device")}
    return pa.table({**ids, **numbers, **names})


def plain(pieces: list[dict], low: int, high: int) -> tuple[str, int] | None:
    """The place and its time, in the words of their definition; `low` to `high` is claimed."""
    launched, whole, sums, inner = Counter(), Counter(), Counter(), {}
    for one in pieces:
        place = None if one["operator"] else one["place"]
        one["nearest"] = one["source"] or one["annotation"] or place
        work = one["cause"] == HOST_WORK.cause
        one["launching"] = work and (one["operator"] is not None or one["gap"] <= 100)
        one["own"] = not one["launching"] and one["cause"] not in NOBODYS
        long = one["end_ns"] - one["start_ns"]
        whole[one["nearest"]] += long
        launched[one["nearest"]] += long if one["launching"] or one["cause"] == LAUNCH_LATENCY.cause else 0
    for one in pieces:
        name, long = one["nearest"], one["end_ns"] - one["start_ns"]
        if name and one["own"] and launched[name] < A_PHASE * whole[name] and one["inner"] >= MOSTLY * long:
            ns = min(max(min(high, one["end_ns"]) - max(low, one["start_ns"]), 0), one["inner"])
            sums[name] += ns
            inner.setdefault(name, Counter())[one["place"]] += ns
    most = max(sums.values(), default=0)
    if not most or most < MOSTLY * (high - low):
        return None
    (name,) = [name for name, ns in sums.items() if ns == most][:1]
    if list(sums.values()).count(most) > 1:
        return "", most
    within = inner[name]
    one = max(within, key=lambda place: within[place])
    return (one if one and within[one] >= ALL_BUT * most else name), most


@given(PIECES, st.tuples(st.integers(0, 200), st.integers(1, 100)))
def test_the_place_is_the_one_with_most_of_the_claim(drawn: list[dict], claim: tuple[int, int]) -> None:
    at, pieces = 0, []
    for one in drawn:
        at += one["pause"] * US
        end = at + one["length"] * US
        pieces.append({**one, "start_ns": at, "end_ns": end, "inner": int((end - at) * one["share"])})
        at = end
    low, high = claim[0] * US, (claim[0] + claim[1]) * US
    claimed = Claimed.of({HOST_WORK.name: union(np.array([low]), np.array([high]))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_places, "_BLOCK", 3)
        found = IdlePlaces(table(pieces)).of((0, 0), claimed)
    expected = plain(pieces, low, high)
    assert (found and found.ns) == (expected and expected[1])
    if found and expected and expected[0]:
        assert found.name == expected[0]
