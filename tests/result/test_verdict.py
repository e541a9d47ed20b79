"""The headline is literally true of the ledger, and `bound_by` agrees with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.analysis import analyze
from traceanalyzer.result.document import TIMED, Saving
from traceanalyzer.result.verdict import Culprit, Pace, Split, judge

SECOND = 1_000_000_000


def split(name: str = "GPU 0", **percent: float) -> Split:
    """A window of one second."""
    by_cause = {cause: round(share * SECOND / 100) for cause, share in percent.items()}
    busy = sum(by_cause.get(c, 0) for c in ("compute", "communication", "memcpy", "memset", "turnaround"))
    return Split(name, SECOND, SECOND - busy, by_cause)


def headline(*splits: Split) -> str:
    return judge(list(splits)).headline


@pytest.mark.parametrize(
    ("shares", "bound_by", "said"),
    [
        ({"compute": 32, "input": 61, "host": 7}, "input", "GPU 0 is idle 68% of the time; the data loader costs 610 ms of 1 s."),
        ({"compute": 97, "host": 3}, "compute", "GPU 0 computes 97% of the time; nothing else takes as much as 5%."),
        ({"compute": 99.7, "host": 0.3}, "compute", "GPU 0 computes over 99% of the time; nothing else takes as much as 5%."),
        ({"compute": 100}, "compute", "GPU 0 computes 100% of the time; nothing else takes as much as 5%."),
        (
            {"compute": 60, "memcpy": 40},
            "compute",
            "GPU 0 computes 60% of the time, and 40% (400 ms of 1 s) goes to memory copies that no computation covers.",
        ),
        (
            {"compute": 30, "memset": 70},
            "memcpy",
            "GPU 0 spends 70% of the time (700 ms of 1 s) on memsets that no computation covers.",
        ),
        (
            {"compute": 30, "memcpy": 40, "memset": 30},
            "memcpy",
            "GPU 0 spends 70% of the time (700 ms of 1 s) on memory copies and memsets that no computation covers.",
        ),
        (
            {"compute": 20, "host": 38, "host_untraced": 42},
            "host",
            "GPU 0 is idle 80% of the time; the host between launches costs 800 ms of 1 s, "
            "52% of it without a recorded call or range.",
        ),
        # Less than half of the time computing: what takes the rest bounds it, even if each part is smaller.
        (
            {"compute": 40, "launch": 36, "host": 24},
            "launch",
            "GPU 0 is idle 60% of the time; launching kernels costs 360 ms of 1 s.",
        ),
        ({"compute": 40, "launch_copies": 60}, "launch", "GPU 0 is idle 60% of the time; launching copies costs 600 ms of 1 s."),
        (
            {"compute": 40, "launch_copies": 40, "launch": 20},
            "launch",
            "GPU 0 is idle 60% of the time; launching kernels and copies costs 600 ms of 1 s.",
        ),
        ({"compute": 40, "os": 60}, "os", "GPU 0 is idle 60% of the time; system calls of the launching thread cost 600 ms of 1 s."),
        # Copies are the largest single loss, and yet the GPU mostly stands idle.
        (
            {"compute": 10, "memcpy": 30, "launch": 29, "host": 16, "synchronization": 15},
            "memcpy",
            "GPU 0 is idle 60% of the time; launching kernels costs 290 ms of 1 s, "
            "and 30% of the time goes to memory copies that no computation covers.",
        ),
        # Nothing recorded says why: that is no cause, and no verdict on this part.
        (
            {"compute": 50, "queued": 48, "host": 2},
            "compute",
            "Could not judge why GPU 0 is idle 50% of the time: work was launched, and nothing recorded says why it did not run.",
        ),
    ],
)  # fmt: skip
def test_one_gpu(shares, bound_by, said):
    verdict = judge([split(**shares)])
    assert (verdict.bound_by, verdict.headline) == (bound_by, said)


def test_time_is_told_by_the_step_where_steps_are_known():
    steady = replace(split(compute=20, input=80), pace=Pace(50_000_000, even=True))
    assert headline(steady).endswith("the data loader costs 40 ms of each 50 ms step.")
    uneven = replace(steady, pace=Pace(50_000_000, even=False))
    assert headline(uneven).endswith("the data loader costs 40 ms of the average 50 ms step.")


def test_work_that_a_recording_does_not_show_is_no_idle_time():
    hidden = replace(split(compute=10, queued=90), unseen=880_000_000)
    assert headline(hidden) == (
        "Could not judge 88% of the time: work from before the recording, which it does not show, may have been running."
    )


def culprit(subject: str, percent: float, level: int = 2, bound_by: str = "host") -> Culprit:
    return Culprit(bound_by, level, subject, round(percent * SECOND / 100))


def test_who_causes_most_of_the_largest_loss_is_named():
    idle = replace(split(compute=20, host=80), pace=Pace(51_000_000, even=True))
    named = replace(idle, culprits=(culprit("log_metrics (train.py:155)", 41),))
    assert headline(named) == "log_metrics (train.py:155) leaves GPU 0 idle 20.9 ms of each 51 ms step."
    # What says more goes first: what the host was at, then the function, then the place.
    both = replace(named, culprits=(*named.culprits, culprit("Garbage collection", 70, level=1)))
    assert headline(both).startswith("Garbage collection leaves")
    without = headline(idle)
    assert headline(replace(idle, culprits=(culprit("log_metrics (train.py:155)", 39),))) == without
    assert headline(replace(idle, culprits=(culprit("Loading data in f", 60, bound_by="input"),))) == without


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
        waited=(waited * SECOND // 100, "18% of the GPUs' time is waiting for rank 3"),
        explained=explained * SECOND // 100,
    )
    assert headline(waits).startswith(said)


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Matrix products run without tensor cores", "matrix products run without tensor cores"),
        ("FP32 products", "FP32 products"),
    ],
)
def test_computing_that_could_be_cheaper(title, said):
    busy = replace(split(compute=97, host=3), waste=(600_000_000, title))
    assert headline(busy) == f"GPU 0 computes 97% of the time; about 600 ms of 1 s could be saved: {said}."


def test_a_leak_is_told_where_nothing_larger_is_there():
    leaks = replace(split(compute=97, host=3), beside="every step leaves 16 MiB more in use")
    assert headline(leaks) == "GPU 0 computes 97% of the time; every step leaves 16 MiB more in use."
    assert "leaves" not in headline(replace(leaks, waste=(600_000_000, "FP32 products")))


def test_the_larger_loss_is_the_headline():
    idle = replace(split(compute=40, input=60), waste=(100_000_000, "Small kernels"))
    assert headline(idle) == "GPU 0 is idle 60% of the time; the data loader costs 600 ms of 1 s."


def test_of_several_gpus_the_one_that_stands_out_is_named():
    one, other = split("rank 0 (GPU 0)", compute=90, host=10), split("rank 1 (GPU 1)", compute=30, host=70)
    assert headline(one, other) == (
        "Rank 1 (GPU 1), unlike rank 0 (GPU 0), is idle 70% of the time; work on the host between launches costs 700 ms of 1 s."
    )
    assert headline(one, one, one, other).startswith("Rank 1 (GPU 1), unlike the other 3 GPUs, is idle 70%")


def test_gpus_that_are_alike_are_judged_together():
    jitter = [split(f"rank {n} (GPU {n})", compute=97 - n / 10, host=3 + n / 10) for n in range(4)]
    assert headline(*jitter) == "The 4 GPUs compute 97% of the time; nothing else takes as much as 5%."
    slow = [replace(split(f"GPU {n}", compute=23, communication=77 - n, host=n), sharper=(
        ("communication", 500_000_000, "Large collectives far slower than their links"),)) for n in range(4)]  # fmt: skip
    assert headline(*slow) == (
        "The 4 GPUs spend 76% of the time (755 ms of 1 s) on communication that no computation covers: "
        "large collectives far slower than their links."
    )
    same = replace(split(compute=50, host=50), culprits=(culprit("log (x.py:1)", 40),))
    assert headline(same, same) == "log (x.py:1) leaves the 2 GPUs idle 400 ms of 1 s."


def test_idle_time_is_in_the_sentence_where_it_is_the_largest_loss():
    """Each of its causes is smaller than communication."""
    ranks = [split(f"rank {n}", compute=8, communication=40, launch=31, host=16, synchronization=5) for n in range(8)]
    waits = [replace(one, waited=(160_000_000, "16% is waiting")) for one in ranks]
    assert headline(*waits) == (
        "The 8 GPUs are idle 52% of the time; launching kernels costs 310 ms of 1 s, "
        "and 40% of the time goes to communication that no computation covers."
    )


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
        KinetoTrace().op(0, 10, launch=(-5, -2)).op(100 + 900 * n, 1110, launch=(90 + 900 * n, 95 + 900 * n)).write(
            tmp_path / f"{name}.json"
        )
    found = analyze(ta.load(tmp_path))
    assert found.verdict.headline.startswith("GPU 0 of second.json, unlike GPU 0 of first.json, is idle")
    assert [d.rank for d in found.devices] == [None, None]


def test_a_sharper_finding_stands_for_its_cause():
    collecting = ("host", 550_000_000, "The GPU waits while Python collects garbage")
    idle = replace(split(compute=20, host=60, launch=20), sharper=(collecting,))
    assert headline(idle) == (
        "GPU 0 is idle 80% of the time; the GPU waits while Python collects garbage: 550 ms of 1 s."
    )
    minor = replace(idle, sharper=(("host", 250_000_000, "A part"), ("launch", 200_000_000, "Another")))
    assert headline(minor) == headline(replace(idle, sharper=()))
    copying = replace(split(compute=40, memcpy=60), sharper=(("memcpy", 600_000_000, "Large copies"),))
    assert headline(copying).endswith("on memory copies that no computation covers: large copies.")
    ordered = ("communication", 600_000_000, "Communication that cannot overlap")
    assert headline(replace(split(compute=40, communication=60), sharper=(ordered,))).endswith(
        "on communication that cannot overlap."
    )


@pytest.mark.parametrize(
    ("recoverable", "speedup", "pays"),
    [(0, None, False), (None, None, False), (1000, None, True), (1000, 1.0, False), (1000, 1.2, True)],
)
def test_a_saving_pays_unless_the_replay_denies_it(recoverable, speedup, pays):
    assert Saving(recoverable, 0.1, 1.1, None, predicted_speedup=speedup).pays is pays


@pytest.mark.parametrize(
    ("recoverable", "speedup", "note", "gain"),
    [
        (0.5, None, None, 0.5),
        (0.5, 1.25, None, 0.2),
        (0.5, 1.0, None, 0),
        (0.1, 2.0, None, 0.1),  # no more than what the finding may recover,
        (0.1, 2.0, "Had the rank come in time", 0.5),  # unless it says what else goes with it;
        (0.1, 2.0, TIMED, 0.1),  # steps that hold most of it are not the whole window
    ],
)
def test_what_a_fix_gives(recoverable, speedup, note, gain):
    ns = round(recoverable * SECOND)
    saving = Saving(ns, recoverable, None, None, predicted_speedup=speedup, prediction_note=note)
    assert saving.gain_share == pytest.approx(gain) and saving.gain_ns == pytest.approx(gain * SECOND)


@needs_corpus
def test_the_headline_promises_nothing_that_the_replay_denies():
    """Fusing its small kernels would free a sixth of the GPU's time, but the host sets the pace."""
    result = ta.analyze(ta.load(CORPUS / "kineto" / "conv_layout.fixed.pt.trace.json.gz"))
    (fusing,) = (finding for finding in result.findings if finding.rule == "KRN005")
    assert result.findings[-1] == fusing and not fusing.saving.pays and fusing.severity == "info"
    assert "could be saved" not in result.verdict.headline
