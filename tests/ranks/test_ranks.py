"""Who is who: the rank of each file, which files belong together, and what is said where that is not plain."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.derive.ledger.tables import LEDGER
from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.rows.ranks import ranks_in_names
from traceanalyzer.model.schema import DEVICES
from traceanalyzer.model.trace import Input, file_names, rank_names
from traceanalyzer.ranks.recordings.jobs import Jobs, jobs

MS, S = 1_000_000, 1_000_000_000


def fact(rank: int | None = None, **more: Any) -> FileFacts:
    return FileFacts("test", rank=rank, rank_source=None if rank is None else "content", **more)


def named(names: list[str], *facts: FileFacts) -> list[int | None]:
    """The rank that each file's name gives it."""
    found = ranks_in_names([PurePath(name) for name in names], facts or [fact()] * len(names))
    return [found.get(at) for at in range(len(names))]


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["rank0.json", "rank3.json"], [0, 3]),
        (["run-rank-3.json.gz", "run-rank-0.json"], [3, 0]),
        (["a_Rank_10.sqlite", "b_rank_2.sqlite"], [10, 2]),
        (["rank-34.Jul_15_10_52_41.1074.pt.trace.json", "rank-7.Jul_15_10_52_43.1075.pt.trace.json"], [34, 7]),
        (["worker0_step_12.1694128201545.json", "worker1_step_12.1694128201556.json"], [0, 1]),
        (["worker0.rank4.json", "worker0.rank5.json"], [4, 5]),
        (["node1_rank3.json", "node0_rank1.json"], [3, 1]),
        (["r3.json", "r12.json"], [3, 12]),
        (["rank001.json", "rank010.json"], [1, 10]),
        (["rank0/trace.json", "rank1/trace.json"], [0, 1]),
        (["t.0.json", "t.1.json", "t.2.json"], [0, 1, 2]),
        (["report_1.sqlite", "report_0.sqlite"], [1, 0]),
    ],
)
def test_names_that_tell_ranks(names: list[str], ranks: list[int]) -> None:
    assert named(names) == ranks


@pytest.mark.parametrize(
    "names",
    [
        ["rank3.json"],  # Alone it may be anything.
        ["rank0.json", "other.json"],
        ["rank0.json", "rank0.json.gz"],
        ["rank0_of_rank4.json", "rank1_of_rank4.json"],
        ["node0/rank0.json", "node1/rank0.json"],  # These count within a node.
        ["local_rank0.json", "local_rank1.json"],
        ["node_rank0.json", "node_rank1.json"],
        ["gpu0.json", "device1.json"],
        ["gpu0.json", "gpu1.json"],
        ["run_0.json", "run_1.json"],
        ["step_100.json", "step_500.json"],
        ["report1.sqlite", "report2.sqlite"],  # What nsys calls one recording after another.
        ["slow.json", "fixed.json"],
        ["frank0.json", "frank2.json"],
        ["a0.json", "b1.json"],
        ["rank99999999.json", "rank0.json"],
    ],
)
def test_names_that_tell_nothing(names: list[str]) -> None:
    assert named(names) == [None] * len(names)


def test_names_count_only_where_contents_agree() -> None:
    names = ["rank0.json", "rank1.json", "rank2.json"]
    assert named(names, fact(0), fact(), fact()) == [None, 1, 2]
    assert named(names, fact(1), fact(), fact()) == [None] * 3
    assert named(["main.json", "rank1.json"], fact(1), fact()) == [None, None]
    assert named(["main.json", "rank1.json"], fact(0, world_size=2), fact()) == [None, 1]
    assert named(names, fact(world_size=2), fact(), fact()) == [None] * 3
    assert named(names, fact(), fact(several=True), fact()) == [None] * 3


# --- reading ---


def written(path: Path, end: float = 10, rank: int | None = None, world: int = 4) -> Path:
    trace = KinetoTrace().op(0, end)
    if rank is not None:
        trace.metadata["distributedInfo"] = {"rank": rank, "world_size": world}
    return trace.write(path)


