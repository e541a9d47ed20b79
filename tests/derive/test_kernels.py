"""Kernel names and what they mean, and the tables of kernels, chains and attention blocks built on them."""

from __future__ import annotations

import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.columns import in_blocks
from traceanalyzer.derive.kernels.kernel_chains import kernel_chains
from traceanalyzer.derive.kernels.kernel_names import FAMILIES, KERNEL_NAMES, kernel_of
from traceanalyzer.names import function_path

ATEN = "void at::native::"
ELEMENTWISE = ATEN + "vectorized_elementwise_kernel<4, at::native::{}<float>, std::array<char*, 3ul> >(int, float)"
STRIDED = (
    ATEN + "elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(x)::y> >"
)
SOFTMAX = "void (anonymous namespace)::softmax_warp_{}ward<c10::Half, c10::Half, float, 11, {}, false>(c10::Half*)"
REDUCE = ATEN + "reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >(at::native::R)"
GEMM, SGEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "ampere_sgemm_128x64_nn"
CUTLASS = "void cutlass::Kernel2<cutlass_80_{}_128x256_8x4_nt_align1>(cutlass_80_{}_128x256_8x4_nt_align1::Params)"

# (name, family, tensor cores, precision)
MATRIX = [
    (GEMM, "matmul", True, "bf16"),
    ("nvjet_sm90_hsh_64x384_64x3_1x2_h_bz_coopB_NNT", "matmul", True, "fp16"),
    ("nvjet_sm90_qqtst_128x128_128x6_1x2_h_bz_TNT", "matmul", True, "fp8"),
    (SGEMM, "matmul", False, "fp32"),
    ("volta_sgemm_128x64_nt", "matmul", False, "fp32"),
    ("volta_fp16_sgemm_fp16_64x64_nn", "matmul", False, "fp16"),
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "matmul", True, "fp16"),
    ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "matmul", True, "fp16"),
    ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", "matmul", True, "bf16"),
    (CUTLASS.format("simt_sgemm", "simt_sgemm"), "matmul", False, "fp32"),
    (CUTLASS.format("tensorop_s1688gemm", "tensorop_s1688gemm"), "matmul", True, "tf32"),
    (CUTLASS.format("tensorop_d884gemm", "tensorop_d884gemm"), "matmul", True, "fp64"),
    (
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4",
        "matmul",
        False,
        "fp32",
    ),
    (
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x64x16_stage4_warpsize2x2x1_tensor16x8x8",
        "matmul",
        True,
        "tf32",
    ),
    (
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
        "convolution",
        True,
        "bf16",
    ),
    (
        "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, true, true>(int)",
        "convolution",
        False,
        "fp32",
    ),
    ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "convolution", False, "fp32"),
    ("volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", "convolution", True, "fp16"),
    ("Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN", "matmul", True, "bf16"),
    ("Cijk_Alik_Bljk_SB_MT64x64x16_SE_", "matmul", False, "fp32"),
    ("matmul_kernel", "matmul", None, None),
    ("triton_tem_fused_mm_3", "matmul", None, None),
]
# (name, family)
OTHERS = [
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>(x)", "matvec"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1", "attention"),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)", "attention"),
    ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<cute::tuple<int> > > >(x)", "attention"),
    ("void vllm::paged_attention_v2_reduce_kernel<uint16_t>(x)", "attention"),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)", "copy"),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(x)", "layout"),
    (ELEMENTWISE.format("CUDAFunctor_add"), "elementwise"),
    (ELEMENTWISE.format("FillFunctor"), "copy"),
    (STRIDED, "copy"),
    (REDUCE, "reduction"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)", "reduction"),
    (ATEN + "(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int)", "normalization"),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(x)", "normalization"),
    (
        "std::enable_if<(((8)>(0)))&&a::b<c>::d, void>::type vllm::fused_add_rms_norm_kernel<c10::Half, 8>(x)",
        "normalization",
    ),
    (
        ATEN
        + "multi_tensor_apply_kernel<at::native::FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float> >",
        "optimizer",
    ),
    (
        ATEN + "multi_tensor_apply_kernel<at::native::TensorListMetadata<2>, BinaryOpListAlphaFunctor<float> >",
        "elementwise",
    ),
    (
        ATEN + "(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 4, 64, 64>(x)",
        "copy",
    ),
    (ATEN + "vectorized_gather_kernel<16, long>(x)", "indexing"),
    (ATEN + "(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(x)", "depthwise"),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::policy<long> >(x)", "sorting"),
    ("loop_add_fusion", "elementwise"),
    ("_Z9scan_rowsPfi", "sorting"),
    ("test2(double *, unsigned long long)", "other"),
]


