from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.derive.ledger.tables import LEDGER_INTERVALS
from traceanalyzer.engine.claims import CLAIMS_SCHEMA, ClaimBook, spans_by_gpu
from traceanalyzer.engine.tiles import Asked, Intervals
from traceanalyzer.intervals import Spans, coverage, intersect, join, subtract, total, union

LINES = ("compute", "exposed_memcpy", "idle.input", "idle.host_work")
WINDOW = 100


def spans(*pairs: tuple[int, int]) -> Spans:
    return union(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def asked(*pairs: tuple[int, int]) -> list[Asked]:
    """The intervals in two blocks."""
    starts, ends = spans(*pairs)
    return [Intervals(starts[some], ends[some]) for some in (slice(None, 2), slice(2, None))]


def book(rows: list[tuple[int, int, str, int, int]]) -> ClaimBook:
    names = LEDGER_INTERVALS.schema.names
    data = [dict(zip(names, row, strict=True)) for row in rows]
    return ClaimBook(pa.Table.from_pylist(data, schema=LEDGER_INTERVALS.schema))


def test_a_nanosecond_is_claimed_once_and_only_on_the_named_lines() -> None:
    claims = book([(0, 0, "idle.input", 0, 60), (0, 0, "compute", 60, 100)])
    assert claims.claim("A", "input", 0, 0, asked((10, 80)), ["idle.input"]) == 50
    assert claims.unclaimed(0, 0, asked((0, 100)), ["idle.input", "compute"]) == 50
    assert claims.claim("B", "host", 0, 0, asked((0, 100)), ["idle.input"]) == 10
    assert claims.claim("C", "host", 0, 0, asked((0, 100)), ["idle.input"]) == 0
    assert claims.who(0, 0, asked((0, 20)), ["idle.input"]) == {"A": 10, "B": 10}


def test_claims_keep_to_their_gpu() -> None:
    claims = book([(0, 0, "idle.input", 0, 60), (1, 0, "idle.input", 0, 60)])
    assert claims.claim("A", "input", 0, 0, asked((0, 60)), ["idle.input"]) == 60
    assert claims.unclaimed(1, 0, asked((0, 60)), ["idle.input"]) == 60
    assert claims.claim("A", "input", 2, 0, asked((0, 60)), ["idle.input"]) == 0
    assert claims.who(1, 0, asked((0, 60)), ["idle.input"]) == {}


def test_the_table_of_claims() -> None:
    claims = book([(0, 3, "idle.input", 0, 60)])
    claims.claim("A", "input", 0, 3, asked((0, 10), (20, 30)), ["idle.input"])
    table = claims.table()
    assert table.schema == CLAIMS_SCHEMA
    assert table.to_pylist()[1] == {
        "rule": "A",
        "category": "input",
        "rank": 0,
        "device": 3,
        "line": "idle.input",
        "start_ns": 20,
        "end_ns": 30,
    }
    assert book([]).table().schema == CLAIMS_SCHEMA


def test_a_snapshot_takes_back_what_came_after() -> None:
    claims = book([(0, 0, "idle.input", 0, 60)])
    claims.claim("A", "input", 0, 0, asked((0, 10)), ["idle.input"])
    restore = claims.snapshot()
    claims.claim("B", "input", 0, 0, asked((0, 60)), ["idle.input"])
    restore()
    assert claims.unclaimed(0, 0, asked((0, 60)), ["idle.input"]) == 50
    assert [claim.rule for claim in claims.claims[0, 0]] == ["A"]


def test_rows_without_a_gpu_have_no_spans() -> None:
    rows = pa.table({"rank": [0, None], "device": [0, None], "start_ns": [1, 2], "end_ns": [3, 9]})
    assert {gpu: total(s) for gpu, s in spans_by_gpu(rows).items()} == {(0, 0): 2}
    claims = book([(0, 0, "idle.input", 0, 60)])
    assert claims.unclaimed_rows(rows, ["idle.input"]).to_pylist() == [2, 0]


INTERVALS = st.lists(st.tuples(st.integers(0, WINDOW), st.integers(0, WINDOW)).map(sorted), max_size=6)


@given(
    cuts=st.lists(st.integers(1, WINDOW - 1), unique=True, max_size=8).map(sorted),
    lines=st.lists(st.sampled_from(LINES), min_size=9, max_size=9),
    asks=st.lists(st.tuples(INTERVALS, st.sets(st.sampled_from(LINES), min_size=1), st.booleans()), max_size=8),
)
def test_claims_of_tiles_are_those_of_time(
    cuts: list[int], lines: list[str], asks: list[tuple[list[list[int]], set[str], bool]]
) -> None:
    """Against sets of free time by line; some claims are taken back again."""
    edges = [0, *cuts, WINDOW]
    tiles = [(0, 0, line, a, b) for line, a, b in zip(lines, edges, edges[1:], strict=False)]
    claims = book(tiles)
    free = {line: spans(*((a, b) for *_, own, a, b in tiles if own == line)) for line in LINES}
    made: list[tuple[str, str, Spans]] = []
    for number, (pairs, wanted, kept) in enumerate(asks):
        # One that begins where another of the same ask ends makes one of both, as a claim has it.
        wish, of = spans(*((a, b) for a, b in pairs)), sorted(wanted)
        starts, ends = np.array(pairs, np.int64).reshape(-1, 2).T
        left = join(*(free[line] for line in of))
        assert claims.unclaimed_of(0, 0, Intervals(starts, ends), of).tolist() == coverage(starts, ends, left).tolist()
        restore = claims.snapshot()
        got = claims.claim(f"R{number}", "host", 0, 0, asked(*((a, b) for a, b in pairs)), of)
        own = [(f"R{number}", line, intersect(free[line], wish)) for line in of]
        assert got == sum(total(found) for *_, found in own)
        if not kept:
            restore()
            continue
        made += [one for one in own if len(one[2][0])]
        free |= {line: subtract(free[line], wish) for line in of}
    found = [(one.rule, one.line, claims.spans(one)) for one in claims.all()]
    assert repr(found) == repr(made)
    times = np.arange(-2, WINDOW + 2)
    holders = claims.idle_holders(0, 0, times).tolist()
    for at, (_, line, own) in enumerate(made):
        inside = coverage(times, times + 1, own) > 0
        assert {holders[t] == at for t in np.flatnonzero(inside)} <= {line.startswith("idle.")}
    everything = asked((0, WINDOW))
    for line in LINES:
        held = {rule: total(own) for rule, on, own in made if on == line}
        assert claims.who(0, 0, everything, [line]) == dict(sorted(held.items(), key=lambda one: (-one[1], one[0])))


@given(
    cuts=st.lists(st.integers(1, WINDOW - 1), unique=True, max_size=8).map(sorted),
    lines=st.lists(st.sampled_from(LINES), min_size=9, max_size=9),
    asks=st.lists(st.tuples(INTERVALS, st.sets(st.sampled_from(LINES), min_size=1)), max_size=8),
)
def test_no_two_claims_overlap_and_their_sum_is_within_the_window(
    cuts: list[int], lines: list[str], asks: list[tuple[list[list[int]], set[str]]]
) -> None:
    edges = [0, *cuts, WINDOW]
    claims = book([(0, 0, line, a, b) for line, a, b in zip(lines, edges, edges[1:], strict=False)])
    taken = 0
    for number, (pairs, wanted) in enumerate(asks):
        wish = asked(*((a, b) for a, b in pairs))
        free = claims.unclaimed(0, 0, wish, sorted(wanted))
        got = claims.claim(f"R{number}", "host", 0, 0, wish, sorted(wanted))
        assert got == free
        assert claims.unclaimed(0, 0, wish, sorted(wanted)) == 0
        taken += got
    made = claims.claims.get((0, 0), [])
    assert taken == sum(total(claims.spans(claim)) for claim in made) <= WINDOW
    for at, claim in enumerate(made):
        assert all(total(intersect(claims.spans(claim), claims.spans(other))) == 0 for other in made[at + 1 :])