def who(trace: ta.Trace) -> list[tuple[str, int | None, int, str | None, int]]:
    return [(Path(i.path).name, i.rank, i.ordinal, i.rank_source, i.copies) for i in trace.inputs]


def test_content_beats_names(tmp_path: Path) -> None:
    for rank in range(3):
        written(tmp_path / f"rank{2 - rank}.json", rank=rank)
    found = who(ta.load(tmp_path))
    assert found == [(f"rank{2 - n}.json", n, n, "content", 0) for n in range(3)]


def test_files_without_a_rank_are_named_or_numbered(tmp_path: Path) -> None:
    (tmp_path / "named").mkdir()
    (tmp_path / "mixed").mkdir()
    for rank in (3, 1):
        written(tmp_path / "named" / f"rank{rank}.json", 10 + rank)
        written(tmp_path / "mixed" / f"{'ab'[rank // 2]}.json", 10 + rank)
    written(tmp_path / "mixed" / "z.json", rank=1)
    assert who(ta.load(tmp_path / "named")) == [("rank1.json", 1, 1, "name", 0), ("rank3.json", 3, 3, "name", 0)]
    assert who(ta.load(tmp_path / "mixed")) == [
        ("a.json", None, 0, None, 0),
        ("z.json", 1, 1, "content", 0),
        ("b.json", None, 2, None, 0),
    ]


