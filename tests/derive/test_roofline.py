"""What operators compute, by their shapes: the formulas, whose kernels are whose, and what that is of what the GPU gives."""

from __future__ import annotations

import json
from itertools import product as pairs_of
from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from tests.support.products import BF16, TENSOR, Program
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.derive.roofline import attention, peaks
from traceanalyzer.derive.roofline.formulas import WITH_FORMULA, work_of

HALF, FLOAT, DOUBLE = "c10::Half", "float", "double"
SIMT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)"


def told(name: str, shapes: list[Any], types: list[str] | str = BF16, values: list[str] | None = None) -> Any:
    named = [types] * len(shapes) if isinstance(types, str) else types
    return work_of(name, json.dumps(shapes), json.dumps(named), json.dumps(values) if values else "")


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "moved"),
    [
        ("aten::mm", [[4, 8], [8, 16]], 2 * 4 * 8 * 16, 2 * (32 + 128 + 64)),
        ("aten::mm", [[4, 8], [8, 16], [4, 16]], 2 * 4 * 8 * 16, 2 * (32 + 128 + 64)),  # the third is where it goes
        ("aten::addmm", [[16], [4, 8], [8, 16], [], []], 2 * 4 * 8 * 16, 2 * (32 + 128 + 64)),
        ("aten::bmm", [[3, 4, 8], [3, 8, 16]], 3 * 2 * 4 * 8 * 16, 3 * 2 * (32 + 128 + 64)),
        ("aten::baddbmm", [[3, 4, 16], [3, 4, 8], [3, 8, 16]], 3 * 2 * 4 * 8 * 16, 3 * 2 * (32 + 128 + 64)),
        ("aten::linear", [[2, 5, 8], [16, 8], [16]], 2 * 10 * 8 * 16, 2 * (80 + 128 + 160)),
        ("aten::matmul", [[7, 1, 4, 8], [3, 8, 16]], 21 * 2 * 4 * 8 * 16, 2 * (7 * 32 + 3 * 128 + 21 * 64)),
        ("aten::matmul", [[8], [8]], 2 * 8, 2 * 17),
        ("aten::mv", [[4, 8], [8]], 2 * 4 * 8, 2 * (32 + 8 + 4)),
        ("aten::_grouped_mm", [[100, 8], [5, 8, 16], [5]], 2 * 100 * 8 * 16, 2 * (800 + 640 + 1600)),
        ("aten::_grouped_mm", [[5, 4, 8], [5, 8, 16], []], 5 * 2 * 4 * 8 * 16, 5 * 2 * (32 + 128 + 64)),
    ],
)
def test_matrix_products(name: str, shapes: list[Any], flops: int, moved: int) -> None:
    work = told(name, shapes)
    assert (work.kind, work.flops, work.moved, work.precision) == ("matmul", flops, moved, "bf16")


def test_types_of_matrix_products() -> None:
    shapes = [[4, 8], [8, 16]]
    assert told("aten::mm", shapes, DOUBLE).precision == "fp64"
    assert told("aten::mm", shapes, "c10::complex<float>").flops == 4 * told("aten::mm", shapes, FLOAT).flops
    eight = told("aten::_scaled_mm", [*shapes, [], []], "c10::Float8_e4m3fn")
    assert (eight.precision, eight.moved) == ("fp8", 32 + 128 + 2 * 64)
    assert told("aten::_int_mm", shapes, "signed char").precision == "int8"
    unknown = told("aten::mm", shapes, "")
    assert (unknown.flops, unknown.moved, unknown.precision) == (2 * 4 * 8 * 16, None, None)
    assert work_of("aten::mm", "[[4, 8], [8, 16]]", "", "").flops == 2 * 4 * 8 * 16  # as nsys has them


CONV = [[2, 6, 9, 9], [12, 3, 3, 3], [12], [], [], [], [], [], []]
VALUES = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
FORWARD = 2 * (2 * 12 * 5 * 5) * (3 * 3 * 3)


