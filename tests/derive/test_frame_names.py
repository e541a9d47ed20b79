"""What the stack of a CPU sample is read as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.model.frame_names import Sampled, read_stack, with_caller


@pytest.mark.parametrize(
    ("stack", "ran", "caller", "own"),
    [
        ("_start;main;load_mesh(char const*);__isoc99_fscanf;__vfscanf_internal", "fscanf", "load_mesh", "load_mesh"),
        ("_start;main;solve(int);__memset_avx2_unaligned_erms", "memset", "solve", "solve"),
        ("main;cpu_factor(Matrix const&)", "cpu_factor", None, "cpu_factor"),
        ("main;a::Solver<int>::step(double);inner(int)", "inner", "a::Solver::step", "inner"),
        ("main;fib;fib;fib", "fib", None, "fib"),
        ("main;load;[libcuda.so.1];[kernel.kallsyms]", "load", None, "load"),
        ("main;exchange;MPI_Waitall;PMPI_Waitall;ompi_request_default_wait_all;opal_progress;uct_mm_iface_progress",
         "MPI progress", "exchange", "exchange"),
        ("main;_PyEval_EvalFrameDefault;_PyFunction_Vectorcall;gc_collect_main;visit_decref",
         "Python's garbage collection", None, None),
        ("main;Py_BytesMain;_PyEval_EvalFrameDefault;cfunction_call;tokenize", "tokenize", None, "tokenize"),
        ("julia_solve_123;jl_apply_generic;jfptr_inner_7;julia_inner_88", "inner", "solve", "inner"),
        ("MAIN__;__mesh_MOD_read_mesh;_gfortran_st_read", "gfortran_st_read", "read_mesh", "read_mesh"),
        ("main;parse;std::vector<int, std::allocator<int> >::push_back(int&&);malloc;_int_malloc",
         "std::vector::push_back", "parse", "parse"),
        ("start_thread;[libTool.so];[libcuda.so.1];__poll", "poll", None, None),
        ("[unknown];cudnnCreate;[libcudnn.so];cuInit;__GI___ioctl", "cudnnCreate", None, None),
        ("[libcuda.so.1]", None, None, None),
        ("0x7fffa000;[kernel.kallsyms]", None, None, None),
        ("_PyEval_EvalFrameDefault", None, None, None),
    ],
)  # fmt: skip
def test_the_function_that_says_something(stack, ran, caller, own):
    assert read_stack(stack) == Sampled(ran, caller, own)


@given(st.text(max_size=200))
def test_any_text_is_read(stack):
    found = read_stack(stack)
    assert found.caller is None or found.caller != found.ran


def test_frames_of_python():
    main, step, merge = "train.py(50): <module>", "train.py(45): step", "/run/data.py(17): merge"
    torch = "torch/nn/modules/module.py(1750): _call_impl"
    read = {
        (main, step, merge): ("data.py:17 (merge)", None, "data.py:17 (merge)", "step"),
        (main, step, merge, "/run/data.py(18): <listcomp>"): ("data.py:17 (merge)", None, "data.py:17 (merge)", "step"),
        (main, step, torch): ("module.py:1750 (_call_impl)", "train.py:45 (step)", "train.py:45 (step)", "<module>"),
        (main,): ("train.py:50 (<module>)", None, "train.py:50 (<module>)", None),
        (torch,): ("module.py:1750 (_call_impl)", None, None, None),
        (main, step, merge, "malloc"): ("data.py:17 (merge)", None, "data.py:17 (merge)", "step"),
    }
    for stack, said in read.items():
        found = read_stack(";".join(stack))
        assert (found.ran, found.caller, found.own, found.around) == said, stack
    assert with_caller("data.py:17 (merge)", "step") == "data.py:17 (step → merge)"