def test_order_and_names_change_nothing_where_contents_say_it(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.json", 10 + rank, rank) for rank, name in enumerate("dbca")]
    again = [path.rename(tmp_path / f"rank{n}.json") for n, path in enumerate(paths[::-1])]
    found = [(rank, ordinal) for _, rank, ordinal, *_ in who(ta.load(again))]
    assert found == [(n, n) for n in range(4)]
    ends = ta.load(again).table("gpu_ops").select(["rank", "end_ns"]).to_pylist()
    assert ends == [{"rank": n, "end_ns": 1000 * (10 + n)} for n in range(4)]


def test_findings_do_not_depend_on_names(tmp_path: Path) -> None:
    folder = FIXTURES / "multirank/pipeline_bubble.slow"
    for path, rank in zip(sorted(folder.iterdir()), (2, 0, 3, 1), strict=True):
        shutil.copy(path, tmp_path / f"rank{rank}.json")
    result, again = (ta.analyze(ta.load(where)) for where in (folder, tmp_path))
    assert [replace(one, path="") for one in again.inputs] == [replace(one, path="") for one in result.inputs]
    assert replace(again, inputs=[]) == replace(result, inputs=[])


def test_a_copy_of_a_rank_is_left_out(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json", rank=3)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(first.read_bytes()))
    written(tmp_path / "c.json", rank=0)
    trace = ta.load(tmp_path)
    assert who(trace) == [("c.json", 0, 0, "content", 0), ("a.json", 3, 3, "content", 1)]
    assert trace.table("gpu_ops").num_rows == 2


def test_two_recordings_of_a_rank_stay_apart(tmp_path: Path) -> None:
    written(tmp_path / "a.json", 10, rank=1)
    written(tmp_path / "b.json", 20, rank=1)
    trace = ta.load(tmp_path)
    assert who(trace) == [("b.json", 1, 0, "content", 0), ("a.json", 1, 1, "content", 0)]
    assert trace.table("gpu_ops")["end_ns"].to_pylist() == [20_000, 10_000]
    assert rank_names(trace.inputs) == {0: "rank 1 in b.json", 1: "rank 1 in a.json"}


# --- ranks from the arguments of collectives ---


def collectives(*described: tuple[str, Any, Any]) -> KinetoTrace:
    trace = KinetoTrace().op(0, 10)
    for n, (name, rank, ranks) in enumerate(described):
        args = {"Collective name": name, "Rank": rank, "Process Group Ranks": ranks}
        trace.add(cat="cpu_op", name="record_param_comms", ts=20 + n, dur=1, args=args)
    return trace


@pytest.mark.parametrize(
    ("described", "rank"),
    [
        ([("allreduce", 2, "[0, 1, 2, 3]")], 2),
        ([("allreduce", "2", [0, 1, 2, 3]), ("barrier", 2, "[0, 1, 2, 3]")], 2),
        ([("_allgather_base", 1, "[1, 3]"), ("_reduce_scatter_base", 3, "[0, 1, 2, 3]")], 3),
        # The peer of a send, the root of a broadcast, and a wait that names no group.
        ([("send", 1, "[0, 1, 2, 3]"), ("wait", 0, "[]"), ("barrier", 0, "[0, 1, 2, 3]")], 0),
        ([("broadcast", 0, "[0, 1, 2, 3]"), ("reduce", 1, "[0, 1]"), ("gather", 1, "[0, 1]")], None),
        ([("allreduce", 2, "[0, 1, 2, ..., 63]"), ("alltoall", 2, "[]")], None),
        ([("allreduce", 2, "[0, 1, 2, 3]"), ("allreduce", 1, "[0, 1, 2, 3]")], None),
        ([("allreduce", 4, "[0, 1, 2, 3]"), ("allreduce", 1, "[0, 1]")], None),
        ([("allreduce", [2], {"a": 1}), ("allreduce", None, "[0, 1]")], None),
    ],
)
def test_collectives_tell_the_rank(tmp_path: Path, described: list[tuple[str, Any, Any]], rank: int | None) -> None:
    trace = ta.load(collectives(*described).write(tmp_path / "t.json"))
    assert (trace.inputs[0].rank, trace.inputs[0].rank_source) == (rank, None if rank is None else "content")
    assert trace.table("health").num_rows == 0


def test_what_the_file_says_of_itself_beats_its_collectives(tmp_path: Path) -> None:
    trace = collectives(("allreduce", 2, "[0, 1, 2, 3]"))
    trace.metadata["distributedInfo"] = {"rank": 1, "world_size": 4, "backend": "nccl", "nccl_version": "2.28.9"}
    found = ta.load(trace.write(tmp_path / "t.json")).inputs[0]
    assert (found.rank, found.job) == (1, "nccl 2.28.9")


# --- jobs ---


def file(ordinal: int, rank: int | None = -1, world: int | None = 4, base: int | None = S, **more: Any) -> Input:
    """Rank = ordinal when not told otherwise."""
    rank = ordinal if rank == -1 else rank
    path = more.pop("path", f"/home/someone/run/{'abcdefgh'[ordinal % 8]}{ordinal // 8 or ''}.json")
    return Input(path, "", 1, "kineto", "test", rank, world, ordinal, base, "content", **more)


def windows(
    *inputs: Input, at: dict[int, tuple[int, int]] | None = None, names: dict[int, str] | None = None
) -> pa.Table:
    rows = [
        {"rank": i.ordinal, "device": 0, "name": (names or {}).get(i.ordinal), "start_ns": start, "end_ns": end}
        for i in inputs
        for start, end in [(at or {}).get(i.ordinal, (0, 100 * MS))]
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER.schema)


def said(found: Jobs) -> list[tuple[str, str, int, int | None]]:
    assert set(found.health["code"].to_pylist()) <= {"TRC006"}
    return [(row["severity"], row["message"], row["count"], row["rank"]) for row in found.health.to_pylist()]


def test_a_whole_job() -> None:
    inputs = [file(n) for n in range(4)]
    found = jobs(inputs, windows(*inputs))
    assert (found.job, found.world_size, found.missing, found.doubled) == (dict.fromkeys(range(4), 0), 4, (), ())
    assert said(found) == []
    assert jobs(inputs[::-1], windows(*inputs)) == found


def test_missing_ranks() -> None:
    inputs = [file(n, world=8) for n in (0, 2, 4)]
    found = jobs(inputs, windows(*inputs))
    assert (found.world_size, found.missing) == (8, (1, 3, 5, 6, 7))
    message = "3 of 8 ranks are here; missing: 1, 3, 5-7; what is said about waiting holds for these ranks only"
    assert said(found) == [("low", message, 5, None)]
    many = [file(n, world=4096) for n in range(0, 64, 2)]
    assert "missing: 1, 3, 5, 7, 9, 11, 13, 15 and 4056 more; what" in said(jobs(many, windows(*many)))[0][1]


def test_a_rank_alone_is_no_fault() -> None:
    inputs = [file(2, world=8)]
    message = "of 8 ranks only rank 2 is here: whom it waited for cannot be told"
    assert said(jobs(inputs, windows(*inputs))) == [("info", message, 7, None)]
    alone = [file(0, rank=None, world=None)]
    assert said(jobs(alone, windows(*alone))) == said(jobs([], windows())) == []
    assert said(jobs([file(0, world=1 << 30)], windows())) == []


def test_files_without_a_rank_may_be_the_missing_ones() -> None:
    inputs = [file(0, world=2), file(1, None, None)]
    found = jobs(inputs, windows(*inputs))
    assert (found.missing, found.job, said(found)) == ((), {0: 0, 1: 0}, [])
    inputs = [file(0, world=8), file(1, None, None)]
    narrowed = "what is said about waiting holds for these ranks only"
    message = f"there are 2 files for 8 ranks, 1 of them without saying which they are; {narrowed}"
    assert said(jobs(inputs, windows(*inputs))) == [("low", message, 6, None)]


def test_doubled_ranks_are_not_compared() -> None:
    inputs = [file(0), file(1), file(2, rank=1), file(3, rank=2), file(4, rank=3)]
    found = jobs(inputs, windows(*inputs))
    assert (found.job, found.doubled, found.missing) == ({0: 0, 1: None, 2: None, 3: 0, 4: 0}, (1,), ())
    message = "two files say they are rank 1: b.json and c.json; neither is compared with other ranks"
    assert said(found) == [("medium", message, 1, 1), ("medium", message, 1, 2)]


def test_many_doubled_ranks_are_said_at_once() -> None:
    inputs = [file(n, rank=n % 16, world=16) for n in range(32)]
    found = jobs(inputs, windows(*inputs))
    message = "16 ranks (0-15) have several files each, rank 0 for one a.json and a2.json; none of these is compared with other ranks"
    assert (set(found.job.values()), said(found)) == ({None}, [("medium", message, 16, None)])


def test_files_of_different_jobs() -> None:
    big = [file(n, job="nccl 2.28.9") for n in range(4)]
    small = [file(4 + n, rank=n, world=2, job="nccl 2.28.9") for n in range(2)]
    found = jobs([*big, *small], windows(*big, *small))
    assert found.job == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1}
    assert (found.world_size, found.missing, found.doubled) == (4, (), ())
    message = (
        "the files are of two jobs, which are not compared: "
        "ranks 0-3 (4 ranks, nccl 2.28.9) and ranks 0-1 (2 ranks, nccl 2.28.9)"
    )
    assert said(found) == [("low", message, 2, None)]
    other = [file(0, job="nccl 2.28.9"), file(1, job="nccl 2.20.5")]
    assert jobs(other, windows(*other)).job == {0: 0, 1: 1}
    # One that is silent can be of the only job, but of none of two.
    silent = file(9, None, None)
    assert jobs([*big, silent], windows(*big, silent)).job[9] == 0
    assert jobs([*big, *small, silent], windows(*big, *small, silent)).job[9] == 2


def test_jobs_of_one_rank_each() -> None:
    inputs = [file(n, rank=0, world=1) for n in range(3)]
    found = jobs(inputs, windows(*inputs))
    assert (found.job, found.doubled, found.missing) == ({0: 0, 1: 1, 2: 2}, (), ())


def test_recordings_at_different_times() -> None:
    inputs = [file(n, rank=n % 2, world=2) for n in range(4)]
    later = (12 * S, 12 * S + 100 * MS)
    found = jobs(inputs, windows(*inputs, at={2: later, 3: later}))
    assert (found.job, found.doubled, found.missing) == ({0: 0, 1: 0, 2: 1, 3: 1}, (), ())
    message = (
        "by their clocks, the files were recorded at two different times, up to 11.9 s apart: "
        "ranks 0-1, then ranks 0-1; only what was recorded at one time is compared"
    )
    assert said(found) == [("low", message, 2, None)]
    # A tenth of a second apart is the same time, unless ranks would be doubled.
    soon = (200 * MS, 300 * MS)
    assert jobs(inputs, windows(*inputs, at={2: soon, 3: soon})).job == {0: 0, 1: 0, 2: 1, 3: 1}
    pair = [file(0, world=2), file(1, world=2)]
    assert jobs(pair, windows(*pair, at={1: soon})).job == {0: 0, 1: 0}
    assert jobs(pair, windows(*pair, at={1: later})).job == {0: 0, 1: 1}


def test_times_are_compared_on_the_common_clock() -> None:
    base = 7_889_238 * S
    moved = [file(0, world=2, base=base), file(1, world=2, base=2 * base)]
    assert jobs(moved, windows(*moved, at={0: (base, base + S)})).job == {0: 0, 1: 0}
    # Old files have absolute times and no base; others have no clock at all and tell no time.
    old = [file(0, world=2, base=None), file(1, world=2, base=10**18)]
    assert jobs(old, windows(*old, at={0: (10**18, 10**18 + S)})).job == {0: 0, 1: 0}
    assert jobs(old, windows(*old, at={0: (10**18 + 60 * S, 10**18 + 61 * S)})).job == {0: 0, 1: 1}
    assert jobs(old, windows(*old, at={0: (60 * S, 61 * S)})).job == {0: 0, 1: 0}


def test_what_else_is_said() -> None:
    inputs = [file(n, copies=int(n == 3)) for n in range(4)]
    found = jobs(inputs, windows(*inputs, names={0: "H100", 1: "H100", 2: "A100"}))
    different = "the GPUs are not all of one kind, and a slower one may be late for no other reason: H100 (ranks 0-1) and A100 (rank 2)"
    assert said(found) == [
        ("low", "one more file is a copy of d.json and was left out", 1, 3),
        ("info", different, 2, None),
    ]
    guessed = [Input(**{**vars(i), "rank_source": "name", "copies": 0}) for i in inputs]
    message = "the ranks of 4 files (0-3) are taken from their names: their content does not say them"
    assert said(jobs(guessed, windows(*guessed))) == [("info", message, 4, None)]


def test_shared_gpus() -> None:
    inputs = [file(n) for n in range(4)]
    uuids = ["GPU-AA", "aa", "GPU-bb", None]
    rows = [{"rank": n, "device": device, "uuid": uuid} for n, uuid in enumerate(uuids) for device in (0, 1)]
    devices = pa.Table.from_pylist(rows, schema=DEVICES.schema)
    found = jobs(inputs, windows(*inputs), devices)
    assert found.shared_gpus == (((0, 0), (1, 0)),)
    message = "ranks 0-1 used one GPU at the same time: it is idle when none of them uses it"
    assert said(found) == [("info", message, 2, None)]
    later = {1: (150 * MS, 200 * MS)}
    assert jobs(inputs, windows(*inputs, at=later), devices).shared_gpus == ()
    twice = [file(0, world=2), file(1, rank=0, world=2)]
    assert jobs(twice, windows(*twice), devices).shared_gpus == ()


def test_512_ranks_take_no_time() -> None:
    inputs = [file(n, world=512, path=f"/data/r{n}.json") for n in range(512)]
    found = jobs(inputs, windows(*inputs))
    assert (set(found.job.values()), said(found)) == ({0}, [])


def test_files_are_called_by_the_shortest_name_that_tells_them_apart() -> None:
    paths = ["/data/a/t.json", "/data/b/t.json", "/data/b/u.json", "/old/b/u.json", "<stdin>"]
    inputs = [file(n, rank=None, path=path) for n, path in enumerate(paths)]
    assert list(file_names(inputs).values()) == ["<stdin>", "a/t.json", "b/t.json", "data/b/u.json", "old/b/u.json"]
