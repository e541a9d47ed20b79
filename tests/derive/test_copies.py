"""Copies: what of each is exposed, runs of small ones and of migrations, and copies to the host that stop the step."""

from __future__ import annotations

from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.kineto import MAIN, KinetoTrace
from traceanalyzer.catalog.catalog import Catalog

TO_DEVICE, TO_HOST = "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"


@pytest.fixture
def rows(tmp_path):
    """The rows of one table of a trace."""

    def of(trace: KinetoTrace, table: str) -> list[dict[str, Any]]:
        return Catalog(ta.load(trace.write(tmp_path / "t.json"))).table(table).to_pylist()

    return of


def copy(trace: KinetoTrace, start: float, end: float, size: int, name: str = TO_DEVICE, **more: Any) -> KinetoTrace:
    """A copy; without a launch of its own it is launched 5 us before it starts by a call that returns at once."""
    more = {"launch": (start - 5, start - 4), "api": "cudaMemcpyAsync", **more}
    return trace.op(start, end, name=name, category="gpu_memcpy", bytes=size, **more)


def batch(count: int = 20, every: float = 30, size: int = 8192) -> KinetoTrace:
    """A kernel, then small copies `every` us apart, each of 2 us, then a kernel."""
    trace = KinetoTrace().op(0, 100, launch=(-10, -5))
    for n in range(count):
        copy(trace, 200 + n * every, 202 + n * every, size)
    end = 200 + count * every
    return trace.op(end, end + 100, launch=(end - 10, end - 5))


class TestExposed:
    def test_copies_at_one_time_share_it(self, rows):
        """Two copies side by side are one stretch of the ledger, so their exposed parts add up to it."""
        trace = copy(copy(KinetoTrace().op(0, 10), 10, 50, 1 << 20), 20, 70, 1 << 20, stream=8)
        assert [row["exposed"] for row in rows(trace, "copies")] == [40_000, 20_000]
        assert rows(trace, "ledger")[0]["exposed_memcpy"] == 60_000

    def test_under_kernels_nothing_is_exposed(self, rows):
        trace = copy(KinetoTrace().op(0, 100), 20, 70, 1 << 20, stream=8)
        assert [row["exposed"] for row in rows(trace, "copies")] == [0]

    @pytest.mark.parametrize(
        ("name", "pageable"),
        [
            (TO_DEVICE, True),
            ("Memcpy HtoD (Pinned -> Device)", False),
            ("Memcpy DtoD (Device -> Device)", False),
            ("Memcpy HtoD (Unknown -> Device)", None),
        ],
    )
    def test_pageable_is_known_or_null(self, rows, name, pageable):
        assert [row["pageable"] for row in rows(copy(KinetoTrace().op(0, 5), 10, 20, 1 << 20, name), "copies")] == [
            pageable
        ]


class TestBursts:
    def test_a_batch_moved_tensor_by_tensor(self, rows):
        (run,) = rows(batch(), "copy_bursts")
        assert (run["copies"], run["bytes"], run["median_bytes"], run["copy_kind"]) == (20, 20 * 8192, 8192, "htod")
        # From the launch of the first copy, 5 us before it, to the end of the last one: 20 copies and 19 pauses.
        assert (run["start_ns"], run["end_ns"]) == (195_000, 772_000)
        assert (run["exposed"], run["idle"]) == (40_000, 5_000 + 19 * 28_000)

    def test_a_kernel_in_between_does_not_end_a_run(self, rows):
        trace = batch(every=60)
        for n in range(19):
            trace.op(220 + n * 60, 230 + n * 60, launch=(210 + n * 60, 211 + n * 60))
        (run,) = rows(trace, "copy_bursts")
        assert (run["copies"], run["exposed"]) == (20, 40_000)
        assert run["idle"] == 5_000 + 19 * (58_000 - 10_000)

    @pytest.mark.parametrize("every", [250, 5000])
    def test_pauses_in_which_the_host_did_something_else_end_a_run(self, rows, every):
        assert rows(batch(every=every), "copy_bursts") == []

    def test_a_large_copy_ends_a_run(self, rows):
        trace = batch()
        trace.events = [event for event in trace.events if event["ts"] not in (500, 495)]
        copy(trace, 500, 520, 1 << 20)
        assert [run["copies"] for run in rows(trace, "copy_bursts")] == [10, 9]

    def test_single_copies_and_copies_on_the_device_are_no_run(self, rows):
        trace = KinetoTrace()
        for n in range(10):
            trace.op(n * 1000, n * 1000 + 100)
            copy(trace, n * 1000 + 120, n * 1000 + 121, 4, TO_HOST)
            trace.op(n * 1000 + 130, n * 1000 + 140).op(n * 1000 + 150, n * 1000 + 160).op(
                n * 1000 + 170, n * 1000 + 180
            )
            for k in range(3):
                copy(trace, n * 1000 + 200 + k * 10, n * 1000 + 201 + k * 10, 4, "Memcpy DtoD (Device -> Device)")
        assert rows(trace, "copy_bursts") == []

    def test_four_thousand_copies_of_half_a_microsecond(self, rows):
        trace = KinetoTrace().op(0, 1)
        for n in range(4096):
            copy(trace, 10 + n, 10.5 + n, 4, launch=(9.8 + n, 9.9 + n))
        (run,) = rows(trace, "copy_bursts")
        assert (run["copies"], run["exposed"], run["bytes"]) == (4096, 2_048_000, 16_384)
        assert run["exposed"] + run["idle"] <= run["end_ns"] - run["start_ns"]


