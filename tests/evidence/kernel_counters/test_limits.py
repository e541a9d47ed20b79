"""What limits a kernel, and which launches of a trace a profile stands for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from traceanalyzer.derive.kernels.tables import KERNELS
from traceanalyzer.evidence.kernel_counters.answers import words
from traceanalyzer.evidence.kernel_counters.answers.limiter import limit_of
from traceanalyzer.evidence.kernel_counters.answers.limits import kernel_limits, limited_kernels
from traceanalyzer.evidence.kernel_counters.answers.matching import kernel_matches
from traceanalyzer.evidence.kernel_counters.derived_tables import KERNEL_LIMITS, KERNEL_PROFILES, LIMITED_KERNELS
from traceanalyzer.model.schema import TableSpec

QUEUE = {"sm": 0.01, "memory": 0.02, "dram": 0.0, "blocks": 1056, "stall": "long_scoreboard"}
EMPTY = dict.fromkeys(KERNEL_PROFILES.schema.names)
H100 = {
    "sms": 132.0,
    "limit_warps": 8.0,
    "limit_registers": 16.0,
    "limit_shared": 32.0,
    "limit_blocks": 32.0,
    "occupancy_limit": 1.0,
}


def profile(**told: Any) -> dict[str, Any]:
    return {**EMPTY, "rank": 0, "device": 0, "name": "k", "function": "k", "launches": 1, **H100, **told}


@pytest.mark.parametrize(
    ("told", "limiter"),
    [
        ({"sm": 0.04, "memory": 0.91, "dram": 0.91, "l2": 0.82, "l1": 0.15}, "dram"),
        ({"sm": 0.16, "memory": 0.96, "dram": 0.26, "l2": 0.96, "l1": 0.52}, "l2"),
        ({"sm": 0.10, "memory": 0.90, "dram": 0.26, "l2": 0.30, "l1": 0.92}, "l1"),
        ({"sm": 0.16, "memory": 0.76, "dram": 0.76, "l2": 0.74, "blocks": 1056}, "dram"),
        ({"sm": 0.933, "memory": 0.944, "l1": 0.98, "l2": 0.58, "pipe": "Tensor", "pipe_share": 0.93}, "tensor"),
        ({"sm": 0.90, "memory": 0.70, "pipe": "Shared", "name": "nvjet_sm90_tst_256x128"}, "tensor"),
        ({"sm": 0.90, "memory": 0.70, "pipe": "Shared", "name": "dgemm_of_mine"}, "pipe"),
        ({"sm": 0.97, "memory": 0.01, "pipe": "FMA", "pipe_share": 0.87}, "fp32"),
        ({"sm": 0.72, "memory": 0.37, "pipe": "ALU", "pipe_share": 0.54}, "pipe"),
        ({"sm": 0.72, "memory": 0.70, "l1": 0.75}, "balanced"),
        ({"sm": 0.01, "memory": 0.02, "blocks": 24, "waves": 0.02}, "grid"),
        (
            {
                "sm": 0.26,
                "memory": 0.20,
                "blocks": 136,
                "limit_shared": 1.0,
                "waves": 1.03,
                "occupancy_limit": 0.125,
            },
            "tail",
        ),
        (
            {
                "sm": 0.50,
                "memory": 0.38,
                "blocks": 132,
                "limit_shared": 1.0,
                "waves": 1.0,
                "occupancy_limit": 0.125,
            },
            "occupancy",
        ),
        ({"sm": 0.40, "memory": 0.38, "blocks": 1056 * 40, "waves": 40.0}, "latency"),
        (
            {
                "sm": 0.01,
                "memory": 0.02,
                "dram": 0.0,
                "blocks": 1056,
                "stall": "long_scoreboard",
                "stall_cycles": 7898.0,
            },
            "contention",
        ),
        (
            {
                "sm": 0.01,
                "memory": 0.02,
                "dram": 0.0,
                "blocks": 1056,
                "stall": "long_scoreboard",
                "stall_cycles": 700.0,
            },
            "latency",
        ),
        # Only one throughput was counted.
        ({"dram": 0.85}, "dram"),
        ({"dram": 0.20}, "unknown"),
        ({"sm": 0.95, "pipe": "FP64"}, "fp64"),
        ({"sm": 0.10}, "unknown"),
        ({}, "unknown"),
        # The profiler's rule knows what its page does not print.
        (
            {"sm": 0.10, "bottleneck": "utilizing greater than 80.0% of ... Start by analyzing L2 in the Memory"},
            "l2",
        ),
        ({"bottleneck": "Memory is more heavily utilized than Compute: ... to identify the DRAM bottleneck"}, "dram"),
        ({"bottleneck": "Compute is more heavily utilized than Memory"}, "pipe"),
        ({"waves": 0.4, "bottleneck": "This kernel grid is too small to fill"}, "grid"),
    ],
)
def test_limiters(told: dict[str, Any], limiter: str) -> None:
    one = profile(**told)
    limit = limit_of(one)
    assert limit.limiter == limiter
    said = words.what(one, limit, one["name"])
    assert said.startswith("Kernel ")
    assert "None" not in said
    assert "unknown of" not in said
    assert 0 <= limit.least <= limit.gain <= limit.most <= 1


def test_gains_are_within_what_is_left() -> None:
    for compute in (0.0, 0.1, 0.3, 0.59):
        for blocks in (1, 60, 131, 133, 500, 1056, 1100, 1200, 2113, 100_000):
            for resident in (1.0, 2.0, 8.0):
                limit = limit_of(
                    profile(sm=compute, memory=compute, dram=compute / 2, blocks=blocks, limit_shared=resident)
                )
                assert limit.most <= 1 - compute + 1e-9
                assert 0 <= limit.least <= limit.gain <= limit.most


def test_the_tail_is_what_evenly_filled_waves_save() -> None:
    one = profile(sm=0.26, memory=0.2, blocks=136, limit_shared=1.0, tail_estimate=0.5)
    limit = limit_of(one)
    assert limit.gain == pytest.approx(1 - 136 / 264)
    assert limit.most == pytest.approx(0.5)
    assert "a second wave of 4 blocks doubles the time (1.03 waves; LaunchConfiguration estimates 50%)" in words.what(
        one, limit, "k"
    )
    # The emptier a wave among many, the less it costs.
    assert limit_of(profile(sm=0.3, memory=0.2, blocks=1056 * 9 + 20)).limiter != "tail"


def test_who_contends() -> None:
    waits = {**QUEUE, "stall_cycles": 7898.0}
    for told, by in (
        ({"atomic_slice": 0.78}, "atomics"),
        ({"atomics": 38e6, "l2_requests": 40e6}, "atomics"),
        ({"host_sectors": 38e6, "l2_requests": 40e6, "atomics": 0.0}, "host"),
        ({}, None),
    ):
        one = profile(**waits, **told)
        limit = limit_of(one)
        assert (limit.limiter, limit.contended_by) == ("contention", by)
        assert ("atomics" in words.what(one, limit, "k")) == (by != "host")


def rows(spec: TableSpec, told: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in spec.schema.names} for row in told], spec.schema)


def kernel(name: str, at: int, blocks: int = 24, block: str = "64", **told: Any) -> dict[str, Any]:
    """A launch of a trace, 10 ns long."""
    found = {"rank": 0, "device": 0, "process": 1, "stream": 7, "start_ns": at * 10, "end_ns": at * 10 + 10}
    return found | {"name": name, "family": "other", "blocks": blocks, "block": block, "alone": 10, **told}


GRID = {"sm": 0.01, "memory": 0.02, "blocks": 24, "block": "64", "profiled_time": 5000.0, "waves": 0.02}


def limits(
    profiled: list[dict[str, Any]], traced: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    profiles, kernels = rows(KERNEL_PROFILES, profiled), rows(KERNELS, traced)
    matches = kernel_matches(profiles, kernels)
    whole, each = kernel_limits(profiles, kernels, matches), limited_kernels(profiles, kernels, matches)
    assert whole.schema.equals(KERNEL_LIMITS.schema)
    assert each.schema.equals(LIMITED_KERNELS.schema)
    return whole.to_pylist(), each.to_pylist()


def test_a_few_launches_stand_for_all_of_their_size() -> None:
    traced = [kernel("ns::gemv(float const*)", at) for at in range(5)]
    traced += [
        kernel("ns::gemv(float const*)", 5, blocks=48),
        kernel("ns::gemv(float const*)", 6, block="32 × 2"),
        kernel("add", 7),
    ]
    (whole,), each = limits([profile(**GRID, name="gemv", function="gemv", launches=2)], traced)
    assert (whole["profiled"], whole["matched"], whole["exposed"], whole["time"]) == (2, 5, 50, 50)
    assert whole["share"] == pytest.approx(50 / 80)
    assert [row["start_ns"] for row in each] == [0, 10, 20, 30, 40]
    assert whole["name"] == "ns::gemv(float const*)"


def test_template_arguments_tell_kernels_of_one_function_apart() -> None:
    add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)"
    traced = [kernel(add, 0), kernel(fill, 1), kernel(add, 2)]
    name = "void vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char *, 3>>(int, T2, T3)"
    (whole,), each = limits([profile(**GRID, name=name, function="vectorized_elementwise_kernel")], traced)
    assert whole["matched"] == 2
    assert [row["start_ns"] for row in each] == [0, 20]


CLAMP = (
    "void at::vectorized_elementwise_kernel<4, at::launch_clamp_scalar(at::TensorIteratorBase &, c10::Scalar, c10::Scalar, "
    "detail::ClampLimits)::[lambda() (instance 1)]::operator ()() const::[lambda() (instance 7)]::operator ()() const::[lambda(float) "
    "(instance 1)], std::array<char *, 2>>(int, T2, T3)"
)
CLAMP_TRACED = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, "
    "c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::"
    "{lambda(float)#1}, std::array<char*, 2ul> >(int, at::native::(anonymous namespace)::launch_clamp_scalar(...))"
)


@pytest.mark.parametrize(
    ("traced", "matched"),
    [
        (CLAMP_TRACED, 1),
        (CLAMP_TRACED.replace("_kernel<4", "_kernel<8"), None),
        (CLAMP_TRACED.replace("lambda(float)", "lambda(c10::BFloat16)"), None),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
            None,
        ),
        ("vectorized_elementwise_kernel", 1),
    ],
)
def test_another_instance_of_a_template_is_another_kernel(traced: str, matched: int | None) -> None:
    (whole,), each = limits(
        [profile(**GRID, name=CLAMP, function="vectorized_elementwise_kernel")], [kernel(traced, 0)]
    )
    assert len(each) == (matched or 0)
    assert whole["matched"] == (matched or 0)


def test_what_cannot_be_told_apart_is_not_matched() -> None:
    traced = [kernel("void ns::k<int>(int)", 0), kernel("void ns::k<float>(int)", 1)]
    (whole,), each = limits([profile(**GRID)], traced)
    assert (whole["matched"], whole["shared"], each) == (0, 2, [])


def test_each_rank_has_its_own() -> None:
    traced = [kernel("k", 0), kernel("k", 1, device=1)]
    whole, each = limits([profile(**GRID)], traced)
    assert [(row["device"], row["matched"]) for row in whole] == [(0, 1), (1, 1)]
    assert len(each) == 2


def test_a_profile_alone() -> None:
    (whole,), (each,) = limits([profile(**GRID)], [])
    assert (whole["matched"], whole["exposed"], whole["weight"]) == (None, None, 5000.0)
    assert (each["traced"], each["start_ns"], each["end_ns"], each["weight"]) == (False, 0, 0, 5000.0)


def test_a_kernel_that_the_trace_does_not_have() -> None:
    (whole,), each = limits([profile(**GRID)], [kernel("other", 0)])
    assert (whole["matched"], whole["exposed"], each) == (0, 0, [])


@pytest.mark.parametrize(("estimate", "told"), [(0.82, True), (0.1, False), (None, False)])
def test_how_memory_is_accessed(estimate: float | None, told: bool) -> None:
    one = profile(sm=0.16, memory=0.96, dram=0.26, l2=0.96, access="UncoalescedGlobalAccess", access_estimate=estimate)
    said = words.what(one, limit_of(one), "k")
    assert said.startswith("Kernel k is L2-bound at 96% of peak: ")
    assert ("not coalesced (ncu's rule UncoalescedGlobalAccess estimates 82%)" in said) == told
