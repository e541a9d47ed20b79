"""Ranks of MPI as a job: which calls are one, who waits for whom, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.nsys.nsys_export import global_id, make_export, read
from tests.support.made_up_mpi import MS, NAMES, OTHER, US, WORLD, Process, describe, files, meet
from traceanalyzer.ingest.formats.nsys.events.mpi import latest_made
from traceanalyzer.model import mpi_names
from traceanalyzer.result.document import Finding, Result

ITERATIONS = 20


def analyzed(ranks: Sequence[Process], folder: Path) -> Result:
    return ta.analyze(ta.load(files(ranks, folder)))


def stall(result: Result) -> Finding:
    (found,) = [finding for finding in result.findings if finding.rule == "MPI001"]
    return found


def judged(result: Result) -> str:
    return next(rule.outcome for rule in result.rules if rule.rule == "MPI001")


def processes(count: int, **more: int) -> list[Process]:
    ranks = [Process(rank) for rank in range(count)]
    describe(ranks)
    return ranks


def test_a_rank_with_more_to_compute_is_late(tmp_path):
    ranks = processes(4)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(8 * MS if one.rank == 2 else 4 * MS)
        meet(ranks)
    result = analyzed(ranks, tmp_path)
    found = stall(result)
    assert found.scope.rank == 2
    assert "Rank 2 is late at MPI_Allreduce" in found.message
    assert "because it computes" in found.message
    # Three ranks wait 4 ms each time; what ends a wait of theirs for the GPU is not idle time in MPI.
    assert found.saving.recoverable_ns == pytest.approx(3 * ITERATIONS * 4 * MS, rel=0.02)
    assert result.verdict.headline.startswith("Rank 2 is late at MPI_Allreduce")
    assert {e.label.split(":")[0] for e in found.evidence} == {"late", "waiting"}
    assert result.job is not None
    assert result.job.world_size == 4


def test_a_rank_whose_host_is_at_work_is_late(tmp_path):
    ranks = processes(4)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(2 * MS)
            if one.rank == 0:
                one.host(3 * MS, "write_output")
        meet(ranks, "MPI_Barrier")
    result = analyzed(ranks, tmp_path)
    found = stall(result)
    assert found.scope.rank == 0
    assert "write_output" in found.message
    assert result.verdict.bound_by == "mpi"
    told = [finding.scope.rank for finding in result.findings if finding.rule in ("HST001", "GAP001")]
    assert set(told) <= {0}, "who waits is not told to mend its host"


def halo(ranks: Sequence[Process], tag: int = 5) -> None:
    """Each rank exchanges with both neighbours: receives and sends that return at once, and one wait for all four."""
    posted = {}
    for one in ranks:
        sides = [(one.rank - 1) % len(ranks), (one.rank + 1) % len(ranks)]
        for at, (name, peer) in enumerate([(n, p) for n in ("MPI_Irecv", "MPI_Isend") for p in sides]):
            one.add(
                "MPI_P2P_EVENTS", name, one.now, one.now + 2 * US,
                commHandle=WORLD, tag=tag, remoteRank=peer, size=1 << 16, requestHandle=100 + at,
            )  # fmt: skip
            one.now += 2 * US
        posted[one.rank] = one.now
    for one in ranks:
        sides = [(one.rank - 1) % len(ranks), (one.rank + 1) % len(ranks)]
        end = max(posted[one.rank], *(posted[side] for side in sides)) + 30 * US
        for at in range(4):
            one.add("MPI_START_WAIT_EVENTS", "MPI_Waitall", one.now, end, requestHandle=100 + at)
        one.now = end


def test_who_waits_for_a_neighbour_in_a_halo_exchange(tmp_path):
    ranks = processes(4)
    meet(ranks)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(2 * MS)
            if one.rank == 1:
                one.host(2 * MS, "refine")
        halo(ranks)
        meet(ranks)
    found = stall(analyzed(ranks, tmp_path))
    assert found.scope.rank == 1
    assert "MPI_Waitall" in found.message
    # Rank 3 is no neighbour of rank 1: it waits only where all meet, and then for the same.
    assert found.saving.recoverable_ns == pytest.approx(3 * ITERATIONS * 2 * MS, rel=0.05)


def test_communicators_of_some_ranks_match_among_these(tmp_path):
    ranks = processes(4)
    describe(ranks[:2], OTHER, 1)
    describe(ranks[2:], OTHER, 1)
    meet(ranks)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(5 * MS if one.rank == 3 else 2 * MS)
        meet(ranks[:2], comm=OTHER)
        meet(ranks[2:], comm=OTHER)
    found = stall(analyzed(ranks, tmp_path))
    assert found.scope.rank == 3
    # Only rank 2 shares a communicator with it, and waits but for the last time at the end.
    assert found.saving.recoverable_ns == pytest.approx(ITERATIONS * 3 * MS, rel=0.05)


def test_a_root_that_is_late_to_a_broadcast(tmp_path):
    ranks = processes(3)
    meet(ranks)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(1 * MS)
        ranks[0].host(2 * MS, "read_input")
        # The root goes on at once.
        end = ranks[0].now + 20 * US
        for one in ranks:
            end_of_this = one.now + 5 * US if one.rank == 0 else max(end, one.now + 5 * US)
            one.call("MPI_COLLECTIVES_EVENTS", "MPI_Bcast", end_of_this, commHandle=WORLD, rootRank=0, size=64)
    found = stall(analyzed(ranks, tmp_path))
    assert found.scope.rank == 0
    assert "MPI_Bcast" in found.message
    assert found.saving.recoverable_ns == pytest.approx(2 * ITERATIONS * 2 * MS, rel=0.05)


def test_late_senders(tmp_path):
    ranks = processes(2)
    meet(ranks)
    for _ in range(ITERATIONS):
        ranks[0].compute(4 * MS)
        ranks[1].compute(1 * MS)
        sent = ranks[0].now
        more = {"commHandle": WORLD, "tag": 1, "size": 64}
        ranks[0].call("MPI_P2P_EVENTS", "MPI_Send", sent + 5 * US, remoteRank=1, **more)
        ranks[1].call("MPI_P2P_EVENTS", "MPI_Recv", max(sent, ranks[1].now) + 9 * US, remoteRank=0, **more)
        meet(ranks, "MPI_Barrier")
    found = stall(analyzed(ranks, tmp_path))
    assert (found.scope.rank, "MPI_Recv" in found.message) == (0, True)


def test_transfer_is_not_waiting(tmp_path):
    ranks = processes(2)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(1 * MS)
        meet(ranks, "MPI_Alltoallv", takes=5 * MS)
    result = analyzed(ranks, tmp_path)
    assert judged(result) == "clean"
    assert any(finding.rule == "GAP001" for finding in result.findings)


@pytest.mark.parametrize("ahead", [40 * US, -300 * MS, 12_000 * MS])
def test_clocks_that_differ_are_brought_together(tmp_path, ahead):
    ranks = [Process(0), Process(1, ahead)]
    describe(ranks)
    # Long enough for the recordings to overlap.
    ranks[0].compute(14_000 * MS)
    ranks[1].compute(14_000 * MS)
    for at in range(ITERATIONS):
        ranks[0].compute(40 * MS)
        ranks[1].compute((80 + at) * MS)
        meet(ranks)
    result = analyzed(ranks, tmp_path)
    assert result.job is not None
    offsets = [clock.offset_ns for clock in result.job.clocks]
    assert offsets[1] - offsets[0] == pytest.approx(ahead, abs=10 * US)
    matches = ta.load(sorted(tmp_path.glob("*.sqlite")))
    from traceanalyzer.catalog.catalog import Catalog

    waits = Catalog(matches).table("mpi_matches").to_pylist()
    waited = sum(row["wait"] or 0 for row in waits if row["rank"] == 0)
    assert waited == pytest.approx(sum((40 + at) * MS for at in range(ITERATIONS)), rel=0.01)


def test_a_missing_rank_leaves_nothing_told(tmp_path):
    ranks = processes(3)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(4 * MS if one.rank == 2 else 1 * MS)
        meet(ranks)
    result = analyzed(ranks[:2], tmp_path)
    assert judged(result) == "could_not_judge"
    assert result.job is not None
    assert result.job.missing_ranks == [2]


def test_one_rank_alone_is_not_judged(tmp_path):
    ranks = processes(2)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(4 * MS if one.rank else 1 * MS)
        meet(ranks)
    result = analyzed(ranks[:1], tmp_path)
    assert judged(result) == "could_not_judge"
    assert "MPI_Allreduce" in result.verdict.headline


def test_blame_goes_to_the_first_that_was_late(tmp_path):
    """Rank 2 holds up rank 1, which then holds up rank 0."""
    ranks = processes(3)
    meet(ranks)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(5 * MS if one.rank == 2 else 1 * MS)
        more = {"commHandle": WORLD, "tag": 1, "size": 64}
        for sender, receiver in ((2, 1), (1, 0)):
            sent = ranks[sender].now
            ranks[sender].call("MPI_P2P_EVENTS", "MPI_Send", sent + 5 * US, remoteRank=receiver, **more)
            end = max(sent, ranks[receiver].now) + 9 * US
            ranks[receiver].call("MPI_P2P_EVENTS", "MPI_Recv", end, remoteRank=sender, **more)
    found = stall(analyzed(ranks, tmp_path))
    assert found.scope.rank == 2


def test_ranges_that_are_called_like_calls_count_as_calls(tmp_path):
    ranks = [Process(rank, begun=False) for rank in range(2)]
    for at in range(ITERATIONS):
        for one in ranks:
            one.compute((3 + 0.1 * at) * MS // 1 if one.rank else 1 * MS)
        end = max(one.now for one in ranks) + 20 * US
        for one in ranks:
            one.host(end - one.now, "MPI_Allreduce")
    found = stall(analyzed(ranks, tmp_path))
    assert (found.scope.rank, found.confidence) == (1, "low")


def test_arguments_ranks_and_communicators_are_read(tmp_path):
    ranks = processes(2)
    describe(ranks, OTHER, 4)
    ranks[0].compute(1 * MS)
    ranks[0].call("MPI_P2P_EVENTS", "MPI_Recv", ranks[0].now + US, commHandle=OTHER, tag=-1, remoteRank=-2, size=64)
    ranks[0].call(
        "MPI_P2P_EVENTS", "MPI_Isend", ranks[0].now + US, commHandle=9, tag=3, remoteRank=1, size=8, requestHandle=5
    )
    (path,) = files(ranks[:1], tmp_path)
    found = read(path)
    assert (found.facts.rank, found.facts.world_size) == (0, 2)
    receive, send = found.table("mpi_calls").to_pylist()[1:]
    assert (receive["kind"], receive["group"], receive["group_size"], receive["group_rank"]) == ("receive", "0.4", 2, 0)
    assert (receive["tag"], receive["peer"], receive["bytes"], receive["received_bytes"]) == (None, None, None, 64)
    assert (send["kind"], send["group"], send["communicator"], send["request"]) == ("send", None, 9, 5)
    assert (send["tag"], send["peer"], send["bytes"], send["received_bytes"]) == (3, 1, 8, None)


def test_communicators_that_are_not_described_are_noted(tmp_path):
    one = Process(0)
    one.compute(1 * MS)
    meet([one])
    assert any(
        "communicators that the file does not describe" in said
        for _, _, said, *_ in read(files([one], tmp_path)[0]).messages
    )


def merged(ranks: Sequence[Process], folder: Path, gpus: Sequence[int]) -> Path:
    """All ranks in one export, as nsys around mpirun makes it."""
    for one in ranks:
        one.compute(1 * MS)
    tables: dict[str, list[dict[str, Any]]] = {}
    for one in ranks:
        pid = 7 + one.rank
        for name, rows in one.tables.items():
            for row in rows if name != "TARGET_INFO_SESSION_START_TIME" or not one.rank else []:
                own = dict(row)
                own |= {"globalPid": global_id(pid)} if "globalPid" in row else {}
                own |= {"globalTid": global_id(pid, pid)} if "globalTid" in row else {}
                own |= {"deviceId": gpus[one.rank]} if "deviceId" in row else {}
                tables.setdefault(name, []).append(own)
    return make_export(folder / "all.sqlite", tables, NAMES)


def uneven(tmp_path: Path, gpus: Sequence[int]) -> Result:
    ranks = processes(3)
    for _ in range(ITERATIONS):
        for one in ranks:
            one.compute(4 * MS if one.rank == 1 else 1 * MS)
        meet(ranks)
    return ta.analyze(ta.load(merged(ranks, tmp_path, gpus)))


def test_ranks_of_one_file_are_judged_by_their_gpus(tmp_path):
    result = uneven(tmp_path, [2, 0, 1])
    found = stall(result)
    assert (found.scope.rank, found.scope.device) == (None, 0)
    assert "GPU 0 is late at MPI_Allreduce" in found.message
    assert found.saving.recoverable_ns == pytest.approx(2 * ITERATIONS * 3 * MS, rel=0.02)
    # Of the time of all three GPUs, the late one among them.
    assert found.saving.recoverable_share == pytest.approx(0.48, abs=0.01)
    assert any("several ranks of MPI in one file" in note.message for note in result.health)


def test_ranks_of_one_file_that_share_a_gpu_are_not(tmp_path):
    assert judged(uneven(tmp_path, [0, 0, 0])) in ("could_not_judge", "clean")


def test_halos_alone_need_clocks_that_agree(tmp_path):
    """Without collectives nothing aligns the clocks; messages that arrive before they are sent show that they do not fit."""
    for ahead, told in ((0, True), (1 * MS, False)):
        ranks = [Process(0), Process(1, ahead), Process(2)]
        describe(ranks)
        for _ in range(ITERATIONS):
            for one in ranks:
                one.compute(4 * MS if one.rank == 1 else 1 * MS)
            halo(ranks)
        folder = tmp_path / str(ahead)
        folder.mkdir()
        result = analyzed(ranks, folder)
        noted = any("before they are sent" in note.message for note in result.health)
        assert (any(f.rule == "MPI001" and f.confidence == "low" for f in result.findings), noted) == (told, not told)


def exchange(one: Process, peer: int, staged: bool, size: int = 1 << 20) -> None:
    """A halo to a peer and back; `staged` by the program, else by the library within its calls."""
    if staged:
        one.copy(True, 1 << 20, 200 * US)
    more = {"commHandle": WORLD, "tag": 3, "remoteRank": peer, "size": size}
    for name, request in (("MPI_Irecv", 1), ("MPI_Isend", 2)):
        one.call("MPI_P2P_EVENTS", name, one.now + 2 * US, requestHandle=request, **more)
    begun = one.now
    if not staged:
        one.copy(True, 1 << 20, 200 * US)
    one.now += 100 * US
    if not staged:
        one.copy(False, 1 << 20, 200 * US)
    for request in (1, 2):
        one.add("MPI_START_WAIT_EVENTS", "MPI_Waitall", begun, one.now, requestHandle=request)
    if staged:
        one.copy(False, 1 << 20, 200 * US)


def iterated(tmp_path: Path, **how: Any) -> Result:
    one = Process(0)
    for _ in range(ITERATIONS):
        one.compute(1 * MS)
        exchange(one, 1, **how)
    return analyzed([one], tmp_path)


def test_halos_that_the_program_copies_to_the_host_are_staged(tmp_path):
    result = iterated(tmp_path, staged=True)
    (found,) = [finding for finding in result.findings if finding.rule == "MPI002"]
    assert found.saving.recoverable_ns == 2 * ITERATIONS * 200 * US
    assert found.confidence == "medium"
    assert "20 times a copy to the host, MPI_Waitall and a copy back to the GPU, 40 MiB in all" in found.message
    assert "Pass pointers of the GPU" in str(found.recommend)
    assert not any(finding.rule == "CPY006" for finding in result.findings)


@pytest.mark.parametrize("how", [{"staged": False}, {"staged": True, "size": 8}])
def test_what_a_library_copies_or_what_is_not_sent_is_not_staged(tmp_path, how):
    assert not any(finding.rule == "MPI002" for finding in iterated(tmp_path, **how).findings)


@pytest.mark.parametrize(
    ("name", "does", "collective", "at_once"),
    [
        ("MPI_Send", "send", None, False),
        ("PMPI_Issend", "send", None, True),
        ("mpi_irecv_", "receive", None, True),
        ("MPI_Imrecv", "receive", None, True),
        ("MPI_Iallreduce", "collective", "all-reduce", True),
        ("MPI_Ibcast", "collective", "broadcast", True),
        ("MPI_Ireduce", "collective", "reduce", True),
        ("MPI_Alltoallw", "collective", "all-to-all", False),
        ("MPI_Reduce_scatter_block", "collective", "reduce-scatter", False),
        ("MPI_Bcast_c", "collective", "broadcast", False),
        ("MPI_Waitsome", "wait", None, False),
        ("MPI_Init_thread", "other", None, False),
        ("MPI_File_write_all", "other", None, False),
        ("train", "other", None, False),
    ],
)
def test_names_say_what_calls_do(name, does, collective, at_once):
    assert (mpi_names.does(name), mpi_names.collective(name), mpi_names.returns_at_once(name)) == (
        does,
        collective,
        at_once,
    )


def test_tables_of_no_calls_are_empty():
    from traceanalyzer.model.schema import EVENT_TABLES
    from traceanalyzer.ranks.mpi.mpi_parts import mpi_parts

    empty = mpi_parts(*(EVENT_TABLES[name].empty() for name in ("mpi_calls", "host_ranges", "gpu_ops")))
    assert isinstance(empty, pa.Table)
    assert empty.num_rows == 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 20)), max_size=12),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 20)), max_size=12),
)
def test_the_communicator_of_a_call_is_the_last_one_made_before_it(made, calls):
    made = sorted(made)
    owner, caller = (np.array([row[:2] for row in rows], np.int64).reshape(-1, 2).T for rows in (made, calls))
    times, when = (np.array([row[2] for row in rows], np.int64) for rows in (made, calls))
    found = latest_made(owner, times, caller, when).tolist()
    for (rank, handle, at), row in zip(calls, found, strict=True):
        own = [n for n, one in enumerate(made) if one[:2] == (rank, handle)]
        assert row == max([n for n in own if made[n][2] <= at] or own[:1], default=-1)
