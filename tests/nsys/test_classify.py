"""What names mean."""

from __future__ import annotations

import pyarrow as pa
import pytest

from traceanalyzer.ingest.rows.classify import api_class, function_path, kernel_class, map_names, plain_api_name
from traceanalyzer.model.markers import is_step_name

API = {
    "launch": """cudaLaunchKernel cudaLaunchKernel_v7000 cudaLaunchKernelExC_v11060 cuLaunchKernel cuLaunchKernelEx
        cudaLaunchCooperativeKernel_v9000 cudaLaunchCooperativeKernelMultiDevice cuLaunchCooperativeKernel cudaLaunch cuLaunchGrid
        cudaGraphLaunch_v10000 cuGraphLaunch cudaGraphLaunch_ptsz hipLaunchKernel hipExtModuleLaunchKernel hipModuleLaunchKernel
        hipGraphLaunch hipExtLaunchKernel hipLaunchCooperativeKernel hipHccModuleLaunchKernel hipDrvLaunchKernelEx
        hipExtLaunchMultiKernelMultiDevice hipModuleLaunchCooperativeKernelMultiDevice cudaLaunchKernelExC_v11060_ptsz""",
    "sync": """cudaDeviceSynchronize_v3020 cudaStreamSynchronize cudaStreamSynchronize_ptsz cudaEventSynchronize cuCtxSynchronize
        cuStreamSynchronize cuEventSynchronize hipDeviceSynchronize hipStreamSynchronize hipEventSynchronize""",
    "copy": """cudaMemcpyAsync_v3020 cudaMemcpy cudaMemcpy2DAsync cudaMemcpyPeerAsync cudaMemset cudaMemsetAsync cuMemcpyHtoDAsync_v2
        cuMemsetD8Async hipMemcpyAsync hipMemcpyWithStream hipMemsetAsync cudaMemPrefetchAsync""",
    "memory": """cudaMalloc_v3020 cudaMallocAsync cudaMallocManaged cudaMallocHost cudaFree cudaFreeAsync_ptsz cudaFreeHost
        cudaHostAlloc cudaHostRegister cudaHostUnregister cuMemAlloc_v2 cuMemCreate cuMemMap cuMemUnmap cuMemSetAccess cuMemRelease
        cuMemAddressReserve cuMemHostAlloc cudaMemGetInfo hipMalloc hipFree hipHostMalloc hipHostFree""",
    "event": """cudaEventRecord cudaEventRecordWithFlags cudaStreamWaitEvent cuStreamWaitEvent cudaEventQuery cudaEventCreate
        hipEventRecord hipStreamWaitEvent""",
    "other": """cudaStreamQuery cudaLaunchHostFunc cuLaunchHostFunc cudaFuncSetAttribute cudaGetDevice cudaStreamIsCapturing
        cudaGraphInstantiate cudaGraphAddMemcpyNode cuModuleLoadData cudaProfilerStart cumulative curand INVALID #12""",
}


@pytest.mark.parametrize(("expected", "name"), [(kind, name) for kind, names in API.items() for name in names.split()])
def test_api_class(expected: str, name: str) -> None:
    assert api_class(name) == api_class(plain_api_name(name)) == expected


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
        ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties"),
        ("cudaStreamSynchronize_ptds", "cudaStreamSynchronize"),
        ("hipLaunchKernel", "hipLaunchKernel"),
        ("", ""),
    ],
)
def test_plain_api_name(raw: str, plain: str) -> None:
    assert plain_api_name(raw) == plain