@pytest.mark.parametrize(("name", "family", "tensor_cores", "precision"), MATRIX)
def test_matrix_kernels(name, family, tensor_cores, precision):
    kernel = kernel_of(name)
    assert (kernel.family, kernel.tensor_cores, kernel.precision) == (family, tensor_cores, precision)


@pytest.mark.parametrize(("name", "family"), OTHERS)
def test_other_kernels(name, family):
    assert kernel_of(name).family == family


def test_template_arguments_say_nothing_of_a_function_that_is_no_wrapper():
    assert kernel_of(ELEMENTWISE.format("softmax_gemm_attention_functor")).family == "elementwise"
    assert kernel_of(REDUCE.replace("MeanOps", "layer_norm")).family == "reduction"


def test_compilers_and_softmax():
    assert kernel_of("triton_poi_fused_gelu_view_8").compiler_fused
    assert kernel_of("triton_red_fused_add_mean_mul_pow_rsqrt_tanh_0").family == "reduction"
    assert not kernel_of(ELEMENTWISE.format("CUDAFunctor_add")).compiler_fused
    assert not kernel_of(SOFTMAX.format("for", "false")).log_softmax
    assert kernel_of(SOFTMAX.format("for", "true")).log_softmax
    assert kernel_of(SOFTMAX.format("back", "(bool)0")).backward
    assert kernel_of("triton_per_fused__log_softmax_1").log_softmax
    assert kernel_of(STRIDED).strided_copy


def test_every_row_of_the_table_names_a_family():
    assert {family for family, *_ in KERNEL_NAMES} <= set(FAMILIES)


def test_the_table_ignores_case():
    """Names are matched in lower case, which must tell the same as patterns that ignore it."""
    assert not any(re.search(r"\\[A-Z]", pattern or "") for row in KERNEL_NAMES for pattern in row[1:])
    for name in [row[0] for row in (*MATRIX, *OTHERS)]:
        family = (f for f, own, whole in KERNEL_NAMES if _found(own, function_path(name)) and _found(whole or "", name))
        assert kernel_of(name).family == next(family, "other"), name


def test_a_name_without_end_takes_no_time():
    start = time.perf_counter()
    for name in ("cutlass_" * 20_000, "nc" * 50_000):
        assert kernel_of(name).family in FAMILIES
    assert time.perf_counter() - start < 2


def _found(pattern, text):
    return re.search(pattern, text, re.IGNORECASE)


def test_names_of_mangled_functions():
    assert function_path("_ZN7cutlass6KernelINS_4convEEEvv") == "cutlass::Kernel"
    assert function_path("_Z9scan_rowsPfi") == "scan_rows"


def tables(trace: KinetoTrace, tmp_path, *names: str) -> list[pd.DataFrame]:
    catalog = Catalog(ta.load(trace.write(tmp_path / "trace.json")))
    return [catalog.table(name).to_pandas() for name in names]


def sequence(
    trace: KinetoTrace, names: list[str], operators: list[str | None] | None = None, length: float = 10
) -> KinetoTrace:
    """Kernels back to back on one stream behind what is there, each launched inside its operator."""
    start = max(
        (event["ts"] + event["dur"] for event in trace.events if event.get("cat") == "kernel"), default=100_000.0
    )
    for at, name in enumerate(names):
        begin = start + at * length
        trace.op(begin, begin + length, launch=(begin - 50_000, begin - 49_998), name=name)
        if operators and operators[at]:
            trace.range(operators[at], begin - 50_001, begin - 49_997, category="cpu_op")
    return trace


