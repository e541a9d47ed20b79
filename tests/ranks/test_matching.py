"""Matching across ranks, on made-up jobs of which it is known who waited for whom, and how far clocks were apart."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.made_up_jobs import Job, inputs_of, kernels_of, made_up
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns.frames import NULL
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives.collectives import match
from traceanalyzer.ranks.collectives.instances import Matches
from traceanalyzer.ranks.collectives.likely_waits import likely_waits
from traceanalyzer.ranks.collectives.offsets import clock_health, clock_offsets
from traceanalyzer.ranks.groups.peers import peers

US = 1_000
TIE_NS = 5_000
"""Ranks that arrive within what ends of one collective differ by are all the last."""


def durations(kernels: pa.Table) -> np.ndarray:
    return kernels["end_ns"].to_numpy() - kernels["start_ns"].to_numpy()


def waits(kernels: pa.Table, found: Matches) -> np.ndarray:
    return np.where(found.instance != NULL, durations(kernels) - found.transfer, 0)


def rightly(job: Job, found: Matches) -> float:
    """The share of all waiting that is told of the right collective, and laid to a rank that was the last."""
    known = found.instance != NULL
    late = np.where(known, found.late, 0)
    right = (job.collective[late] == job.collective) & (job.early[late] <= TIE_NS)
    wait = waits(job.kernels, found)
    return float((wait * right).sum() / max(wait.sum(), 1))


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.sampled_from([2, 4, 8]),
    collectives=st.integers(24, 80),
    seed=st.integers(0, 10_000),
    group=st.sampled_from([None, 2]),
    work_us=st.sampled_from([150.0, 2_000.0]),
    clock_us=st.sampled_from([0.0, 20.0, 1_000.0]),
    cut=st.integers(0, 6),
)
def test_the_right_rank_is_named_or_none(ranks, collectives, seed, group, work_us, clock_us, cut):
    job = made_up(ranks, collectives, seed, group=group, work_us=work_us, clock_us=clock_us, cut=cut)
    found = match(job.kernels, job.inputs)
    assert not (found.instance != NULL).any() or rightly(job, found) >= 0.99


@pytest.mark.parametrize("seed", range(3))
def test_windows_and_clocks_apart_leave_nothing_out(seed):
    job = made_up(8, 120, seed, group=2, clock_us=1_000.0, cut=20)
    found = match(job.kernels, job.inputs)
    ranks = np.bincount(job.collective, minlength=job.collective.max() + 1)[job.collective]
    whole = ranks == job.kernels["group_size"].to_numpy()
    assert ((found.instance != NULL) == whole).all()
    assert rightly(job, found) == 1.0


def test_order_of_ranks_changes_nothing():
    job = made_up(6, 60, group=2, clock_us=500.0, cut=5)
    rank = job.kernels["rank"].to_numpy()
    mixed = np.argsort(np.array([3, 0, 5, 1, 4, 2])[rank], kind="stable")
    one, other = match(job.kernels, job.inputs), match(job.kernels.take(pa.array(mixed)), job.inputs[::-1])
    assert (waits(job.kernels, one)[mixed] == waits(job.kernels.take(pa.array(mixed)), other)).all()
    pairs = set(zip(one.instance[mixed].tolist(), other.instance.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert (one.late[mixed] == np.where(other.late == NULL, NULL, mixed[np.maximum(other.late, 0)])).all()


def test_many_ranks():
    job = made_up(64, 1_000, group=8, clock_us=1_000.0, cut=9)
    found = match(job.kernels, job.inputs)
    assert (found.instance != NULL).mean() > 0.95
    assert rightly(job, found) == 1.0


def test_sequence_numbers_tell_what_was_dropped():
    job = made_up(4, 60, sequences=True, clock_us=1_000.0, cut=5)
    dropped = np.ones(job.kernels.num_rows, bool)
    dropped[np.random.default_rng(0).integers(0, len(dropped), 20)] = False
    job = Job(job.kernels.filter(pa.array(dropped)), job.inputs, job.collective[dropped], job.early[dropped])
    found = match(job.kernels, job.inputs)
    assert rightly(job, found) == 1.0
    assert (found.instance != NULL).sum() == 4 * (np.bincount(job.collective) == 4).sum()


def test_a_missing_rank_leaves_its_groups_untold():
    job = made_up(4, 40, group=2)
    rank = job.kernels["rank"].to_numpy()
    kernels = job.kernels.filter(pa.array(rank != 3))
    known = match(kernels, job.inputs).instance != NULL
    within = np.array(kernels["group"].to_pylist()) == "1"
    assert (known == (within & (kernels["rank"].to_numpy() < 2))).all()


def test_groups_that_each_process_counts_for_itself():
    job = made_up(4, 40, group=2)
    rank, group = job.kernels["rank"].to_numpy(), np.array(job.kernels["group"].to_pylist())
    named = pa.array(np.where(group == "0", "0", np.where(rank % 2, "12", "7"))).dictionary_encode()
    at = job.kernels.schema.get_field_index("group")
    found = match(job.kernels.set_column(at, "group", named), job.inputs)
    assert (found.instance != NULL).all()
    # Two groups of the same ranks, each numbered otherwise on every rank, were made in one order.
    twice = pa.concat_tables([job.kernels, job.kernels])
    late = np.arange(twice.num_rows) >= job.kernels.num_rows
    start, end = (np.where(late, 10**9, 0) + twice[c].to_numpy() for c in ("start_ns", "end_ns"))
    named = pa.array([str(2 + 5 * r + (9 if second else 0)) for r, second in zip([*rank, *rank], late, strict=True)])
    changed = {"start_ns": pa.array(start), "end_ns": pa.array(end), "group": named.dictionary_encode()}
    for name, column in changed.items():
        twice = twice.set_column(twice.schema.get_field_index(name), name, column)
    found = match(twice, job.inputs)
    assert (found.instance != NULL).all()
    assert not set(found.instance[late]) & set(found.instance[~late])


def pipeline(micro: int = 12, clock_us: float = 0.0, barriers: bool = True, steps: int = 4) -> Job:
    """Three stages that pass on activations; the middle one computes twice as long as the first, the last one has least to do."""
    random = np.random.default_rng(0)
    rows: list[tuple[int, float, float, str, int | None]] = []
    free = np.zeros(3)
    work = (300.0, 600.0, 100.0)
    for _ in range(steps):
        arrived = [0.0] * micro
        for stage in range(3):
            sent = []
            for n in range(micro):
                if stage:
                    begun = free[stage]
                    free[stage] = max(begun + 50, arrived[n] + 5)
                    rows.append((stage, begun, free[stage], "receive", stage - 1))
                free[stage] += work[stage] + random.integers(0, 40)
                if stage < 2:
                    rows.append((stage, free[stage], free[stage] + 50, "send", stage + 1))
                    free[stage] += 50
                    sent.append(free[stage])
            arrived = sent
        if barriers:
            last = free.max()
            rows += [(stage, free[stage], last + 5, "barrier", None) for stage in range(3)]
            free[:] = last + 10
    rows.sort()
    rank, begun, ended, kind, peer = zip(*rows, strict=True)
    clock = np.array([0.0, clock_us, -clock_us])[list(rank)]
    count = len(rank)
    columns = {
        "rank": np.array(rank),
        "start_ns": np.rint(1000 * (np.array(begun) + clock)).astype(np.int64),
        "end_ns": np.rint(1000 * (np.array(ended) + clock)).astype(np.int64),
        "kind": pa.array(kind).dictionary_encode(),
        "peer": pa.array(peer, pa.int64()),
        "group": pa.array(["0"] * count).dictionary_encode(),
        "group_ranks": pa.array(["[0, 1, 2]"] * count).dictionary_encode(),
        "group_size": np.full(count, 3),
        "bytes": np.full(count, 1 << 24),
    }
    return Job(kernels_of(columns), inputs_of(3), np.zeros(count, np.int64), np.zeros(count, np.int64))


@pytest.mark.parametrize(("clock_us", "barriers"), [(0.0, True), (900.0, True), (0.0, False)])
def test_sends_pair_with_receives(clock_us, barriers):
    job = pipeline(clock_us=clock_us, barriers=barriers)
    found = match(job.kernels, job.inputs)
    kind, rank = np.array(job.kernels["kind"].to_pylist()), job.kernels["rank"].to_numpy()
    late, wait = rank[np.maximum(found.late, 0)], waits(job.kernels, found)
    # Nothing tells that the first two clocks agree when hardly any receive waits, unless barriers do.
    known = np.ones(len(rank), bool) if barriers else ((kind == "send") & (rank == 1)) | (rank == 2)
    assert (found.ranks == np.where(known, np.where(kind == "barrier", 3, 2), NULL)).all()
    # The last stage waits for the slow one before it; that one waits for the first once a step, and its sends for nobody.
    last = (kind == "receive") & (rank == 2)
    assert np.median(wait[last]) > 400 * US
    assert set(late[last & (wait > 50 * US)]) == {1}
    assert wait[kind == "send"].max() < 10 * US
    # What the first stage sends is buffered while the second one computes: neither waits, but for the first in each step.
    first = (kind == "receive") & (rank == 1)
    assert np.median(wait[first]) == 0
    assert (wait[first] > 200 * US).sum() == (4 if barriers else 0)


def test_sends_on_clocks_that_nothing_compares_stay_alone():
    job = pipeline(clock_us=900.0, barriers=False)
    assert not (match(job.kernels, job.inputs).instance != NULL).any()


def test_peers_of_ranges():
    names = ["nccl:send 1->2", "nccl:recv 1<-0", "nccl:send 0->1", "nccl:all_reduce", None]
    assert peers(names, np.array([5, 5, 4, 4, 4]), ["[3, 5, 9]", "[3, 5, 9]", None, None, None]).tolist() == [
        9,
        3,
        NULL,
        NULL,
        NULL,
    ]
    assert peers(["nccl:send 1->2"], np.array([1]), [None]).tolist() == [2]
    assert peers(["nccl:send 1->2"], np.array([4]), ["[3, 5, 9]"]).tolist() == [NULL]


def broadcasts(late: int) -> Job:
    """Three ranks: all-reduces that tell the clocks, and broadcasts from rank 0, to which one rank comes 2 ms late."""
    rows = []
    for n in range(20):
        at = 10_000 * n
        rows += [(r, at + 10 * r, at + 200, "all-reduce") for r in range(3)]
        begun = [at + 1_000 + 30 * (n % 3) + (2_000 if r == late else 0) for r in range(3)]
        root = begun[0] + 60
        rows += [(r, begun[r], max(root, begun[r] + 40), "broadcast") for r in range(3)]
    rows.sort()
    rank, begun, ended, kind = zip(*rows, strict=True)
    skew = np.array([0, 700, -700])[list(rank)]
    columns = {
        "rank": np.array(rank),
        "start_ns": US * (np.array(begun) + skew),
        "end_ns": US * (np.array(ended) + skew),
        "kind": pa.array(kind).dictionary_encode(),
        "group": pa.array(["0"] * len(rank)).dictionary_encode(),
        "group_size": np.full(len(rank), 3),
    }
    return Job(kernels_of(columns), inputs_of(3), np.zeros(len(rank), np.int64), np.zeros(len(rank), np.int64))


def test_receivers_wait_for_a_late_root():
    job = broadcasts(late=0)
    found = match(job.kernels, job.inputs)
    kind, rank = np.array(job.kernels["kind"].to_pylist()), job.kernels["rank"].to_numpy()
    wait = waits(job.kernels, found)[kind == "broadcast"]
    assert (found.instance != NULL).all()
    assert set(rank[found.late[kind == "broadcast"]]) == {0}
    assert wait[rank[kind == "broadcast"] != 0] == pytest.approx(2_000 * US, abs=50 * US)


def test_nobody_waits_for_a_late_receiver():
    job = broadcasts(late=2)
    found = match(job.kernels, job.inputs)
    told = np.array(job.kernels["kind"].to_pylist())[found.instance != NULL]
    assert set(told) == {"all-reduce"}


def test_offsets_of_clocks():
    job = made_up(8, 60, clock_us=1_000.0, cut=5)
    found = match(job.kernels, job.inputs)
    table = clock_offsets(job.kernels, found)
    assert table["rank"].to_pylist() == [*range(8)]
    assert set(table["domain"].to_pylist()) == {0}
    assert max(table["residual"].to_pylist()) < 5 * US
    first = np.array(
        [job.kernels["end_ns"].to_numpy()[np.flatnonzero(job.collective == job.collective.max() // 2 // 8 * 8)]]
    )
    measured = first[0] - np.median(first[0])
    assert np.array(table["offset"].to_pylist()) == pytest.approx(measured, abs=10 * US)
    assert clock_health(job.kernels, found, table, job.inputs).num_rows == 0


def test_clocks_that_drift():
    job = made_up(4, 2_000, clock_us=500.0, drift=5e-5, work_us=3_000.0)
    found = match(job.kernels, job.inputs)
    assert rightly(job, found) == 1.0
    assert (found.instance != NULL).mean() > 0.99
    assert max(clock_offsets(job.kernels, found)["residual"].to_pylist()) < 20 * US


def test_ranks_without_a_common_clock_say_so():
    job = made_up(3, 30)
    inputs = [*job.inputs[:2], Input("r2", "", 0, "kineto", "", 2, 3, 2, None)]
    found = match(job.kernels, inputs)
    rows = clock_health(job.kernels, found, clock_offsets(job.kernels, found), inputs).to_pylist()
    assert [(row["code"], row["rank"]) for row in rows] == [("TRC005", 2)]
    assert not (found.instance != NULL).any()


def test_ends_that_do_not_agree_say_so():
    job = made_up(2, 60, transfer_us=50.0)
    rank = job.kernels["rank"].to_numpy()
    ends = job.kernels["end_ns"].to_numpy().copy()
    ends[rank == 1] = np.maximum.accumulate(ends[rank == 1] + np.random.default_rng(0).integers(0, 5_000 * US, 60))
    at = job.kernels.schema.get_field_index("end_ns")
    kernels = job.kernels.set_column(at, "end_ns", pa.array(ends))
    found = match(kernels, job.inputs)
    (row,) = clock_health(kernels, found, clock_offsets(kernels, found), job.inputs).to_pylist()
    assert "apart from the same ones on other ranks" in row["message"]


def test_skew_of_an_all_to_all():
    job = made_up(4, 20)
    rank, count = job.kernels["rank"].to_numpy(), job.kernels.num_rows
    changed = {
        "kind": pa.array(["all-to-all"] * count).dictionary_encode(),
        "out_bytes": pa.array(np.where(rank == 1, 5 << 20, 1 << 20)),
        "bytes": pa.array(np.where(rank == 1, 5 << 20, 1 << 20)),
    }
    kernels = job.kernels
    for name, column in changed.items():
        kernels = kernels.set_column(kernels.schema.get_field_index(name), name, column)
    found = match(kernels, job.inputs)
    assert found.skew == pytest.approx(5 / 2)


def described(tmp_path, **args) -> dict:
    told = {
        "Collective name": "all_to_allv",
        "In msg nelems": 100,
        "Out msg nelems": 300,
        "dtype": "Float",
        "Group size": 64,
    }
    trace = KinetoTrace().op(0, 100, name="ncclDevKernel_SendRecv(x)", stream=20, **{**told, **args})
    (row,) = Catalog(ta.load(trace.write(tmp_path / "t.json"))).table("communication").to_pylist()
    return row


def test_what_goes_in_and_out(tmp_path):
    row = described(tmp_path)
    assert (row["kind"], row["in_bytes"], row["out_bytes"], row["bytes"]) == ("all-to-all", 400, 1200, 1200)


def test_long_lists_of_ranks(tmp_path):
    short = "[0, 8, 16, ...]"
    rest = {"Process Group Ranks": short, "Global rank start": 0, "Global rank stride": 8}
    assert json.loads(described(tmp_path, **rest)["group_ranks"]) == [*range(0, 512, 8)]
    assert described(tmp_path, **{"Process Group Ranks": short})["group_ranks"] == short
    assert described(tmp_path, **{"Process Group Ranks": "[]"})["group_ranks"] is None


def test_the_other_side_of_a_send(tmp_path):
    assert described(tmp_path, **{"Collective name": "send", "Dst Rank": 37})["peer"] == 37
    assert described(tmp_path, **{"Collective name": "recv", "Src Rank": "3"})["peer"] == 3
    assert described(tmp_path)["peer"] is None


@needs_corpus
@pytest.mark.parametrize("name", ["slow", "fixed"])
def test_stages_wait_for_the_stage_before(name):
    trace = ta.load(CORPUS / "multirank" / f"pipeline_bubble.{name}")
    kernels = Catalog(trace).table("communication_kernels")
    found = match(kernels, trace.inputs)
    assert (found.instance != NULL).all()
    kind, rank = np.array(kernels["kind"].to_pylist()), kernels["rank"].to_numpy()
    wait = waits(kernels, found)
    receives = kind == "receive"
    assert (rank[found.late[receives & (wait > 20 * US)]] == rank[receives & (wait > 20 * US)] - 1).all()
    assert wait[kind == "send"].sum() < 0.05 * durations(kernels)[kind == "send"].sum()
    # By hand: from the start of each receive to the start of its send, which is the same clock here.
    start = (
        kernels["start_ns"].to_numpy()
        + np.array([i.clock_base_ns for i in sorted(trace.inputs, key=lambda i: i.ordinal)])[rank]
    )
    for stage in (1, 2, 3):
        sends, own = (start[(kind == k) & (rank == r)] for k, r in (("send", stage - 1), ("receive", stage)))
        by_hand = np.maximum(sends - own, 0).sum()
        assert wait[receives & (rank == stage)].sum() == pytest.approx(by_hand, rel=0.05)


def grouped(trace: KinetoTrace, at: float, asked: list[tuple[str, int]], start: float, end: float) -> None:
    """Sends and receives that one kernel serves from `start` to `end`: their operators and the range of its launch, from `at` on."""
    for n, (name, peer) in enumerate(asked):
        side = {"send": "Dst Rank", "recv": "Src Rank"}[name]
        told = {"Collective name": name, "In msg nelems": 100, "Out msg nelems": 100, "dtype": "Float", side: peer}
        told |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4}
        trace.add(cat="cpu_op", name="record_param_comms", ts=at + 2 * n, dur=1, args=told)
    begun = at + 2 * len(asked)
    trace.range("nccl:coalesced", begun, begun + 3)
    trace.op(start, end, launch=(begun + 1, begun + 2), name="ncclDevKernel_SendRecv(x)", stream=20)


def kernels_in(trace: KinetoTrace, path) -> list[dict]:
    return Catalog(ta.load(trace.write(path / "t.json"))).table("communication").to_pylist()


def test_what_a_kernel_of_several_holds(tmp_path):
    trace = KinetoTrace()
    grouped(trace, 0, [("recv", 0)], 10, 20)
    # A send of its own has its range inside its operator, and is no part of the next group.
    trace.add(cat="cpu_op", name="record_param_comms", ts=20, dur=6, args={"Collective name": "send", "Dst Rank": 3})
    trace.range("nccl:send 1->3", 21, 25)
    grouped(trace, 30, [("send", 2), ("recv", 2)], 40, 50)
    grouped(trace, 60, [("send", 2), ("send", 2), ("recv", 0)], 70, 80)
    one, both, many = kernels_in(trace, tmp_path)
    assert (one["kind"], one["peer"], one["sends"], one["receives"], one["bytes"]) == ("receive", 0, None, "[0]", 400)
    assert (both["kind"], both["peer"], both["sends"], both["receives"]) == ("send-receive", 2, "[2]", "[2]")
    assert (many["peer"], many["sends"], many["receives"]) == (0, "[2, 2]", "[0]")
    assert (many["in_bytes"], many["out_bytes"], many["bytes"], many["group_size"]) == (800, 400, 800, 4)


@pytest.mark.parametrize(("longest", "told"), [(500.0, True), (60.0, False)])
def test_kernels_from_before_the_capture_hold_what_later_steps_do(tmp_path, longest, told):
    trace = KinetoTrace()
    for step in range(4):
        begun = 1_000.0 * step
        kernels = [([("recv", 0)], 500.0 if step > 1 else longest), ([("send", 2)], 20.0), ([("send", 0)], 20.0)]
        for n, (asked, took) in enumerate(kernels):
            start = begun + 300 * n - (200 if n else 0)
            if step < 2:
                trace.op(start, start + took, name="ncclDevKernel_SendRecv(x)", stream=20)
            else:
                grouped(trace, 1_500 + 50 * step + 10 * n, asked, start, start + took)
        if step > 1:
            trace.range(f"ProfilerStep#{step}", 1_498 + 50 * step, 1_545 + 50 * step)
    rows = kernels_in(trace, tmp_path)
    assert len(rows) == 12
    kinds = ["receive", "send", "send"] if told else ["send-receive"] * 3
    assert [row["kind"] for row in rows] == 2 * kinds + 2 * ["receive", "send", "send"]
    if told:
        assert [row["peer"] for row in rows] == 4 * [0, 2, 0]


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_ring_is_no_pipeline(tmp_path, where):
    trace = KinetoTrace()
    for step in range(3):
        at = 1_000 * step
        trace.range(f"ProfilerStep#{step}", at, at + 900)
        if where == "backward":
            trace.range("autograd::engine::evaluate_function: RingBackward", at, at + 850, category="cpu_op")
        for n in range(6):
            trace.range("aten::mm", at + 100 * n + 60, at + 100 * n + 70, category="cpu_op")
            grouped(trace, at + 100 * n + 20, [("send", 2), ("recv", 0)], at + 100 * n + 40, at + 100 * n + 90)
    rows = kernels_in(trace, tmp_path)
    assert {row["kind"] for row in rows} == {"send-receive"}
    assert {row["parallelism"] for row in rows} == {None}
    assert {row["likely_wait"] for row in rows} == {None}


def exchange(slow: int = 1, steps: int = 8) -> Job:
    """Three stages in turn: forward to the next, and then both ways at once in one kernel; one of them computes longer."""
    rows: list[tuple[int, float, float, list[int], list[int]]] = []
    free = np.zeros(3)
    for n in range(steps):
        for one, other in ((0, 1), (1, 2)):
            for both in (False, True):
                free[[one, other]] += 100.0 + 7 * (n % 3)
                free[slow] += 400.0 if slow in (one, other) else 0.0
                end = max(free[one], free[other]) + 50
                rows.append((one, free[one], end, [other], [other] if both else []))
                rows.append((other, free[other], end + 1, [one] if both else [], [one]))
                free[[one, other]] = end + 5
    rows.sort(key=lambda row: (row[0], row[1]))
    rank, begun, ended, sends, receives = zip(*rows, strict=True)
    texts = [
        pa.array([str(ranks) if ranks else None for ranks in side], pa.string()).dictionary_encode()
        for side in (sends, receives)
    ]
    kinds = {(True, True): "send-receive", (True, False): "send", (False, True): "receive"}
    count = len(rank)
    columns = {
        "rank": np.array(rank),
        "start_ns": np.rint(US * np.array(begun)).astype(np.int64),
        "end_ns": np.rint(US * np.array(ended)).astype(np.int64),
        "kind": pa.array([kinds[bool(s), bool(r)] for s, r in zip(sends, receives, strict=True)]).dictionary_encode(),
        "peer": np.array([(r or s)[0] for s, r in zip(sends, receives, strict=True)]),
        "sends": texts[0],
        "receives": texts[1],
        "group": pa.array(["0"] * count).dictionary_encode(),
        "group_ranks": pa.array(["[0, 1, 2]"] * count).dictionary_encode(),
        "group_size": np.full(count, 3),
        "bytes": np.full(count, 1 << 24),
    }
    return Job(kernels_of(columns), inputs_of(3), np.zeros(count, np.int64), np.zeros(count, np.int64))


def test_kernels_that_send_and_receive_pair():
    job = exchange()
    found = match(job.kernels, job.inputs)
    rank, wait = job.kernels["rank"].to_numpy(), waits(job.kernels, found)
    assert (found.ranks == 2).all()
    assert set(np.unique(found.instance, return_counts=True)[1]) == {2}
    # The stage in the middle is the slow one, and waits for nobody.
    assert (rank[found.late[rank != 1]] == 1).all()
    assert wait[rank == 1].max() <= 2 * US
    assert wait[rank != 1].min() >= 350 * US


def test_a_kernel_of_which_one_message_has_no_counterpart_is_left_alone():
    job = exchange()
    kernels = job.kernels
    rank = kernels["rank"].to_numpy()
    ring = [
        None if text is None else text if own != 0 else "[1, 2]"
        for text, own in zip(kernels["sends"].to_pylist(), rank, strict=True)
    ]
    at = kernels.schema.get_field_index("sends")
    found = match(kernels.set_column(at, "sends", pa.array(ring).dictionary_encode()), job.inputs)
    kind = np.array(kernels["kind"].to_pylist())
    assert not (found.instance[(rank == 0) & (kind != "receive")] != NULL).any()
    assert (found.instance[(rank == 2)] != NULL).all()


def test_sends_that_were_buffered_say_nothing_of_clocks():
    job = pipeline()
    found = match(job.kernels, job.inputs)
    kind, rank = np.array(job.kernels["kind"].to_pylist()), job.kernels["rank"].to_numpy()
    buffered = (kind == "send") & (rank == 0) & (found.spread == NULL) & (found.instance != NULL)
    assert buffered.sum() > 20
    assert (found.spread[kind == "barrier"] != NULL).all()
    assert max(clock_offsets(job.kernels, found)["residual"].to_pylist()) < 10 * US


def test_what_a_stage_likely_waits_for_neighbours_that_are_not_there():
    job = pipeline()
    mine = job.kernels.filter(pa.array(job.kernels["rank"].to_numpy() == 2))
    at = mine.schema.get_field_index("parallelism")
    kind = np.array(mine["kind"].to_pylist())
    labels = pa.array(np.where(kind == "receive", "pipeline parallel", "synchronization").tolist()).dictionary_encode()
    unknown = np.full(mine.num_rows, NULL)
    likely = likely_waits(mine.set_column(at, "parallelism", labels), unknown)
    receives = kind == "receive"
    assert (likely[~receives] == NULL).all()
    assert (likely[receives] == durations(mine)[receives] - durations(mine)[receives].min()).all()
    assert (likely_waits(mine, unknown) == NULL).all()