COMMUNICATION = [
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "ncclDevKernel_Generic_1",
    "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
    "ncclSymkRun_AllGather_RailRing_LsaSTMC",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
    "rcclGenericKernel",
    "void mscclpp::allreduce<1>(int)",
    "void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*, vllm::RankSignals)",
    "void sglang::cross_device_reduce_2stage<float, 4>(int)",
    "void c10d::symmetric_memory::(anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(int)",
    "void two_shot_all_reduce_kernel_inplace<float>(int)",
    "void (anonymous namespace)::multimem_all_reduce_kernel<float>(int)",
    "void multimem_one_shot_all_reduce_kernel<float>(int)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, __half>(int)",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<int>(int)",
    "void quickreduce::allreduce_prototype_twoshot<int>(int)",
    "void quick_all_reduce_kernel<int>(int)",
    "void deep_ep::intranode::dispatch<4, 768, 8192>(int4*)",
    "void deep_ep::internode_ll::combine<true>(void*)",
    "void deep_ep::internode::notify_dispatch<false, 4>(int const*)",
    "nvshmemi_barrier_kernel(int)",
    "rocshmem_put_kernel(int)",
    "hcom_allReduce__503_1_1",
    "HcclAllreduce",
    "c10d::symmetric_memory::barrier_kernel(unsigned int**, unsigned long, int, int, unsigned long)",
    "void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<8>(int const*)",
    "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<1, __half>(int)",
    "void userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int)",
    "void nvshmem::put<int>(int)",
]
COMPUTE = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64>>(Flash_fwd_params)",
    "dispatch",
    "combine",
    "void moe::dispatch<int>(int)",
    "void vllm::moe::moe_align_block_size_kernel<int>(int)",
    "void c10d::symmetric_memory::async_input_mm<int>(int)",
    "kernel_fused_moe_all",
    "void deep_ep::layout::get_dispatch_layout<256>(int)",
    "triton_poi_fused_all_reduce_0",
    "triton_red_fused_nccl_0",
    "void apply<(anonymous namespace)::ncclDevKernel_AllReduce>(int)",
    "void f<deep_ep::intranode::Config>(int)",
    "sm90_xmma_gemm_f32f32_tilesize128x128x32",
    "Memcpy HtoD (Pinned -> Device)",
    "std::enable_if<(4 > 3), void>::type cutlass::fusion<int>(int)",
    "",
    "#12",
]


@pytest.mark.parametrize("name", COMMUNICATION)
def test_communication(name: str) -> None:
    assert kernel_class(name) == "communication"


@pytest.mark.parametrize("name", COMPUTE)
def test_compute(name: str) -> None:
    assert kernel_class(name) == "compute"


def test_kernel_names_can_be_added() -> None:
    extra = [(r"my_ring_\w+", "communication"), (r"ncclTest", "compute")]
    assert kernel_class("void ns::my_ring_step<int>(int)", extra) == "communication"
    assert kernel_class("ncclTest(int)", extra) == "compute"
    assert kernel_class("ncclOther(int)", extra) == "communication"


@pytest.mark.parametrize(
    ("signature", "path"),
    [
        ("void a::b<int, (c)3>(d<e>)", "a::b"),
        ("std::enable_if<(x<3>), void>::type a::f<int>(b)", "a::f"),
        ("void (anonymous namespace)::f(int)", "f"),
        ("plain", "plain"),
        ("<<<", "<<<"),
    ],
)
def test_function_path(signature: str, path: str) -> None:
    assert function_path(signature) == path


STEPS = """step_0|Step 12|iteration 3|Iteration: 3|iter_7|ProfilerStep#5|ProfilerStep*|train_step|step|train step 4
batch 3|decode_step_9|iteration 3/100|step 3 of 9|global_step=7"""
OTHERS = """optimizer.step|Optimizer.step#SGD.step|load_batch|batch|steps_total|stepwise|step_0_forward||data_loading|iterator
microbatch 3|epoch 1"""


@pytest.mark.parametrize("name", STEPS.replace("\n", "|").split("|"))
def test_step_names(name: str) -> None:
    assert is_step_name(name)


@pytest.mark.parametrize("name", OTHERS.replace("\n", "|").split("|"))
def test_other_names(name: str) -> None:
    assert not is_step_name(name)


def test_map_names() -> None:
    expected = ["A", None, "A", "B"]
    for names in (
        pa.array(["a", None, "A", "b"]),
        pa.array(["a", None, "A", "b"]).dictionary_encode(),
        pa.chunked_array([["a", None], ["A", "b"]]),
        pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["A", "b"]).dictionary_encode()]),
    ):
        mapped = map_names(names, str.upper)
        assert mapped.to_pylist() == expected
        assert mapped.dictionary.to_pylist() == ["A", "B"]
    assert len(map_names(pa.chunked_array([], pa.string()), str.upper)) == 0
    assert map_names(pa.array(["a", "b"]), lambda name: name if name == "a" else None).to_pylist() == ["a", None]
