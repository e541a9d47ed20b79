"""GPUs that several files used at the same time: one ledger, exactly, and nobody blamed for what another process used."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.nsys.nsys_export import Tables, kernel, make_export, runtime
from traceanalyzer.analysis import analyze
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.ledger.shared import KINDS, Use, common_share, divide_gpu, shift_portion
from traceanalyzer.intervals import Spans, join, total, union
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import ledger_lines

US, MS = 1_000, 1_000_000
EPOCH = 1_700_000_000_000_000_000
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def spans(pairs: list[tuple[int, int]]) -> Spans:
    start, end = np.array([*zip(*pairs, strict=True)] or [(), ()], np.int64)
    return union(start, end)


piece = st.tuples(st.integers(0, 60), st.integers(1, 8)).map(lambda at: (at[0], at[0] + at[1]))
pieces = st.lists(piece, max_size=5).map(spans)
use = st.tuples(pieces, pieces, pieces, pieces, st.integers(-3, 0), st.integers(70, 73)).map(
    lambda made: Use((made[4], made[5]), (made[4], made[5]), Busy(*made[:4]))
)


@given(st.lists(use, min_size=2, max_size=3), st.integers(-5, 5))
def test_the_portions_tile_the_window(users: list[Use], by: int) -> None:
    uses = {(number, 0): one for number, one in enumerate(users)}
    gpu, portions = divide_gpu(uses)
    tiles = [[*portion.lines.values(), portion.idle] for portion in portions.values()]
    every = [part for mine in tiles for part in mine]
    assert sum(map(total, every)) == gpu.window == total(join(*every))
    assert sum(total(portion.idle) for portion in portions.values()) == gpu.window - gpu.busy
    for kind in KINDS:
        together = total(join(*(getattr(one.busy, kind) for one in users)))
        assert kind == "memset" or together == getattr(gpu, kind)
    for key, portion in portions.items():
        back = shift_portion(shift_portion(portion, by), -by)
        assert all(np.array_equal(a, b) for a, b in zip(back.idle, portion.idle, strict=True))
        assert total(join(portion.idle, uses[key].busy.everything)) == total(portion.idle) + total(
            uses[key].busy.everything
        )


def test_how_much_of_the_time_all_were_recorded() -> None:
    busy = Busy(*(spans([(0, 10)]) for _ in KINDS))
    uses = {(0, 0): Use((0, 100), (-5, 200), busy), (1, 0): Use((50, 100), (40, 90), busy)}
    assert common_share(uses) == 0.5


def export(
    path: Path, rank: int, busy: list[tuple[int, int]], *, at: int = EPOCH, clock: bool = True, uuid: str = UUID
) -> None:
    """Kernels of one rank, each launched 5 us before it begins, by a call of 4 us, in a recording from 0 to 100 ms."""
    pid, tables = 10 + rank, Tables()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel(start, end, pid=pid, correlation=number, deviceId=0) for number, (start, end) in enumerate(busy, 1)
    ]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        runtime(start - 5 * US, start - US, pid=pid, correlation=number) for number, (start, _) in enumerate(busy, 1)
    ]
    tables["TARGET_INFO_GPU"] = [{"id": 0, "name": "NVIDIA H100", "smCount": 132, "totalMemory": 2**36, "uuid": uuid}]
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": 0, "cudaId": 0, "pid": pid, "uuid": uuid}]
    if clock:
        tables["TARGET_INFO_SESSION_START_TIME"] = [{"utcEpochNs": at}]
        tables["ANALYSIS_DETAILS"] = [{"duration": 100 * MS, "startTime": 0, "stopTime": 100 * MS}]
    make_export(path / f"rank{rank}.sqlite", tables)


def result_of(folder: Path) -> Result:
    return analyze(ta.load(folder))


def shown(result: Result) -> list[str]:
    return [note.message for note in result.health if "one GPU" in note.message]


def test_two_ranks_on_one_gpu(tmp_path: Path) -> None:
    # Each alone leaves the GPU idle half of the time and more; together they leave it idle for 18 of 98 ms.
    export(tmp_path, 0, [(at * MS, (at + 10) * MS) for at in range(1, 100, 20)])
    export(tmp_path, 1, [(at * MS, (at + 6) * MS) for at in range(13, 100, 20)])
    result = result_of(tmp_path)
    (gpu,) = result.devices
    assert (gpu.rank, gpu.device, gpu.users, gpu.ranks) == (0, 0, 2, [0, 1])
    assert gpu.window_ns == 98 * MS
    assert gpu.busy_ns == gpu.compute_ns == 80 * MS
    assert gpu.idle_ns == 18 * MS == sum(gpu.idle_by_cause_ns.values())
    assert gpu.max_gap_ns == 2 * MS
    assert (gpu.gpu_op_count, gpu.kernel_count) == (10, 10)
    assert sum(ledger_lines(gpu).values()) == gpu.window_ns
    assert "GPU 0 of ranks 0, 1" in result.verdict.headline
    assert shown(result) == ["ranks 0-1 used one GPU at the same time: it is idle when none of them uses it"]
    assert result.job is not None
    assert result.job.gpu_count == 1
    idle = [one for one in result.findings if one.rule in ("HST001", "LCH001", "GAP001")]
    assert sum(one.saving.recoverable_ns or 0 for one in idle) <= gpu.idle_ns
    assert all(one.saving.predicted_speedup is None for one in result.findings)
    assert sum(one.saving.recoverable_ns or 0 for one in result.findings) <= gpu.window_ns
    assert "No GPU work was recorded" not in render_text(result)
    assert "GPU 0 of ranks 0, 1 (NVIDIA H100): window 98 ms" in render_text(result)


def test_clocks_that_began_at_other_times(tmp_path: Path) -> None:
    busy = [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)]
    export(tmp_path, 0, busy)
    export(tmp_path, 1, [(start - 5 * MS, end - 5 * MS) for start, end in busy], at=EPOCH + 5 * MS)
    (gpu,) = result_of(tmp_path).devices
    assert (gpu.window_ns, gpu.busy_ns, gpu.kernel_count) == (90 * MS, 50 * MS, 10)


def test_captures_at_different_times_are_not_shared(tmp_path: Path) -> None:
    busy = [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)]
    export(tmp_path, 0, busy)
    export(tmp_path, 1, busy, at=EPOCH + 3600 * 10**9)
    result = result_of(tmp_path)
    assert [gpu.users for gpu in result.devices] == [1, 1]
    assert not shown(result)


def test_files_without_a_clock_give_no_idle_time(tmp_path: Path) -> None:
    busy = [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)]
    export(tmp_path, 0, busy)
    export(tmp_path, 1, busy, clock=False)
    result = result_of(tmp_path)
    (note,) = shown(result)
    assert note.startswith("ranks 0-1 used one GPU, and their files do not all say when their clocks began")
    assert result.verdict.headline == f"Could not judge: {note}."


def test_recordings_that_hardly_overlap_give_no_idle_time(tmp_path: Path) -> None:
    busy = [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)]
    export(tmp_path, 0, busy)
    export(tmp_path, 1, busy, at=EPOCH + 50 * MS)
    result = result_of(tmp_path)
    assert [gpu.users for gpu in result.devices] == [1, 1]
    assert any("was recorded of all of them" in note for note in shown(result))
    assert result.verdict.headline.startswith("Could not judge: ranks 0-1 used one GPU, and only 36%")


def test_instances_of_a_gpu_are_not_shared(tmp_path: Path) -> None:
    busy = [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)]
    export(tmp_path, 0, busy, uuid="MIG-1")
    export(tmp_path, 1, busy, uuid="MIG-2")
    assert [gpu.users for gpu in result_of(tmp_path).devices] == [1, 1]


def test_a_part_that_was_of_a_shared_gpu_is_itself_again(tmp_path: Path) -> None:
    export(tmp_path, 0, [(at * MS, (at + 10) * MS) for at in range(10, 100, 20)])
    alone = result_of(tmp_path).devices
    export(tmp_path, 1, [(at * MS, (at + 10) * MS) for at in range(15, 85, 20)])
    from traceanalyzer.analysis import analyze_parts, parts_of

    parts = parts_of(ta.load(tmp_path))
    assert len(analyze_parts(parts).result.devices) == 1
    assert [gpu.idle_ns for gpu in analyze_parts(parts[:1]).result.devices] == [gpu.idle_ns for gpu in alone]
    assert all(a.start_ns <= b.start_ns for a, b in pairwise(analyze_parts(parts[:1]).result.recordings))
