"""The headline is literally true of the ledger, and `bound_by` agrees with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.analysis import analyze
from traceanalyzer.result.document import Saving
from traceanalyzer.result.verdict import Split, judge


def split(name: str = "GPU 0", **percent: float) -> Split:
    by_cause = {cause: round(share * 10_000) for cause, share in percent.items()}
    busy = sum(by_cause.get(c, 0) for c in ("compute", "communication", "memcpy", "memset"))
    return Split(name, 1_000_000, 1_000_000 - busy, by_cause)


@pytest.mark.parametrize(
    ("shares", "bound_by", "headline"),
    [
        ({"compute": 32, "input": 61, "host": 7}, "input", "GPU 0 is idle 68% of the time; the data loader causes 61 points of it."),
        ({"compute": 97, "host": 3}, "compute", "GPU 0 computes 97% of the time; nothing else takes as much as 5%."),
        ({"compute": 99.7, "host": 0.3}, "compute", "GPU 0 computes over 99% of the time; nothing else takes as much as 5%."),
        ({"compute": 100}, "compute", "GPU 0 computes 100% of the time; nothing else takes as much as 5%."),
        (
            {"compute": 0.2, "launch": 99.8},
            "launch",
            "GPU 0 is idle over 99% of the time; launching kernels causes over 99 points of it.",
        ),
        (
            {"compute": 60, "memcpy": 40},
            "compute",
            "GPU 0 computes 60% of the time, and 40% goes to memory copies that no computation covers.",
        ),
        ({"compute": 30, "memset": 70}, "memcpy", "GPU 0 spends 70% of the time on memsets that no computation covers."),
        (
            {"compute": 30, "memcpy": 40, "memset": 30},
            "memcpy",
            "GPU 0 spends 70% of the time on memory copies and memsets that no computation covers.",
        ),
        (
            {"compute": 20, "host": 38, "host_untraced": 42},
            "host",
            "GPU 0 is idle 80% of the time; the host between launches causes 80 points of it, "
            "42 of them without a recorded call or range.",
        ),
        # Less than half of the time computing: what takes the rest bounds it, even if each part is smaller.
        (
            {"compute": 40, "launch": 36, "host": 24},
            "launch",
            "GPU 0 is idle 60% of the time; launching kernels causes 36 points of it.",
        ),
    ],
)  # fmt: skip
def test_one_gpu(shares, bound_by, headline):
    verdict = judge([split(**shares)])
    assert (verdict.bound_by, verdict.headline) == (bound_by, headline)


@pytest.mark.parametrize(
    ("waited", "explained", "said"),
    [
        (30, 30, "18% of"),  # more than half of what is lost
        (20, 20, "18% of"),  # of the other 28 points no finding says anything
        (20, 48, "GPU 0 computes"),  # of the other 28 points a finding says what they are
        (10, 10, "GPU 0 computes"),
    ],
)
def test_waiting_for_others_stands_for_communication_that_is_not_explained(waited, explained, said):
    waits = replace(
        split(compute=52, communication=48),
        waited=(waited * 10_000, "18% of the GPUs' time is waiting for rank 3"),
        explained=explained * 10_000,
    )
    assert judge([waits]).headline.startswith(said)


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Matrix products run without tensor cores", "matrix products run without tensor cores"),
        ("FP32 products", "FP32 products"),
    ],
)
def test_computing_that_could_be_cheaper(title, said):
    busy = replace(split(compute=97, host=3), waste=(600_000, title))
    assert judge([busy]).headline == f"GPU 0 computes 97% of the time, up to 60 points of which could be saved: {said}."


def test_the_larger_loss_is_the_headline():
    idle = replace(split(compute=40, input=60), waste=(100_000, "Small kernels"))
    assert judge([idle]).headline == "GPU 0 is idle 60% of the time; the data loader causes 60 points of it."


def test_of_several_gpus_the_one_that_computes_least_is_told_of():
    splits = [split("rank 0 (GPU 0)", compute=90, host=10), split("rank 1 (GPU 1)", compute=30, communication=70)]
    assert judge(splits).headline == (
        "Rank 1 (GPU 1) computes the least of 2 GPUs: it spends 70% of the time on communication that no computation covers."
    )


def test_gpus_that_compute_alike_are_not_called_the_least():
    same = [split(f"GPU {n}", compute=90, host=10) for n in range(3)]
    assert judge(same).headline.startswith("GPU 0 computes as little as any of 3 GPUs: it is idle 10% of the time;")


def result(trace: KinetoTrace, tmp_path):
    return analyze(ta.load(trace.write(tmp_path / "t.json")))


def test_operations_without_duration_cannot_be_judged(tmp_path):
    found = result(KinetoTrace().op(5, 5), tmp_path)
    assert not found.judged
    assert found.verdict.headline == "Could not judge: none of the GPU operations in the trace has a duration."


def test_a_trace_of_memsets(tmp_path):
    trace = KinetoTrace()
    for start in (0, 9):
        trace.op(start, start + 5, category="gpu_memset", name="Memset (Device)")
    assert "on memsets that no computation covers" in result(trace, tmp_path).verdict.headline


def test_files_without_a_rank_are_told_apart_by_name(tmp_path):
    for n, name in enumerate(("first", "second")):
        KinetoTrace().op(0, 10, launch=(-5, -2)).op(100, 110 + n, launch=(90, 95)).write(tmp_path / f"{name}.json")
    found = analyze(ta.load(tmp_path))
    assert found.verdict.headline.startswith("GPU 0 of first.json computes the least of 2 GPUs: ")
    assert [d.rank for d in found.devices] == [None, None]


def test_a_sharper_finding_stands_for_its_cause():
    collecting = ("host", 550_000, "The GPU waits while Python collects garbage")
    idle = replace(split(compute=20, host=60, launch=20), sharper=(collecting,))
    assert (
        judge([idle]).headline
        == "GPU 0 is idle 80% of the time; for 55 points of that the GPU waits while Python collects garbage."
    )
    minor = replace(idle, sharper=(("host", 250_000, "A part"), ("launch", 200_000, "Another")))
    assert judge([minor]).headline == judge([replace(idle, sharper=())]).headline


@pytest.mark.parametrize(
    ("recoverable", "speedup", "pays"),
    [(0, None, False), (None, None, False), (1000, None, True), (1000, 1.0, False), (1000, 1.2, True)],
)
def test_a_saving_pays_unless_the_replay_denies_it(recoverable, speedup, pays):
    assert Saving(recoverable, 0.1, 1.1, None, predicted_speedup=speedup).pays is pays


@needs_corpus
def test_the_headline_promises_nothing_that_the_replay_denies():
    """Fusing its small kernels would free a sixth of the GPU's time, but the host sets the pace."""
    result = ta.analyze(ta.load(CORPUS / "kineto" / "conv_layout.fixed.pt.trace.json.gz"))
    assert result.findings[0].rule == "KRN005" and not result.findings[0].saving.pays
    assert "could be saved" not in result.verdict.headline
