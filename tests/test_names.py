"""Kernel names as a person reads them."""

from __future__ import annotations

import pytest

from traceanalyzer.names import readable_name


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