def test_convolutions_forward() -> None:
    assert told("aten::convolution", CONV, BF16, VALUES).flops == FORWARD
    assert told("aten::_convolution", CONV, BF16, [*VALUES, "False", "False", "True", "True"]).flops == FORWARD
    own = ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "2", "False", "False", "True"]
    work = told("aten::cudnn_convolution", CONV, BF16, own)
    assert (work.flops, work.moved) == (FORWARD, 2 * (2 * 6 * 81 + 12 * 27 + 2 * 12 * 25))
    far = told("aten::convolution", CONV, BF16, [*VALUES[:4], "[4, 4]", "[2, 2]", *VALUES[6:]])
    assert far.flops == 2 * (2 * 12 * 7 * 7) * 27
    one = ["", "", "", "[1]", "[0]", "[1]", "False", "[0]", "1"]
    assert told("aten::convolution", [[2, 6, 9], [12, 6, 3], *CONV[2:]], BF16, one).flops == 2 * (2 * 12 * 7) * 18


def test_transposed_convolutions_spread_every_element() -> None:
    shapes = [[2, 6, 5, 5], [6, 4, 3, 3], *CONV[2:]]
    work = told("aten::convolution", shapes, BF16, [*VALUES[:6], "True", "[0, 0]", "1"])
    assert work.flops == 2 * (2 * 6 * 25) * (4 * 9) and work.moved is None


def test_gradients_of_convolutions() -> None:
    shapes = [[2, 12, 5, 5], [2, 6, 9, 9], [12, 3, 3, 3], *[[]] * 8]
    values = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    each = {
        mask: told("aten::convolution_backward", shapes, BF16, [*values, mask])
        for mask in ("[True, True, False]", "[False, True, True]", "[False, False, True]")
    }
    assert each["[True, True, False]"].flops == 2 * FORWARD and each["[False, True, True]"].flops == FORWARD
    assert each["[False, False, True]"] is None
    assert told("aten::convolution_backward", shapes) is None  # which gradients were asked for was not recorded


def test_convolutions_without_their_arguments_are_not_guessed() -> None:
    assert told("aten::convolution", CONV) is None
    assert told("aten::convolution", CONV, BF16, [*VALUES[:3], "[0, 0]", *VALUES[4:]]) is None
    assert told("aten::convolution", CONV, BF16, [*VALUES[:3], "[2, 2, 2]", *VALUES[4:]]) is None


def test_a_causal_mask_leaves_so_many_pairs() -> None:
    for queries, keys in pairs_of(range(1, 9), range(1, 9)):
        for corner, first in (("top", 0), ("bottom", keys - queries)):
            met = sum(min(max(at + first + 1, 0), keys) for at in range(queries))
            assert attention._pairs(queries, keys, corner) == met, (queries, keys, corner)  # type: ignore[arg-type]


Q, K = [2, 8, 64, 32], [2, 4, 96, 32]
FULL = 4 * 2 * 8 * 64 * 96 * 32


def test_attention_forward_and_backward() -> None:
    name, values = "aten::_scaled_dot_product_cudnn_attention", ["", "", "", "", "True", "0.", "False", "False", ""]
    work = told(name, [Q, K, K, *[[]] * 6], BF16, values)
    assert (work.kind, work.flops, work.assumed) == ("attention", FULL, "")
    assert work.moved == 2 * (2 * 2 * 8 * 64 * 32 + 2 * 2 * 4 * 96 * 32)
    lse = [2, 8, 64, 1]
    back = told(f"{name}_backward", [Q, Q, K, K, Q, lse, *[[]] * 10], BF16, [*[""] * 11, "64", "96", "0.", "False", ""])
    assert back.flops == 2.5 * FULL
    inner = told(
        "aten::_flash_attention_forward",
        [[2, 64, 8, 32], [2, 96, 4, 32], [2, 96, 4, 32], *[[]] * 12],
        BF16,
        [*[""] * 5, "64", "96", "0.", "False", "False", "0.1", *[""] * 4],
    )
    assert inner.flops == FULL


