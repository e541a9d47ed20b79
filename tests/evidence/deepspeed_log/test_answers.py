"""What is made of DeepSpeed's figures: which hold, which cannot, and what the guards keep silent."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.evidence.deepspeed_log.logs import Shape, comms, knows, many_timers, mlp, profile, timers, told, write
from traceanalyzer.analysis.parts import parts_of
from traceanalyzer.config import Config
from traceanalyzer.evidence.deepspeed_log import KIND
from traceanalyzer.result.document import Result

VERSION = (
    "[2024-06-21 07:39:09,443] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version={}, git-hash=unknown"
)
GIB = "1.0 GB"


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parts_of(ta.load(path))[0].catalog(Config()).table(f"deepspeed_{table}").to_pylist()
    return found


def rules(result: Result) -> set[str]:
    return {one.rule for one in result.findings}


def said(result: Result) -> str:
    return " ".join(one.message for one in result.findings)


def test_an_ordinary_profile_has_no_faults(tmp_path: Path) -> None:
    path = write(tmp_path, *profile())
    assert rows(path, "faults") == []
    assert rules(told(path)) == set()
    assert "TFLOPS in the step that it profiled" in told(path).verdict.headline


def test_a_latency_of_minutes_is_one(tmp_path: Path) -> None:
    assert rows(write(tmp_path, *profile(mlp(root_seconds=600.0))), "faults") == []
    assert [row["fault"] for row in rows(write(tmp_path, *profile(mlp(root_seconds=1.79e9))), "faults")] == ["clock"]


def test_quantised_and_adapted_weights_are_no_shard(tmp_path: Path) -> None:
    for kind, params in (("Linear4bit", 512 * 2048 // 2), ("LoraLinear", 8 * 2560), ("Linear", 512 * 2048)):
        model = mlp()
        for block in model.inside["0"].inside.values():
            block.inside["1"].kind, block.inside["1"].params = kind, params
        assert "shard" not in {row["fault"] for row in rows(write(tmp_path, *profile(model)), "faults")}, kind


def test_a_shard_beside_a_module_of_unknown_shape_is_a_lower_bound(tmp_path: Path) -> None:
    model = mlp(sharded=True)
    model.inside["0"].inside["9"] = Shape("MysteryLayer", "size=3", 77)
    result = told(write(tmp_path, *profile(model)))
    assert "the model has at least 4.2 M by those shapes that are printed" in said(result)


def test_products_are_counted_once_without_anything_that_tells_otherwise(tmp_path: Path) -> None:
    model = mlp(sharded=True)
    for block in model.inside["0"].inside.values():
        del block.inside["0"], block.inside["2"]
    assert [row["fault"] for row in rows(write(tmp_path, *profile(model)), "faults")] == ["shard"]


@pytest.mark.parametrize("grows", [0.0, 0.01])
def test_steps_that_vary_do_not_grow(tmp_path: Path, grows: float) -> None:
    assert "DSP002" not in rules(told(write(tmp_path, *many_timers(60, grows=grows))))


def test_one_slow_stretch_is_no_growth(tmp_path: Path) -> None:
    chance = random.Random(4)
    lines = [line for at in range(60) for line in many_timers(1, grows=0.0) if at >= 0]
    slow = [line.replace("step: 5.00", "step: 25.00") if 40 < at // 2 < 50 else line for at, line in enumerate(lines)]
    chance.shuffle(slow[:20])
    assert "DSP002" not in rules(told(write(tmp_path, *slow)))


def test_first_steps_that_set_up_are_not_compared(tmp_path: Path) -> None:
    slow = [line.replace("5.00", "900.00") for line in many_timers(2)]
    assert "DSP002" not in rules(told(write(tmp_path, *slow, *many_timers(40))))


def test_growth_without_a_comms_logger_has_no_cause(tmp_path: Path) -> None:
    result = told(write(tmp_path, *many_timers(40, grows=0.5)))
    assert "DSP002" in rules(result)
    assert "comms logger" not in said(result)


def test_a_curriculum_makes_what_computes_grow_alike(tmp_path: Path) -> None:
    lines = [line for at in range(60) for line in timers(2 + 0.1 * at, 4 + 0.2 * at, 5 + 0.1 * (at % 3))]
    result = told(write(tmp_path, *lines))
    assert [one.severity for one in result.findings if one.rule == "DSP002"] == ["low"]
    assert "as with longer sequences or larger batches" in said(result)


def test_a_few_steps_are_too_few(tmp_path: Path) -> None:
    assert "DSP002" not in rules(told(write(tmp_path, *many_timers(8, grows=3.0))))


# Forty calls a size of 1 GiB: ten microseconds each cannot be, so that a mean of 20 ms is none of sums.
SHORT = [("all_reduce", [(GIB, 400, 8000.0, 20.0, 7000.0, 1000.0)])]
SUMS = [("all_gather_into_tensor", [("1.5 KB", 4000, 4e6, 1000.0, 3e6, 1e6)])]


@pytest.mark.parametrize(
    ("version", "table", "cumulative"),
    [
        ("0.14.2", SUMS, False),
        ("0.18.4", SHORT, True),
        ("0.19.8", SUMS, True),
        (None, SHORT, False),
        (None, SUMS, True),
    ],
)
def test_sums_are_told_by_the_version_else_by_what_cannot_be(
    tmp_path: Path, version: str | None, table: Any, cumulative: bool
) -> None:
    start = [VERSION.format(version)] if version else []
    (run,) = rows(write(tmp_path, *start, *many_timers(40), *comms(table)), "run")
    assert run["cumulative"] is cumulative
    assert run["version"] == version


def test_one_call_that_waits_for_minutes_makes_no_sums(tmp_path: Path) -> None:
    table = [("all_reduce", [("4.0 B", 40, 300_000.0, 1.2)])]
    path = write(tmp_path, *many_timers(40), *comms(table))
    assert rows(path, "run")[0]["cumulative"] is None
    assert "DSP005" not in rules(told(path))


@pytest.mark.parametrize(("rises", "cumulative"), [(True, True), (False, False)])
def test_single_calls_tell_sums(tmp_path: Path, rises: bool, cumulative: bool) -> None:
    call = (
        "[Rank 0] comm op: all_reduce | time (ms): {:.2f} | msg size: 4.0 MB | algbw (Gbps): 1.00  | busbw (Gbps): 1.00"
    )
    lines = [call.format(1 + at if rises else 1 + at % 3) for at in range(30)]
    (run,) = rows(write(tmp_path, *many_timers(), *lines), "run")
    assert run["cumulative"] is cumulative


def test_waiting_by_the_straggler_column(tmp_path: Path) -> None:
    table = [
        ("all_reduce", [("216.12 MB", 40, 100.0, 2.5, 55.0, 45.0)]),
        ("broadcast", [("4.0 KB", 4, 9000.0, 2200.0, 10.0, 8990.0)]),
    ]
    result = told(write(tmp_path, VERSION.format("0.14.2"), *many_timers(), *comms(table, straggler=True)))
    assert (
        "at least 45% of this rank's time in collectives is waiting for late ranks, most of it in all_reduce"
        in said(result)
    )
    assert "DSP005" not in rules(result)
    less = [("all_reduce", [("216.12 MB", 40, 100.0, 2.5, 95.0, 5.0)])]
    assert "DSP007" not in rules(
        told(write(tmp_path, VERSION.format("0.14.2"), *many_timers(), *comms(less, straggler=True)))
    )


def test_accumulation_makes_the_profile_one_of_several_micro_batches(tmp_path: Path) -> None:
    dump = "[2024-06-21 07:39:09,443] [INFO] [config.py:997:print]   gradient_accumulation_steps .. 8"
    path = write(tmp_path, dump, *many_timers(), *profile())
    assert "counts one of the 8 micro-batches of a step" in said(told(path))
    by_timers = next(row for row in rows(path, "rates") if "DeepSpeed's timers" in row["label"])
    one = next(row for row in rows(path, "rates") if row["label"] == "by the flops profiler")
    assert by_timers["flops"] == pytest.approx(8 * one["flops"])


def test_the_timers_alone_are_low_and_the_comms_logger_medium(tmp_path: Path) -> None:
    quiet = told(write(tmp_path, *many_timers()))
    assert [one.severity for one in quiet.findings if one.rule == "DSP001"] == ["low"]
    loud = told(write(tmp_path, *many_timers(), *comms(SHORT)))
    assert [one.severity for one in loud.findings if one.rule == "DSP001"] == ["medium"]


def test_two_files_of_one_rank_are_no_rank_that_is_there_twice(tmp_path: Path) -> None:
    result = told(write(tmp_path, *many_timers()), write(tmp_path, *profile(), name="flops_profile.txt"))
    assert result.health == []
    assert [one.rank for one in result.evidence] == [0, 0]


def test_figures_for_comparisons(tmp_path: Path) -> None:
    path = write(tmp_path, *many_timers(), *profile())
    measured = KIND.measure(parts_of(ta.load(path))[0].catalog(Config()))
    assert set(measured) == {"step", "forward", "backward", "optimizer", "growth", "flops"}
    assert measured["forward"] == 2_100_000
    assert measured["growth"] == 0
    assert set(measured) <= set(KIND.figures)


def test_advice_is_for_what_was_not_on(tmp_path: Path) -> None:
    def names(*lines: str) -> list[str]:
        tables = parts_of(ta.load(write(tmp_path, *lines)))[0].catalog(Config())
        return [setting.name for setting in KIND.recording_advice(tables)]

    assert names(*many_timers()) == [
        "DeepSpeed's flops profiler",
        "DeepSpeed's comms logger",
        "the beginning of the log",
    ]
    assert names(*profile()) == ["DeepSpeed's timers", "DeepSpeed's comms logger", "the beginning of the log"]
    assert names(VERSION.format("0.19.8"), *many_timers(), *profile(), *comms(SHORT)) == []


@pytest.mark.parametrize(
    "text", ["-" * 4_000_000, "1" * 4_000_000, " " * 4_000_000, "time (ms) | " * 200_000, "1/1, " * 400_000]
)
def test_hostile_text_is_looked_at_in_no_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    assert not knows(path)
