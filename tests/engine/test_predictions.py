"""What a fix gives: waits that are waits, one bound, the gain by place, pinned copies, ranges; on small made-up traces."""

from __future__ import annotations

import numpy as np
import pytest

import traceanalyzer as ta
from tests.engine.test_whatif import analysed, measured_step, saving
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.replay.replay import NOTHING, Change, Timeline
from traceanalyzer.derive.replay.timelines import timeline
from traceanalyzer.intervals import Spans
from traceanalyzer.render.findings import gain as text_gain
from traceanalyzer.result.document import Finding, PlaceSaving, Result, Saving
from traceanalyzer.result.words.gain import gain as page_gain

MS = 1_000


def catalog(trace: KinetoTrace, tmp_path) -> Catalog:
    return Catalog(ta.load(trace.write(tmp_path / "trace.json")))


def spans(start: float, end: float) -> Spans:
    """In us."""
    return np.array([round(start * 1000)]), np.array([round(end * 1000)])


def length(line: Timeline, change: Change = NOTHING) -> float:
    """In us."""
    return int(line.replay(change, np.array([len(line.start) - 1]))[0]) / 1000


def copying_loop(api: str, kind: str, steps: int = 5) -> KinetoTrace:
    """Each step is a kernel of 10 ms and a copy of 4 us, whose call returns 8 us after it; then the host is free for 20 us."""
    trace, at = KinetoTrace(), 0.0
    for _ in range(steps):
        trace.op(at + 5, at + 10_005, launch=(at, at + 4))
        memory = "Device -> Pageable" if kind == "DtoH" else "Pageable -> Device"
        copy = at + 10_010, at + 10_014
        trace.op(
            *copy,
            launch=(at + 10, copy[1] + 8),
            api=api,
            name=f"Memcpy {kind} ({memory})",
            category="gpu_memcpy",
            bytes=4,
        )
        at += 10_042
    return trace


@pytest.mark.parametrize(
    ("api", "kind"),
    [("cudaMemcpyAsync", "DtoH"), ("cudaMemcpy", "DtoH"), ("cudaMemcpy", "HtoD"), ("cudaMemcpyAsync", "HtoD")],
)
def test_a_copy_whose_call_waits_lets_go_when_the_work_before_it_is_done(tmp_path, api: str, kind: str) -> None:
    (line,) = catalog(copying_loop(api, kind), tmp_path).value("timelines").values()
    kernels = (line.start[~line.copies], line.reach[~line.copies])
    assert length(line) == pytest.approx(50_000, rel=0.01)
    assert length(line, Change(work=kernels, keep=0.25)) == pytest.approx(12_500, rel=0.02)


def test_a_window_may_begin_and_end_with_the_host(tmp_path) -> None:
    """It prepares for 100 us, launches 50 us of work, waits for that and works on for 30 us."""
    trace = KinetoTrace().op(105, 155, launch=(100, 103)).call("cudaStreamSynchronize", 110, 156)
    made = catalog(trace, tmp_path)
    ops, launches, host = made.table("ledger_ops"), made.table("launches"), made.value("host")
    zero = int(ops["start_ns"][0].as_py()) - 105_000
    line = timeline(ops, launches, host, (zero, zero + 186_000))
    assert length(line) == line.length / 1000 == 186

    def without(**change: Spans) -> float:
        at = {name: tuple(part + zero for part in given) for name, given in change.items()}
        return length(line, Change(**at))

    assert without(host=spans(0, 100)) == pytest.approx(86, abs=0.5)
    assert without(host=spans(160, 186)) == pytest.approx(160, abs=1)
    # The host needs 10 us to its wait, which is then no wait.
    assert without(work=spans(105, 155)) == 141
    within = timeline(ops, launches, host, (zero + 105_000, zero + 155_000))
    assert length(within) == within.length / 1000 == 50