def test_attention_that_is_causal_and_that_does_not_say() -> None:
    same = [2, 8, 64, 32]
    name = "aten::_scaled_dot_product_flash_attention"
    causal, full = (
        told(name, [same, same, same, *[[]] * 4], BF16, ["", "", "", "0.", value, "False", ""])
        for value in ("True", "False")
    )
    assert causal.flops == full.flops * 65 // 128 and causal.sizes.endswith(", causal")
    silent = told(name, [same, same, same, *[[]] * 4])
    assert silent.flops == full.flops and silent.assumed == attention.UNTOLD and not full.assumed
    masks = {
        kind: told(
            "aten::_efficient_attention_forward",
            [[2, 64, 8, 32]] * 3 + [[]] * 11,
            FLOAT,
            [*[""] * 8, "0.", kind, *[""] * 4],
        ).flops
        for kind in "012"
    }
    assert masks["0"] == full.flops and masks["1"] == masks["2"] == causal.flops


def test_attention_whose_lengths_lie_in_a_tensor_is_not_guessed() -> None:
    name, rest = "aten::_flash_attention_forward", [*[""] * 7, "0.", "True", "False", ""]
    packed = [[128, 8, 32], [128, 8, 32], [128, 8, 32], [5], [5], *[[]] * 10]
    assert told(name, packed, BF16, rest) is None
    windowed = [[2, 64, 8, 32]] * 3 + [[]] * 12
    assert told(name, windowed, BF16, [*rest, "128", "0", "", ""]) is None
    assert told(name, windowed, BF16, [*rest, "-1", "-1", "", ""]) is not None


def test_what_torchinductor_says_of_its_own_kernels() -> None:
    work = work_of("triton_tem_fused_mm_3", "[]", "[]", '{"kernel_flop": 1e9, "kernel_num_gb": "0.25"}')
    assert (work.flops, work.moved, work.precision) == (10**9, 250_000_000, None)
    assert work_of("triton_poi_fused_add_0", "[]", "[]", '{"kernel_num_gb": 0.25}') is None
    assert work_of("triton_poi_fused_add_0", "[]", "[]", '{"kernel_flop": "much"}') is None


@pytest.mark.parametrize(
    "shapes",
    [
        "",
        "[",
        "{}",
        "null",
        "[[4, -8], [-8, 16]]",
        "[[4, 8.5], [8.5, 16]]",
        "[[4, true], [true, 16]]",
        "[[[4, 8], [8, 16]]]",
        "[[4, 8], [9, 16]]",
        '["4x8", "8x16"]',
        "[[4, 0], [0, 16]]",
        "[[1000000000000000, 1000000000000000], [1000000000000000, 1000000000000000]]",
        "[" * 5_000 + "]" * 5_000,
        "[[1e400, 8], [8, 16]]",
    ],
)
def test_shapes_that_are_none(shapes: str) -> None:
    for name in sorted(WITH_FORMULA):
        assert work_of(name, shapes, shapes, shapes) is None


@pytest.fixture
def tables(tmp_path: Any) -> Any:
    return lambda trace: Catalog(ta.load(trace.write(tmp_path / "t.json")))


LINEAR = 2 * 4096 * 1024 * 512


def nested(program: Program) -> Program:
    def product(p: Program) -> None:
        p.kernel(100.0)
        p.kernel(5.0, "void cublasLt::splitKreduce_kernel<32, 16>(int)")

    def whole(p: Program) -> None:
        p.kernel(7.0, "void at::native::elementwise_kernel<128, 2>(int)")
        p.operator("aten::addmm", [512], [4096, 1024], [1024, 512], within=product)

    return program.operator("aten::linear", [4096, 1024], [512, 1024], [512], within=whole)


def test_operators_within_others_count_once(tables: Any) -> None:
    (row,) = tables(nested(Program())).table("products").to_pylist()
    assert (row["operator"], row["flops"], row["kernels"], row["kernel_time"]) == ("aten::addmm", LINEAR, 2, 105_000)
    assert row["kernel"] == TENSOR and row["sizes"] == "4096×1024 by 1024×512"


def test_an_outer_operator_counts_where_it_calls_no_other(tables: Any) -> None:
    trace = Program().operator("aten::linear", [4096, 1024], [512, 1024], [512], within=lambda p: p.kernel(100.0))
    trace.operator("aten::mm", [16, 16], [16, 16])  # launches nothing: on the host, or in a graph
    (row,) = tables(trace).table("products").to_pylist()
    assert (row["operator"], row["flops"]) == ("aten::linear", LINEAR)


