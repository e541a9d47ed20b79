"""Kernel names as a person reads them."""

from __future__ import annotations

import pytest

from traceanalyzer.names import comparable_name, readable_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::k<4, at::native::F<float>, std::array<char*, 1ul> >(int, at::native::F<float>)", "k<4, F<float>>"),
        ("void at::native::k<(int)4, at::native::F<float>, std::array<char *, (unsigned long)1>>(int, T2)", "k<4, F<float>>"),
        ("void at::native::(anonymous namespace)::pool<c10::BFloat16, int>(int, long*)", "pool<BFloat16, int>"),
        ("void <unnamed>::softmax<c10::Half, (bool)1>(T2 *)", "softmax<Half, 1>"),
        (
            "void at::native::k<8, copy(at::Iterator&)::{lambda()#1}::operator()() const::{lambda(c10::Half)#2}>(int)",
            "k<8, copy>",
        ),
        ("void cudnn::cnn::helper<float, __nv_bfloat16>(void*, float)", "cudnn::cnn::helper<float, __nv_bfloat16>"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("_ZN7cutlass6KernelINS_4convEEEvv", "cutlass::Kernel<…>"),
        ("_ZN999x", "_ZN999x"),
        ("</script><img src=x>", "</script><img src=x>"),
        ("<<<", "<<<"),
        ("void ", "void"),
        ("", ""),
        ("x" * 200, "x" * 89 + "…"),
    ],
)  # fmt: skip
def test_kernel_names_are_readable(name: str, short: str) -> None:
    assert readable_name(name) == short


KOKKOS = "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::"
NVCC = "__nv_dl_wrapper_t<__nv_dl_tag<void (*)(int), &(void sol::step<double>(int)), 3u>, double*, int>"
THRUST = (
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::"
)
CUB = "void cub::CUB_200700_750_NS::"
FORALL = "void RAJA::cuda::impl::forall_cuda_kernel<RAJA::cuda_exec<RAJA::cuda::IndexGlobal<(RAJA::named_dim)0, (int)8>>, (int)1"
NESTED = "void apps::E::run<(int)128>(Id)::[lambda() (instance 1)]::operator ()() const::[lambda(long) (instance 4)]"
REDUCER = "Kokkos::Impl::CombinedFunctorReducer<md::Pair<md::LJ<Kokkos::Cuda>, (int)2>, Kokkos::Impl::Reducer<int>>"
SYCL = "typeinfo name for main::{lambda(sycl::handler&)#1}::operator()(sycl::handler&) const::{lambda(sycl::item<1>)#2}"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (f"{KOKKOS}ParallelFor<md::Force, Kokkos::RangePolicy<Kokkos::Cuda>> >(const T1)", "md::Force (Kokkos parallel_for)"),
        (
            f"{KOKKOS}ParallelReduce<{REDUCER}, Kokkos::RangePolicy<Kokkos::Cuda, md::TagHalf>, Kokkos::Cuda>, (int)256>()",
            "md::Pair<LJ<Cuda>, 2>/TagHalf (Kokkos parallel_reduce)",
        ),
        (f"{KOKKOS}ParallelFor<main::[lambda(int) (instance 2)], Kokkos::RangePolicy<>>>()", "lambda 2 in main (Kokkos parallel_for)"),
        (f"{KOKKOS}ParallelFor<{NVCC}, Kokkos::RangePolicy<>>>()", "lambda 3 in sol::step (Kokkos parallel_for)"),
        (f"{KOKKOS}ParallelFor<{'n' * 70}, Kokkos::RangePolicy<>>>()", "n" * 70),
        (f"{THRUST}__transform::unary_transform_f<int*, int*, saxpy<int>, thrust::x>, long>>(T1)", "saxpy<int> (thrust transform)"),
        (f"{THRUST}__uninitialized_fill::functor<thrust::device_ptr<float>, float>>>(int)", "thrust::uninitialized_fill<float>"),
        (f"{THRUST}for_each_f<int*, thrust::detail::wrapped_function<app::Op, void>>>>(T1)", "app::Op (thrust for_each)"),
        (
            f"{CUB}DeviceReduceKernel<cub::Policy<float>::P, thrust::transform_iterator<square<float>, float*>, cub::Sum>(T2)",
            "square<float> (cub DeviceReduceKernel)",
        ),
        (f"{CUB}DeviceScanKernel<cub::P, int*, cuda::std::__4::plus<int>, int>(T2)", "cuda::std::plus<int> (cub DeviceScanKernel)"),
        (f"{CUB}DeviceScanInitKernel<cub::ScanTileState<int, (bool)1>>(T1)", "cub::DeviceScanInitKernel<int>"),
        (f"{FORALL}, RAJA::Iterators::numeric_iterator<long>, {NESTED}, long>()", "lambda 1.4 in apps::E::run (RAJA forall)"),
        ("void alpaka::detail::gpuKernel<pic::Move<3>, alpaka::ApiCudaRt, int, float*>(alpaka::Vec<x>)", "pic::Move<3> (alpaka)"),
        (SYCL, "lambda 1.2 in main (SYCL)"),
        ("_ZTS8MyKernel", "MyKernel (SYCL)"),
        (f"void run<{NVCC} >(T1)", "run<lambda 3 in step>"),
        ("void run<(int)128, void f(int)::[lambda(long) (instance 2)]>(T2)", "run<128, lambda 2 in f>"),
    ],
)  # fmt: skip
def test_launch_templates_are_named_after_what_they_run(name, short):
    assert readable_name(name) == short
    assert readable_name(short) == short


def test_functors_are_told_apart_where_there_is_little_room_and_in_another_run():
    names = [f"{KOKKOS}ParallelFor<model::ocean::{one}, Kokkos::RangePolicy<>>>()" for one in ("Advect", "Mix")]
    assert [readable_name(name, 24) for name in names] == ["model::ocean::Advect", "model::ocean::Mix"]
    lambdas = [f"{KOKKOS}ParallelFor<main::[lambda(int) (instance {i})], Kokkos::RangePolicy<>>>()" for i in (1, 2)]
    assert len({comparable_name(name) for name in lambdas}) == 2


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void f<int>(g(h), i)", "f<int>"),
        ("wait (a note)", "wait (a note)"),
        ("adam.py(139): step", "adam.py(139): step"),
        ("(odd)", "(odd)"),
        ("odd)", "odd)"),
        ("", ""),
    ],
)
def test_notes_stay_and_arguments_go(name, short):
    assert readable_name(name) == short


@pytest.mark.parametrize(
    "name", ["f<(" + "a" * 300, "f<(" + "a " * 200, "f<" + "a::" * 150 + "(", "f<" + "(a)::{lambda(" * 60]
)
def test_no_name_takes_long(name):
    """A search that tries every way to split a word would take years."""
    assert readable_name(name).startswith("f<")


@pytest.mark.parametrize("begin", ["void thrust::a_kernel<", "void RAJA::Kernel<RAJA::x<", "f<", "Kokkos::a<"])
@pytest.mark.parametrize("again", ["b<", "RAJA::x<", "__nv_dl_wrapper_t<", "{lambda(", "thrust::f_f<"])
def test_no_launch_template_takes_long(begin, again):
    assert len(readable_name(begin + again * 9000)) <= 90
