"""What one rank lacks, long waits, missing ranks and recordings that begin apart: what is matched all the same, and what is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ranks.test_matching import US, durations, rightly
from tests.support.made_up_jobs import BASE_NS, Job, inputs_of, kernels_of, made_up
from traceanalyzer.columns.frames import NULL
from traceanalyzer.ranks.collectives.collectives import match
from traceanalyzer.ranks.collectives.matches import join_ranks
from traceanalyzer.ranks.collectives.recorded import matched_share


@settings(max_examples=40, deadline=None)
@given(
    ranks=st.sampled_from([2, 4, 8]),
    collectives=st.integers(40, 300),
    seed=st.integers(0, 10_000),
    clock_us=st.sampled_from([0.0, 20.0, 1_000.0]),
    place=st.floats(0, 1),
)
def test_a_dropped_record_leaves_all_others_matched(ranks, collectives, seed, clock_us, place):
    job = made_up(ranks, collectives, seed, clock_us=clock_us)
    dropped = int(place * (job.kernels.num_rows - 1))
    kept = np.arange(job.kernels.num_rows) != dropped
    found = match(job.kernels.filter(pa.array(kept)), job.inputs)
    assert ((found.instance != NULL) == (job.collective[kept] != job.collective[dropped])).all()
    left = Job(job.kernels.filter(pa.array(kept)), job.inputs, job.collective[kept], job.early[kept])
    assert rightly(left, found) == 1.0


@pytest.mark.parametrize("extra", [0, 2])
def test_a_call_too_many_on_one_rank_shifts_nothing(extra):
    job = made_up(3, 200, clock_us=500.0)
    rank, start = job.kernels["rank"].to_numpy(), job.kernels["start_ns"].to_numpy()
    (at,) = np.flatnonzero(rank == extra)[[90]]
    row = job.kernels.slice(at, 1)
    for name, time in (("start_ns", start[at] - 300 * US), ("end_ns", start[at] - 250 * US)):
        row = row.set_column(row.schema.get_field_index(name), name, pa.array([time]))
    kernels = pa.concat_tables([job.kernels.slice(0, at), row, job.kernels.slice(at)]).combine_chunks()
    found = match(kernels, job.inputs)
    assert (np.flatnonzero(found.instance == NULL) == [at]).all()
    assert not found.outside.any()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), shift_ns=st.integers(-100_000_000, 100_000_000), rank=st.integers(0, 3))
def test_a_clock_that_is_set_differently_changes_no_match(seed, shift_ns, rank):
    job = made_up(4, 60, seed, clock_us=100.0, cut=4)
    inputs = [replace(one, clock_base_ns=BASE_NS + shift_ns * (one.ordinal == rank)) for one in job.inputs]
    one, other = match(job.kernels, job.inputs), match(job.kernels, inputs)
    if abs(shift_ns) < 500 * US:
        assert (one.instance == other.instance).all()
    # What is matched is matched rightly, however far apart clocks are.
    assert not (other.instance != NULL).any() or rightly(job, other) >= 0.99


def barriers(count: int, *, reductions: int = 0, clock_us: float = 0.0, seed: int = 0) -> Job:
    """Four ranks at barriers, to which rank 0 comes 190 ms late; the others leave them 0.1 to 0.3 ms after it."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, float, float, str, int]] = []
    now = 0.0
    for n in range(count):
        for _ in range(reductions):
            now += 1_000 + 200 * random.random()
            rows += [(r, now - 50 * random.random(), now + 60 + random.random(), "all-reduce", -1) for r in range(4)]
            now += 60
        begun = now + 1_000 + 100 * random.random(4)
        begun[0] = now + 190_000 + 3_000 * random.random()
        end = begun[0] + 15 + np.append(0, random.uniform(100, 300, 3))
        rows += [(r, begun[r], end[r], "barrier", n) for r in range(4)]
        now = begun[0] + 600
    rows.sort()
    rank, start, ends, kind, number = zip(*rows, strict=True)
    clock = (clock_us * (2 * random.random(4) - 1))[list(rank)]
    columns = {
        "rank": np.array(rank),
        "start_ns": np.rint(US * (np.array(start) + clock)).astype(np.int64),
        "end_ns": np.rint(US * (np.array(ends) + clock)).astype(np.int64),
        "kind": pa.array(kind).dictionary_encode(),
        "group": pa.array(["0"] * len(rank)).dictionary_encode(),
        "group_ranks": pa.array(["[0, 1, 2, 3]"] * len(rank)).dictionary_encode(),
        "group_size": np.full(len(rank), 4),
    }
    return Job(kernels_of(columns), inputs_of(4), np.array(number), np.zeros(len(rank), np.int64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("count", "reductions", "clock_us"), [(4, 0, 0.0), (2, 0, 0.0), (4, 3, 0.0), (6, 1, 0.0), (4, 0, 1_000.0)]
)
def test_long_waits_whose_ends_lie_apart(count, reductions, clock_us, seed):
    job = barriers(count, reductions=reductions, clock_us=clock_us, seed=seed)
    found = match(job.kernels, job.inputs)
    rank = job.kernels["rank"].to_numpy()
    assert (found.instance != NULL).all()
    late = np.array(job.kernels["kind"].to_pylist()) == "barrier"
    assert set(rank[found.late[late]]) == {0}


@pytest.mark.parametrize("short", [0, 2])
@pytest.mark.parametrize("reductions", [0, 3])
def test_order_from_the_end_is_not_believed_where_clocks_deny_it(short, reductions):
    job = barriers(4, reductions=reductions)
    rank = job.kernels["rank"].to_numpy()
    last = (job.collective == 3) & (rank == short)
    kernels, number = job.kernels.filter(pa.array(~last)), job.collective[~last]
    found = match(kernels, job.inputs)
    known = found.instance != NULL
    assert (known == (number != 3)).all()
    assert all(len(set(number[found.instance == one])) == 1 for one in set(found.instance[known & (number >= 0)]))


def test_few_barriers_on_clocks_that_nothing_compares_are_left_alone():
    job = barriers(4, clock_us=90_000.0, seed=2)
    told = join_ranks(job.kernels, job.inputs)
    assert told.matches["wait"].null_count == told.matches.num_rows
    (row,) = [row for row in told.health.to_pylist() if row["rank"] is None]
    assert (row["code"], row["severity"]) == ("TRC005", "medium")
    assert "could be matched between them, so which rank waited for which is not told" in row["message"]


def test_a_missing_rank_leaves_a_lower_bound():
    job = made_up(4, 40, group=2)
    rank = job.kernels["rank"].to_numpy()
    whole = join_ranks(job.kernels, job.inputs).matches
    here = rank != 3
    found = join_ranks(job.kernels.filter(pa.array(here)), job.inputs[:3]).matches
    of_all = np.array(job.kernels["group"].to_pylist())[here] == "0"
    pairs = np.array(job.kernels["group_ranks"].to_pylist())[here] == "[0, 1]"
    missing = found["missing"].to_pylist()
    assert [missing[n] for n in np.flatnonzero(of_all)] == [1] * of_all.sum()
    assert {missing[n] for n in np.flatnonzero(pairs)} == {0}
    alone = ~of_all & ~pairs
    assert set(found["outside"].filter(pa.array(alone)).to_pylist()) == {True}
    assert found["instance"].filter(pa.array(alone)).null_count == alone.sum()
    bound, true = (t["wait"].to_numpy(zero_copy_only=False) for t in (found, whole.filter(pa.array(here))))
    told = of_all & ~np.isnan(bound) & ~np.isnan(true)
    assert told.sum() > 50 and (bound[told] <= true[told]).all()
    assert set(found["late_rank"].filter(pa.array(of_all)).drop_null().to_pylist()) <= {0, 1, 2}


def test_what_lies_outside_a_recording_is_not_held_against_the_matches():
    job = made_up(3, 80)
    rank, number = job.kernels["rank"].to_numpy(), job.collective // 3
    late = (rank == 1) & (number < 30)
    kernels, number = job.kernels.filter(pa.array(~late)), number[~late]
    found = match(kernels, job.inputs)
    assert (found.outside == (number < 30)).all()
    assert ((found.instance != NULL) == (number >= 30)).all()
    # But a rank that was recorded all the time, and lacks them, does not match.
    begun = {"rank": [1], "device": [0], "start_ns": [0], "end_ns": [int(kernels["end_ns"].to_numpy().max())]}
    found = match(kernels, job.inputs, pa.table(begun))
    assert (found.outside == (number == 29)).all()
    assert matched_share(durations(kernels), found.instance != NULL, found.outside) < 0.8


def test_below_half_matched_nobody_waits():
    job = made_up(2, 60)
    rank = job.kernels["rank"].to_numpy()
    kind = pa.array(np.where(np.arange(len(rank)) % 60 < 20, "all-reduce", "all-gather")).dictionary_encode()
    size = pa.array(np.where((rank == 1) & (np.arange(len(rank)) % 60 >= 20), 1 << 10, 1 << 20))
    kernels = job.kernels
    for name, column in (("kind", kind), ("bytes", size)):
        kernels = kernels.set_column(kernels.schema.get_field_index(name), name, column)
    told = join_ranks(kernels, job.inputs)
    assert told.matches["instance"].null_count == 80
    assert told.matches["wait"].null_count == told.matches["late_rank"].null_count == 120
    assert [(row["rank"], row["code"]) for row in told.health.to_pylist()] == [(None, "TRC005")]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), order=st.permutations([0, 1, 2, 3, 4]))
def test_any_order_of_files_gives_the_same(seed, order):
    job = made_up(5, 50, seed, clock_us=300.0, cut=4)
    table, there = job.kernels, np.arange(job.kernels.num_rows) % 97 != 13
    table = table.filter(pa.array(there))
    rank = table["rank"].to_numpy()
    rows = np.concatenate([np.flatnonzero(rank == one) for one in order])
    one = join_ranks(table, job.inputs).matches.take(pa.array(rows))
    other = join_ranks(table.take(pa.array(rows)), [job.inputs[at] for at in order]).matches
    same = [name for name in one.schema.names if name != "instance"]
    assert one.select(same).equals(other.select(same))
    pairs = set(zip(one["instance"].to_pylist(), other["instance"].to_pylist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
