"""Whose doing a change is: each witness, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.history import nights
from traceanalyzer.result.history.entry import Entry, Part
from traceanalyzer.result.history.verdicts import HARDWARE, METHOD, REAL, Verdict, verdict_on

Made = Callable[[Entry], Entry]
RANDOM = np.random.default_rng(0)


def same(entry: Entry) -> Entry:
    return entry


def side(make: Made, first: int = 0, count: int = 6) -> list[Entry]:
    """Captures in order, with the time that their lines add up to."""
    made = [make(nights.night(first + number, RANDOM)) for number in range(count)]
    return [replace(entry, unit_ns=sum(entry.lines.values())) for entry in made]


def verdict(before: Made, after: Made) -> Verdict:
    return verdict_on(side(before), side(after, 6))


def longer(entry: Entry) -> Entry:
    return nights.host_longer(entry, 0.05)


def versions(**others: str) -> Made:
    return lambda entry: replace(
        longer(entry), versions=entry.versions | {key.replace("_", " "): text for key, text in others.items()}
    )


def figures(after: bool, **given: float) -> Made:
    def make(entry: Entry) -> Entry:
        return replace(
            nights.slower_gpu(entry, 0.05 * after), figures={f"gpu_log.{key}": x for key, x in given.items()}
        )

    return make


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: replace(longer(one), format="nsys"), "another format (nsys instead of kineto)"),
        (versions(profiler="other"), "another profiler (other instead of PyTorch profiler (Kineto, CUPTI 130001))"),
        (
            lambda one: replace(longer(one), method="repetition"),
            "another unit of work (step by repetition instead of step by annotation)",
        ),
        (
            lambda one: replace(longer(one), unit="repetition", method=None),
            "another unit of work (repetition instead of step by annotation)",
        ),
        (lambda one: replace(longer(one), tool="2.0"), "another traceanalyzer (2.0 instead of 1.0)"),
    ],
)
def test_another_way_of_recording_is_the_method(change: Made, reason: str) -> None:
    assert verdict(same, change) == Verdict(METHOD, reason, [])


def test_twice_the_work_in_a_unit_is_the_method() -> None:
    def doubled(entry: Entry) -> Entry:
        kernels = [replace(one, count=2 * one.count, ns=2 * one.ns) for one in entry.kernels]
        lines = {name: 2 * ns for name, ns in entry.lines.items()}
        return replace(entry, kernels=kernels, lines=lines, launched=2 * (entry.launched or 0))

    found = verdict(same, doubled)
    assert found.kind == METHOD
    assert found.reason.startswith("a unit of work has 2 times as many of each kernel")
    assert verdict(doubled, same).reason.startswith("a unit of work has 2 times as few of each kernel")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: replace(longer(one), gpus=["NVIDIA H200"]), "other GPUs (1 × NVIDIA H200 instead of 1 × NVIDIA H100 80GB HBM3)"),
        (lambda one: replace(longer(one), gpu_count=2), "other GPUs (2 × NVIDIA H100 80GB HBM3 instead of 1 × NVIDIA H100 80GB HBM3)"),
        (versions(CUDA_driver="13.1"), "another driver (13.1 instead of 13.0)"),
        (lambda one: replace(longer(one), labels=one.labels | {"host": "node2"}), "another host (node2 instead of node1)"),
    ],
)  # fmt: skip
def test_another_machine_is_the_hardware(change: Made, reason: str) -> None:
    assert verdict(same, change) == Verdict(HARDWARE, reason, [])


def test_a_log_tells_lower_clocks() -> None:
    found = verdict(figures(False, clock=1980.0), figures(True, clock=1880.0))
    assert found == Verdict(HARDWARE, "lower SM clocks under load (1880 MHz instead of 1980 MHz)", [])


def test_a_log_tells_what_held_the_gpu_down() -> None:
    found = verdict(figures(False, held_down=0.01), figures(True, held_down=0.4))
    assert found == Verdict(HARDWARE, "held down by power or heat for 40% of the time under load instead of 1.0%", [])


def test_a_clock_that_explains_little_of_a_change_is_no_witness() -> None:
    found = verdict(figures(False, clock=1980.0), lambda one: replace(longer(one), figures={"gpu_log.clock": 1975.0}))
    assert found.kind == REAL


def test_a_clock_that_is_not_always_logged_is_no_witness() -> None:
    before, after = side(figures(False, clock=1980.0)), side(lambda one: replace(longer(one), figures={}), 6)
    assert verdict_on(before, after).kind == REAL


def test_kernels_that_all_take_longer_alike_are_the_hardware() -> None:
    found = verdict(same, lambda one: nights.slower_gpu(one, 0.05))
    assert found.kind == HARDWARE
    assert found.reason.startswith(
        "all kernels, the same ones and as often, take 7.1% more time, and the host does not"
    )


@pytest.mark.parametrize("share", [0.05, -0.05])
@pytest.mark.parametrize("change", [nights.host_longer, nights.kernel_longer, nights.more_kernels])
def test_what_has_no_witness_is_the_program(change: nights.Change, share: float) -> None:
    assert verdict(same, lambda one: change(one, share)).kind == REAL


def test_the_line_and_the_finding_that_moved_are_named() -> None:
    found = verdict(same, longer)
    assert found.reason == ("17.5 ms of host work instead of 15 ms (HST001 The host works between launches)")


def test_kernels_that_take_longer_with_the_host_are_the_program() -> None:
    """Both by one factor: a program with more work in it, not a clock."""
    assert verdict(same, lambda one: nights.host_longer(nights.slower_gpu(one, 0.05), 0.06)).kind == REAL


def test_the_method_comes_first_and_the_rest_stands_beside() -> None:
    def other(entry: Entry) -> Entry:
        return replace(versions(profiler="other", CUDA_driver="13.1")(entry), gpus=["NVIDIA H200"])

    found = verdict(same, other)
    assert found.kind == METHOD
    assert found.also == [
        "other GPUs (1 × NVIDIA H200 instead of 1 × NVIDIA H100 80GB HBM3)",
        "another driver (13.1 instead of 13.0)",
    ]


def test_another_driver_with_other_kernels_is_the_program() -> None:
    def other(entry: Entry) -> Entry:
        return replace(nights.more_kernels(entry, 0.1), versions=entry.versions | {"CUDA driver": "13.1"})

    found = verdict(same, other)
    assert (found.kind, found.also) == (REAL, ["another driver (13.1 instead of 13.0)"])
    assert found.reason.endswith("the kernels are others")


def test_what_varies_on_one_side_already_explains_nothing() -> None:
    before, after = side(same), side(versions(CUDA_driver="13.1"), 6)
    before[-2] = replace(before[-2], versions=after[0].versions)
    assert verdict_on(before, after).kind == REAL


def test_a_witness_may_be_a_night_or_two_away() -> None:
    before, after = side(same), side(versions(CUDA_driver="13.1"), 6)
    early = [replace(entry, versions=before[0].versions) for entry in after[:2]]
    assert verdict_on(before, [*early, *after[2:]]).kind == HARDWARE
    late = [replace(entry, versions=after[0].versions) for entry in before[-2:]]
    assert verdict_on([*before[:-2], *late], after).kind == HARDWARE


def test_captures_without_versions_or_kernels_are_judged_too() -> None:
    def bare(entry: Entry) -> Entry:
        return replace(entry, versions={}, kernels=[], launched=None, labels={}, gpus=[], lines={"compute": 10})

    before, after = side(bare), side(lambda one: replace(bare(one), lines={"compute": 12}), 6)
    assert verdict_on(before, after) == Verdict(REAL, "12 ns of compute instead of 10 ns", [])
    assert verdict_on(before[:1], after[:1]).kind == REAL


def test_two_kernels_tell_no_factor() -> None:
    def few(entry: Entry) -> Entry:
        return replace(entry, kernels=[Part("a", 1.0, 1000), Part("b", 1.0, 500)], launched=2.0)

    assert verdict(few, lambda one: few(nights.slower_gpu(one, 0.05))).kind == REAL