def test_one_row_a_compute_kernel(tmp_path):
    trace = KinetoTrace().op(0, 10, name=SGEMM, grid=[5, 2, 2]).op(8, 20, name="scan_rows", stream=9, grid=[400, 1, 1])
    trace.op(30, 40, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL").op(50, 60, name=GEMM)
    (kernels,) = tables(trace, tmp_path, "kernels")
    assert list(kernels["family"]) == ["matmul", "sorting", "matmul"]
    assert list(kernels["blocks"].fillna(-1)) == [20, 400, -1]
    assert list(kernels["fill"].fillna(-1)) == [0.2, 4.0, -1]
    assert list(kernels["alone"]) == [8_000, 10_000, 10_000]
    # The test GPU has no compute capability, but a kernel that uses tensor cores.
    assert kernels["compute_capability"].isna().all() and kernels["gpu_has_tensor_cores"].all()


@pytest.mark.parametrize(
    ("gpu", "block", "warp", "lanes", "words"),
    [
        ("NVIDIA H100 80GB HBM3", [4, 4, 1], 32, 0.5, "4 × 4"),
        ("NVIDIA H100 80GB HBM3", [33, 1, 1], 32, 33 / 64, "33"),
        ("NVIDIA H100 80GB HBM3", [16, 16, 1], 32, 1.0, "16 × 16"),
        ("NVIDIA H100 80GB HBM3", [1, 1, 8], 32, 0.25, "1 × 1 × 8"),
        ("AMD Instinct MI250X", [32, 1, 1], 64, 0.5, "32"),
        ("AMD Radeon RX 7900 XTX", [32, 1, 1], 32, 1.0, "32"),
        ("Intel Data Center GPU Max 1550", [16, 1, 1], None, None, "16"),
        ("NVIDIA H100 80GB HBM3", None, 32, None, None),
    ],
)
def test_lanes_of_warps_that_a_block_fills(tmp_path, gpu, block, warp, lanes, words):
    trace = KinetoTrace().op(0, 10, name="fan", grid=[5, 2, 2], **({"block": block} if block else {}))
    trace.op(20, 30, name="fan")
    trace.metadata["deviceProperties"] = [{"id": 0, "name": gpu, "numSms": 100}]
    kernels = Catalog(ta.load(trace.write(tmp_path / "trace.json"))).table("kernels").to_pylist()
    assert [kernels[0][column] for column in ("warp", "lanes", "block")] == [warp, lanes, words]
    assert [kernel["runs"] for kernel in kernels] == [2, 2]
    assert (kernels[1]["threads"], kernels[1]["lanes"], kernels[1]["block"]) == (None, None, None)


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ({"computeMajor": 9, "computeMinor": 0, "name": "NVIDIA H100 80GB HBM3"}, True),
        ({"computeMajor": 6, "computeMinor": 1, "name": "GeForce GTX 1060"}, False),
        ({"computeMajor": 7, "computeMinor": 5, "name": "NVIDIA GeForce GTX 1660 Ti"}, False),
        ({}, None),
    ],
)
def test_whether_the_gpu_has_tensor_cores(tmp_path, gpu, expected):
    trace = KinetoTrace().op(0, 10, name=SGEMM)
    trace.metadata["deviceProperties"] = [{"id": 0, "name": "GPU", "numSms": 100} | gpu]
    (kernels,) = tables(trace, tmp_path, "kernels")
    assert kernels["gpu_has_tensor_cores"].tolist() == [expected]


def test_copies_that_reorder_are_conversions_only_beside_convolutions(tmp_path):
    convolution = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
    (images,) = tables(sequence(KinetoTrace(), [convolution, STRIDED]), tmp_path, "kernels")
    (tokens,) = tables(sequence(KinetoTrace(), [GEMM, STRIDED]), tmp_path, "kernels")
    assert list(images["converts"]) == [False, True] and list(tokens["converts"]) == [False, False]