def logging_loop(steps: int = 6) -> KinetoTrace:
    """Steps of 51 ms: 30 ms of work on the GPU, waited for, then 15 ms in log_metrics and 6 ms in shuffle."""
    trace, at = KinetoTrace(), 0.0
    for n in range(steps):
        trace.range(f"ProfilerStep#{n}", at, at + 51 * MS)
        trace.op(at + 5, at + 30 * MS, launch=(at, at + 4), grid=[1000, 1, 1]).call(
            "cudaDeviceSynchronize", at + 10, at + 30 * MS + 5
        )
        trace.range("train.py(150): log_metrics", at + 30 * MS + 10, at + 45 * MS, category="python_function")
        trace.range("train.py(90): shuffle", at + 45 * MS, at + 51 * MS, category="python_function")
        at += 51 * MS
    return trace


def result_of(trace: KinetoTrace, tmp_path) -> Result:
    return ta.analyze(ta.load(trace.write(tmp_path / "trace.json")))


def test_the_gain_is_told_by_place(tmp_path) -> None:
    found = next(f for f in result_of(logging_loop(), tmp_path).findings if f.rule == "HST001")
    place, whole = found.saving.place, found.saving
    assert place is not None and place.name == "train.py:150 (log_metrics)"
    assert place.per_step_ns == pytest.approx(15e6, rel=0.02) and place.ns >= 4 * 15e6
    assert place.predicted_step_ns == pytest.approx(36e6, rel=0.02)
    assert whole.predicted_step_ns == pytest.approx(30e6, rel=0.02)
    assert place.predicted_speedup == pytest.approx(51 / 36, rel=0.02)
    said = text_gain(found, False)
    assert "faster without train.py:150 (log_metrics) alone; an average step takes 36" in said
    assert "without all of it" in said


def test_a_phase_of_the_program_is_no_place(tmp_path) -> None:
    """Kernels that are launched one by one in `forward`, which is the whole of the program."""
    trace, at = KinetoTrace(), 0.0
    for _ in range(400):
        trace.op(at + 36, at + 38, launch=(at + 30, at + 34)).range("aten::add", at + 20, at + 35, category="cpu_op")
        at += 60
    trace.range("forward", 0, at)
    assert all(f.saving.place is None for f in result_of(trace, tmp_path).findings)


def within_bounds(result: Result) -> bool:
    return all(
        f.saving.prediction_note or f.saving.predicted_speedup <= f.saving.speedup_ceiling * 1.000001
        for f in result.findings
        if f.saving.predicted_speedup and f.saving.speedup_ceiling
    )


@pytest.mark.parametrize(
    "name",
    [
        "kineto/dict_h2d.slow",
        "kineto/mask_sync.slow",
        "kineto/gc_stack.slow",
        "pairs/numpy_metrics.slow",
        "pairs/fsync_log.slow",
    ],
)
def test_no_prediction_is_above_its_bound_unless_it_says_what_goes_with_it(name: str) -> None:
    assert within_bounds(analysed(name))


def test_what_goes_with_a_cause_is_named() -> None:
    """600 copies one by one claim a fifth of the window; the waits after them, which another rule claims, go with them."""
    found = saving(analysed("kineto/dict_h2d.slow"), "CPY003")
    assert found.predicted_speedup > found.speedup_ceiling
    assert found.prediction_note.startswith("With ") and found.prediction_note.endswith("that goes with it")


def test_a_finding_with_a_little_idle_time_after_waits_does_not_free_the_host(tmp_path) -> None:
    """Half of each step the host works while the GPU waits; 300 us of launching in between are no reason that both could overlap."""
    trace, at = KinetoTrace(), 0.0
    for n in range(8):
        trace.range(f"ProfilerStep#{n}", at, at + 10 * MS)
        trace.range("schedule", at, at + 5 * MS).call("cudaGraphLaunch", at + 5 * MS, at + 5.8 * MS)
        trace.op(
            at + 5.8 * MS, at + 9.9 * MS, launch=(at + 5 * MS, at + 5.8 * MS), api="cudaLaunchKernel", grid=[1000, 1, 1]
        )
        trace.call("cudaEventSynchronize", at + 6 * MS, at + 9.92 * MS)
        at += 10 * MS
    result = result_of(trace, tmp_path)
    assert within_bounds(result)
    assert all(f.saving.prediction_note is None for f in result.findings if f.rule == "GAP001")