def step(trace: KinetoTrace, start: float, *, size: int, host: float, blocking: bool = True) -> KinetoTrace:
    """100 us of compute, a copy of 50 us to the host, and then `host` us until the next launch."""
    trace.op(start, start + 100, launch=(start - 10, start - 5))
    call = (start + 5, start + (160 if blocking else 10))
    trace.range("aten::to", start + 2, start + 165, category="cpu_op")
    trace.range("aten::copy_", start + 3, start + 163, category="cpu_op")
    copy(trace, start + 100, start + 150, size, TO_HOST, launch=call)
    return trace


def steps(count: int, *, host: float, size: int = 1 << 20, blocking: bool = True) -> KinetoTrace:
    trace = KinetoTrace()
    for n in range(count):
        step(trace, n * (150 + host), size=size, host=host, blocking=blocking)
    return trace.op(
        count * (150 + host), count * (150 + host) + 100, launch=(count * (150 + host) - 10, count * (150 + host) - 5)
    )


class TestReadbacks:
    def test_the_copy_and_the_idle_time_behind_it(self, rows):
        found = rows(steps(3, host=80), "readbacks")
        assert [(row["exposed"], row["idle"], row["end_ns"] - row["start_ns"]) for row in found] == [
            (50_000, 80_000, 130_000)
        ] * 3
        assert {(row["operator"], row["thread"], row["pageable"], row["last"]) for row in found} == {
            ("aten::to", MAIN, True, False)
        }

    def test_idle_time_counts_as_far_as_the_work_before_could_hide_it(self, rows):
        assert [row["idle"] for row in rows(steps(2, host=900), "readbacks")] == [100_000, 100_000]

    def test_copies_behind_one_another_share_the_work_before_them(self, rows):
        trace = KinetoTrace().op(0, 100, launch=(-10, -5))
        for start in (100, 170, 240):
            copy(trace, start, start + 10, 1 << 20, TO_HOST, launch=(start - 3, start + 12))
        trace.op(310, 400, launch=(305, 306))
        assert [row["idle"] for row in rows(trace, "readbacks")] == [60_000, 40_000, 0]

    def test_a_copy_that_nobody_waits_for(self, rows):
        assert rows(steps(3, host=80, blocking=False), "readbacks") == []

    def test_an_asynchronous_copy_and_a_wait_right_behind_it(self, rows):
        trace = steps(1, host=80, blocking=False).call("cudaStreamSynchronize", 12, 155)
        assert [row["idle"] for row in rows(trace, "readbacks")] == [80_000]

    def test_a_wait_for_later_work_is_no_wait_for_the_copy(self, rows):
        trace = steps(1, host=0, blocking=False)
        trace.op(150, 300, launch=(20, 25)).call("cudaStreamSynchronize", 30, 305)
        assert rows(trace, "readbacks") == []

    def test_the_last_copy_is_marked(self, rows):
        trace = KinetoTrace().op(0, 100, launch=(-10, -5))
        copy(trace, 100, 150, 1 << 20, TO_HOST, launch=(5, 160))
        assert [(row["last"], row["idle"]) for row in rows(trace, "readbacks")] == [(True, 0)]

    def test_the_line_of_the_program(self, rows):
        trace = steps(1, host=80)
        trace.range("train.py(41): step", -20, 200, category="python_function")
        trace.range("torch/_tensor.py(9): cpu", 1, 170, category="python_function")
        assert [row["source"] for row in rows(trace, "readbacks")] == ["train.py:41 (step)"]