def test_the_statistics_know_the_families(tmp_path):
    trace = KinetoTrace().op(0, 10, name=GEMM).op(20, 25, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    (stats,) = tables(trace, tmp_path, "kernel_stats")
    assert list(stats["family"]) == ["matmul", "communication"]


ADD, MUL = ELEMENTWISE.format("CUDAFunctor_add"), ELEMENTWISE.format("MulFunctor")


def test_chains_end_at_other_work_and_at_compiled_kernels(tmp_path):
    names = [ADD, REDUCE, MUL, GEMM, ADD, MUL, "triton_poi_fused_add_0", ADD, GEMM, ADD]
    (chains,) = tables(sequence(KinetoTrace(), names), tmp_path, "kernel_chains")
    assert list(chains["kernels"]) == [3, 2] and list(chains["distinct"]) == [3, 2]
    assert list(chains["busy"]) == [30_000, 20_000] and list(chains["longest_two"]) == [20_000, 20_000]


def test_chains_stay_on_their_stream_and_in_their_step(tmp_path):
    trace = KinetoTrace()
    for at in range(4):
        trace.op(1000 + 10 * at, 1010 + 10 * at, launch=(100 * at, 100 * at + 5), name=ADD)
        trace.op(1000 + 10 * at, 1010 + 10 * at, launch=(100 * at + 10, 100 * at + 15), name=MUL, stream=9)
    (chains,) = tables(trace, tmp_path, "kernel_chains")
    assert sorted(zip(chains["stream"], chains["kernels"], strict=True)) == [(7, 4), (9, 4)]
    trace.range("ProfilerStep#1", -10, 190).range("ProfilerStep#2", 190, 600)
    (chains,) = tables(trace, tmp_path, "kernel_chains")
    assert sorted(zip(chains["stream"], chains["kernels"], strict=True)) == [(7, 2), (7, 2), (9, 2), (9, 2)]


FORWARD, BACKWARD = SOFTMAX.format("for", "false"), SOFTMAX.format("back", "false")
EXP = ATEN + "vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(int)"
BMM, LINEAR = "aten::bmm", "aten::addmm"


def blocks(trace: KinetoTrace, tmp_path) -> list[tuple[str, int, int]]:
    """(direction, kernels, us of the products)"""
    (found,) = tables(trace, tmp_path, "attention_blocks")
    return [(d, k, m // 1000) for d, k, m in zip(found["direction"], found["kernels"], found["matmul"], strict=True)]


def test_attention_in_pieces(tmp_path):
    names = [GEMM, GEMM, MUL, MUL, FORWARD, STRIDED, GEMM, GEMM]
    operators = [LINEAR, BMM, None, None, None, None, BMM, LINEAR]
    assert blocks(sequence(KinetoTrace(), names, operators), tmp_path) == [("forward", 6, 20)]


def test_its_gradient_has_two_products_on_each_side(tmp_path):
    names = [GEMM, GEMM, GEMM, BACKWARD, MUL, GEMM, GEMM, GEMM]
    operators = ["aten::mm", BMM, BMM, None, None, BMM, BMM, "aten::mm"]
    assert blocks(sequence(KinetoTrace(), names, operators), tmp_path) == [("backward", 6, 40)]


def test_softmax_written_out(tmp_path):
    names = [GEMM, MUL, REDUCE, ADD, EXP, REDUCE, MUL, GEMM, GEMM, GEMM, GEMM, MUL, REDUCE, ADD, MUL, GEMM, GEMM]
    operators = [BMM, *[None] * 6, BMM, "aten::mm", BMM, BMM, *[None] * 4, BMM, BMM]
    found = blocks(sequence(KinetoTrace(), names, operators), tmp_path)
    assert found == [("forward", 8, 20), ("backward", 8, 40)]
    # Reductions between batched products, but nowhere an exponential.
    assert not blocks(sequence(KinetoTrace(), names[8:], operators[8:]), tmp_path)


@pytest.mark.parametrize(
    ("names", "operators"),
    [
        # A head, its loss and the gradient of both; a router; sampling.
        ([GEMM, SOFTMAX.format("for", "true"), GEMM] * 6, [BMM, None, BMM] * 6),
        ([GEMM, FORWARD, GEMM] * 6, [LINEAR, None, LINEAR] * 6),
        ([GEMM, FORWARD, ATEN + "sbtopk::gatherTopK<float>(x)", GEMM] * 6, None),
        ([GEMM, FORWARD, ATEN + "vectorized_gather_kernel<16, long>(x)", GEMM] * 6, None),
        ([GEMM, FORWARD, MUL, REDUCE, GEMM] * 6, None),
        # Once or twice, and nothing says what the products are.
        ([GEMM, FORWARD, GEMM, GEMM, FORWARD, GEMM], None),
    ],
)
def test_softmax_that_is_no_attention(tmp_path, names, operators):
    assert not blocks(sequence(KinetoTrace(), names, operators), tmp_path)


def test_without_operators_the_pattern_must_come_back_and_softmax_weigh_something(tmp_path):
    layer = [GEMM, GEMM, MUL, FORWARD, GEMM]
    assert blocks(sequence(KinetoTrace(), layer * 6), tmp_path) == [("forward", 4, 20)] * 6
    router = KinetoTrace()
    for _ in range(6):
        sequence(router, [GEMM]), sequence(router, [FORWARD], length=2), sequence(router, [GEMM, GEMM])
    assert not blocks(router, tmp_path)


def test_layers_queued_before_the_capture_are_judged_by_their_like(tmp_path):
    layer, operators = [GEMM, FORWARD, GEMM, GEMM], [BMM, None, BMM, LINEAR]
    known = sequence(sequence(KinetoTrace(), layer), layer, operators)
    assert len(blocks(known, tmp_path)) == 2
    head = sequence(KinetoTrace(), layer * 6)
    assert not blocks(sequence(head, layer, [LINEAR, None, LINEAR, LINEAR]), tmp_path)


@needs_corpus
@pytest.mark.parametrize(
    "path",
    [
        "kineto/clean_train.slow.pt.trace.json.gz",
        "kineto/conv_layout.slow.pt.trace.json.gz",
        "kineto/compiled_train.fixed.pt.trace.json.gz",
        "nsys/nvtx_dataloader.slow.sqlite",
        "public/kineto/kineto_tb_plugin/resnet50_num_workers_0/worker0_d3fb407.pt.trace.json.gz",
        "public/kineto/tracelens/b200/eager_trace.json.gz",
    ],
)
def test_little_time_is_left_without_a_family(path):
    stats = Catalog(ta.load(CORPUS / path)).table("kernel_stats").to_pandas()
    compute = stats[stats["class"] == "compute"]
    unknown = compute[compute["family"] == "other"]["total"].sum()
    assert unknown <= 0.02 * np.sum(compute["total"])


@needs_corpus
@pytest.mark.parametrize(
    "path", ["kineto/conv_layout.slow.pt.trace.json.gz", "nsys/comm_not_overlapped.slow.4gpu.sqlite"]
)
@pytest.mark.parametrize("name", ["kernels", "kernel_chains"])
def test_rows_that_are_made_at_once_make_no_difference(path, name, monkeypatch):
    catalog = Catalog(ta.load(CORPUS / path))
    whole = catalog.table(name)
    catalog.keep(["ledger_ops", "launches", "host", "step_stats"])
    monkeypatch.setattr(in_blocks, "_BLOCK", 7)
    assert whole.num_rows and catalog.table(name).to_pylist() == whole.to_pylist()


@given(
    st.lists(
        st.tuples(st.sampled_from(["add_kernel", "copy_kernel", "gemm"]), st.integers(0, 2), st.integers(1, 5)),
        min_size=1,
        max_size=15,
    ),
    st.lists(st.integers(0, 40), max_size=3),
    st.integers(1, 20),
)
def test_chains_are_neighbours_on_a_stream_within_a_step(ops, steps, block):
    start = np.cumsum([0, *(length for *_, length in ops)])
    count = len(ops)
    columns = {name: np.zeros(count, np.int64) for name in ("rank", "device", "process", "context")}
    columns |= {"stream": [stream for _, stream, _ in ops], "start_ns": start[:-1], "end_ns": start[1:]}
    named = {"name": [name for name, *_ in ops], "kind": ["kernel"] * count, "class": ["compute"] * count}
    table = pa.table({**columns, **{name: pa.array(texts).dictionary_encode() for name, texts in named.items()}})
    marks = pa.table(
        {name: np.zeros(len(steps), np.int64) for name in ("rank", "device")}
        | {"start_ns": np.array(sorted(steps), np.int64)}
    )
    expected = []
    for stream in dict.fromkeys(stream for _, stream, _ in ops):
        chain: list[int] = []
        here = [at for at in range(count) if ops[at][1] == stream]
        for at in [*here, None]:
            fuses = at is not None and ops[at][0] != "gemm"
            same_step = chain and fuses and not any(start[chain[-1]] < mark <= start[at] for mark in steps)
            if not (fuses and (same_step or not chain)):
                expected += [chain] if len(chain) > 1 else []
                chain = []
            chain += [at] if fuses else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_blocks, "_BLOCK", block)
        found = kernel_chains(table, marks)
    assert found["start_ns"].to_pylist() == [start[chain[0]] for chain in expected]
    assert found["end_ns"].to_pylist() == [start[chain[-1] + 1] for chain in expected]
    assert found["kernels"].to_pylist() == [len(chain) for chain in expected]
    assert found["distinct"].to_pylist() == [len({ops[at][0] for at in chain}) for chain in expected]
    lengths = [sorted((ops[at][2] for at in chain), reverse=True) for chain in expected]
    assert found["busy"].to_pylist() == [sum(own) for own in lengths]
    assert found["longest_two"].to_pylist() == [sum(own[:2]) for own in lengths]
    assert found["name"].to_pylist() == [ops[max(chain, key=lambda at: (ops[at][2], -at))][0] for chain in expected]