def pageable_copies(*, shown: bool) -> KinetoTrace:
    trace, at = KinetoTrace(), 0.0
    trace.metadata["deviceProperties"][0] |= {"computeMajor": 8, "computeMinor": 0}
    for _ in range(8):
        call, size = (at + 1, at + 1015), 12_000_000
        trace.op(
            at + 5,
            at + 1005,
            launch=call,
            api="cudaMemcpyAsync",
            name="Memcpy HtoD (Pageable -> Device)",
            category="gpu_memcpy",
            bytes=size,
        )
        trace.op(at + 1030, at + 2030, launch=(at + 1020, at + 1024), grid=[1000, 1, 1])
        at += 2100
    if shown:
        trace.op(
            at,
            at + 240,
            launch=(at - 9, at - 5),
            api="cudaMemcpyAsync",
            name="Memcpy HtoD (Pinned -> Device)",
            category="gpu_memcpy",
            bytes=size,
        )
    return trace


@pytest.mark.parametrize(("shown", "milliseconds"), [(True, 0.24), (False, 12 / 26)])
def test_pinning_makes_a_copy_as_fast_as_pinned_ones_and_hides_nothing(
    tmp_path, shown: bool, milliseconds: float
) -> None:
    """At the bandwidth that the GPU's own pinned copies show, else at that of its generation's link: 26 GB/s on PCI Express 4."""
    trace = pageable_copies(shown=shown)
    copies = catalog(trace, tmp_path).table("copies").to_pylist()
    assert copies[0]["pinned"] == pytest.approx(milliseconds * 1e6, rel=0.01)
    found = saving(result_of(trace, tmp_path), "CPY002")
    assert found.recoverable_ns == pytest.approx(8 * (1 - milliseconds) * 1e6, rel=0.01)
    assert 1 < found.predicted_speedup <= found.speedup_ceiling or "idle time" in found.prediction_note


@pytest.mark.parametrize(
    ("pair", "rule"),
    [
        ("kineto/attention_masked", "KRN002"),
        ("kineto/elementwise_chain", "KRN005"),
        ("kineto/small_grid", "KRN004"),
        ("pairs/attn_bias_infer", "KRN002"),
        ("pairs/few_rows", "KRN004"),
        ("pairs/fp32_conv", "KRN001"),
        ("pairs/fp32_mlp", "KRN001"),
        ("pairs/nchw_unet", "KRN003"),
        ("pairs/norm_silu_chain", "KRN005"),
    ],
)
def test_the_range_of_an_estimate_holds_what_the_fixed_program_takes(pair: str, rule: str) -> None:
    found = saving(analysed(f"{pair}.slow"), rule)
    assert found.predicted_speedup_range is not None
    low, high = found.predicted_speedup_range
    assert low <= measured_step(f"{pair}.slow") / measured_step(f"{pair}.fixed") <= high
    assert 1 <= low <= found.predicted_speedup <= high


def finding(own: Saving) -> Finding:
    return next(Finding("X001", "x", "X", "high", "low", "It is slow.", None, {}, own, [], [], []) for _ in range(1))


def test_ranges_are_written_as_ranges() -> None:
    own = Saving(300_000_000, 0.3, 1.43, None, predicted_speedup=1.4, predicted_speedup_range=(1.38, 12.6))
    assert "1.4× to 13× faster without it, estimated from what the GPU can do" in text_gain(finding(own), False)
    assert text_gain(finding(own), False).startswith("About 300 ms")
    gain = page_gain(own)
    assert gain is not None and gain.speed == "1.4× to 13× faster" and gain.term == "estimated"


def test_the_page_tells_the_gain_by_place_and_the_whole_beside_it() -> None:
    place = PlaceSaving("train.py:155 (log_metrics)", 190_000_000, 19_000_000, 32_000_000, 1.59)
    own = Saving(300_000_000, 0.6, 2.5, 30_000_000, 51_000_000, 21_000_000, 2.43, place=place)
    gain = page_gain(own)
    assert gain is not None and gain.speed == "1.59× faster"
    assert gain.rest == (
        "without train.py:155 (log_metrics) alone; an average step takes 32 ms instead of 51 ms; 2.43× without all of it"
    )