def test_values_of_arguments_are_read_where_they_matter(tables: Any) -> None:
    trace = Program()
    values = ["", "", "", "0.", "True", "False", ""]
    name = "aten::_scaled_dot_product_flash_attention"
    trace.operator(
        name, [2, 8, 64, 32], [2, 8, 64, 32], [2, 8, 64, 32], within=lambda p: p.kernel(9.0, "flash_fwd_kernel")
    )
    trace.events[-1]["args"]["Concrete Inputs"] = values
    trace.operator("triton_tem_fused_mm_1", [64, 64], within=lambda p: p.kernel(9.0, "triton_tem_fused_mm_1"))
    trace.events[-1]["args"] |= {"kernel_flop": 1e6, "kernel_num_gb": 0.001}
    trace.product(9.0)
    trace.events[-1]["args"]["Concrete Inputs"] = ["", ""]
    found = tables(trace)
    flash, compiled, product = found.table("products").to_pylist()
    assert flash["sizes"].endswith("causal") and flash["flops"] == 4 * 2 * 8 * (64 * 65 // 2) * 32
    assert (compiled["flops"], compiled["moved"], product["operator"]) == (10**6, 10**6, "aten::mm")
    told = found.table("host_ranges")["arguments"].to_pylist()
    assert [one and json.loads(one) for one in told] == [values, {"kernel_flop": 1e6, "kernel_num_gb": 0.001}, None]


@pytest.mark.parametrize(
    ("types", "kernel", "precision", "peak"),
    [
        (BF16, TENSOR, "bf16", 989.4),
        (HALF, "some_gemm_of_ours", "fp16", 989.4),
        (FLOAT, SIMT, "fp32", 66.9),
        (FLOAT, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16", "tf32", 494.7),
        (FLOAT, "some_gemm_of_ours", None, None),
        (DOUBLE, "cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", "fp64_matrix", 66.9),
        ("c10::complex<float>", "some_gemm_of_ours", "complex64", None),
    ],
)
def test_which_precision_it_runs_in(tables: Any, types: str, kernel: str, precision: Any, peak: Any) -> None:
    (row,) = tables(Program().product(500.0, kernel, types)).table("products").to_pylist()
    assert (row["precision"], row["peak"]) == (precision, peak)
    assert (row["bound"] is None) == (row["roof_share"] is None) == (peak is None)


def test_shares_of_the_roof(tables: Any) -> None:
    trace = Program().product(1_000.0)
    trace.operator("aten::mm", [1, 8192], [8192, 8192], within=lambda p: p.kernel(80.0))
    large, small = tables(trace).table("products").to_pylist()
    assert (large["bound"], small["bound"]) == ("compute", "memory")
    assert large["roof_share"] == pytest.approx(2 * 4096**3 / 989.4e12 / 1e-3, rel=1e-4)
    assert small["roof_share"] == pytest.approx(2 * (8192**2 + 2 * 8192) / 3352e9 / 80e-6, rel=1e-4)
    assert large["intensity"] == pytest.approx(4096 / 3) and small["intensity"] == pytest.approx(1.0, rel=1e-3)


def test_the_whole_of_a_gpu(tables: Any) -> None:
    trace = Program()
    for _ in range(4):
        trace.product(500.0).kernel(300.0, "void at::native::elementwise_kernel<128, 2>(int)")
    trace.kernel(200.0)  # of no operator
    found = tables(trace)
    (row,) = found.table("roofline").to_pylist()
    assert (row["compute_time"], row["matrix_time"]) == (3_400_000, 2_200_000)
    assert (row["known_time"], row["unknown_time"], row["judged_time"]) == (2_000_000, 200_000, 2_000_000)
    assert (row["products"], row["flops"], row["precision"], row["steps"]) == (4, 8 * 4096**3, "bf16", 0)
    assert row["step_time"] == 3_400_000 and row["step_peak_time"] == row["peak_time"]
    (stats,) = found.table("product_stats").to_pylist()
    assert (stats["count"], stats["kernel_time"], stats["flops"]) == (4, 2_000_000, 2 * 4096**3)
    assert stats["tflops"] == pytest.approx(2 * 4096**3 / 500e-6 / 1e12)


@pytest.mark.parametrize(("gpu", "units"), [("NVIDIA H100 80GB HBM3", 60), ("NVIDIA H1000", 132), ("", 132)])
def test_a_gpu_that_the_table_does_not_have(tables: Any, gpu: str, units: int) -> None:
    found = tables(Program(gpu, units).product(500.0))
    (row,) = found.table("roofline").to_pylist()
    assert not row["known_gpu"] and row["judged_time"] == 0 and row["peak"] is None and row["flops"] == 2 * 4096**3
    assert found.table("product_stats")["roof_share"].null_count == 1


def test_a_trace_without_shapes_says_nothing(tables: Any) -> None:
    found = tables(Program().operator("aten::mm", within=lambda p: p.kernel(9.0)))
    assert not any(found.table(name).num_rows for name in ("products", "product_stats", "roofline"))


def test_names_as_drivers_give_them() -> None:
    for name, tflops, bandwidth in (
        ("NVIDIA H100 80GB HBM3", 989.4, 3352),
        ("NVIDIA H200", 989.4, 4800),
        ("NVIDIA A100-SXM4-80GB", 312, 2039),
        ("Tesla V100-SXM2-16GB", 125, 900),
        ("Tesla T4", 65, 320),
        ("NVIDIA GeForce RTX 4090", 165.2, 1008),
        ("NVIDIA L40S", 362, 864),
        ("AMD Instinct MI300X", 1307.4, 5300),
    ):
        found = peaks.peaks_of(name, None)
        assert found and (found.tflops["fp16"], found.bytes_per_s) == (tflops, bandwidth * 1e9) and found.source
    assert peaks.peaks_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None) is None and peaks.peaks_of(None, 132) is None


def test_peaks_are_in_order() -> None:
    for name, one in peaks._by_name().items():
        told = one.tflops
        assert (
            one.bytes_per_s > 1e11
            and told["fp32"] <= told["fp16"]
            and not (
                set(told) - {"fp64", "fp64_matrix", "fp32", "fp32_matrix", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"}
            )
        ), name
        assert told.get("tf32", 0) <= told["fp16"] <= told.get("fp8", told["fp16"]), name


def table_of(path: Any, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Catalog(ta.load(path)).table(name).to_pylist()
    return rows


@needs_corpus
class TestRealTraces:
    def test_flops_of_a_product_are_those_that_nsight_compute_counts(self) -> None:
        """The kernel pads its tiles: it counts 1,116,691,496,960 operations of its tensor cores."""
        rows = table_of(CORPUS / "evidence" / "kernel_counters" / "gemm.slow.pt.trace.json.gz", "products")
        assert [row["flops"] for row in rows] == [1_099_511_627_776] * 5
        assert rows[0]["flops"] == pytest.approx(1_116_691_496_960, rel=0.02)

    def test_flops_of_a_step_are_those_that_deepspeed_says(self) -> None:
        """231.93 G multiply-accumulates forward, and twice as many backward."""
        (row,) = table_of(CORPUS / "evidence" / "deepspeed_log" / "ds_zero1" / "rank0.pt.trace.json.gz", "roofline")
        assert row["step_flops"] / row["steps"] == pytest.approx(3 * 2 * 231.93e9, rel=1e-3)

    def test_flops_of_a_transformer_are_those_of_its_weights(self) -> None:
        """6 layers of 2,048 with 16,384 tokens in sequences of 1,024: 6 · 12 d² · tokens a layer, and attention."""
        (row,) = table_of(CORPUS / "kineto" / "clean_train.slow.pt.trace.json.gz", "roofline")
        d, tokens, sequence, layers = 2_048, 16_384, 1_024, 6
        weights = 6 * 12 * d**2 * tokens * layers
        scores = 3.5 * 4 * tokens * sequence * d * layers
        assert row["step_flops"] / row["steps"] == pytest.approx(weights + scores, rel=0.06)
        assert row["step_peak_time"] / row["step_time"] == pytest.approx(0.4485, abs=0.001)
