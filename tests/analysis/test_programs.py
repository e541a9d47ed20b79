"""What kind of program a trace is of, what that does to advice, and what doctor tells each to record."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nsys.nsys_export import STRINGS, Tables, facts, global_id, kernel, make_export, memcpy, nvtx, runtime
from tests.support.kineto import KinetoTrace
from traceanalyzer.analysis import analyze
from traceanalyzer.derive.recording import program as programs
from traceanalyzer.doctor import diagnose
from traceanalyzer.ingest.pipeline import ingest
from traceanalyzer.result.document import Result

PYTHON = re.compile(r"\bPython\b|NumPy|DataLoader|\bgc\.|torch|\.py\b")
SYSTEM = {"write": 70, "poll": 71}
COMMAND = "nsys profile --trace=cuda,nvtx,osrt,mpi"


def exported(
    path: Path, process: str | None = None, name: str = "f(int*)", command: str = "", more: Tables | None = None
) -> Path:
    """An export of a program with that executable and that kernel, whose host is slow between launches."""
    at = [200_000 * i for i in range(1, 21)]
    tables: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(t, t + 9_000, correlation=i) for i, t in enumerate(at)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime(t - 9_000, t - 4_000, correlation=i) for i, t in enumerate(at)],
        **({"PROCESSES": [{"globalPid": global_id(7), "pid": 7, "name": process}]} if process else {}),
        **(facts("META_DATA_CAPTURE", COMMAND_LINE_ARGUMENTS=command) if command else {}),
        **(more or {}),
    }
    return make_export(path, tables, {**STRINGS, 1: name})


def analysed(path: Path) -> Result:
    return analyze(ingest([path]))


@pytest.mark.parametrize(
    ("process", "name", "languages", "frameworks"),
    [
        ("./solver", "void step<double>(double*)", ["C++"], []),
        ("/usr/bin/python3.11", "f(int*)", ["Python"], []),
        ("python train.py", "void at::native::copy<float>(float*)", ["Python"], ["PyTorch"]),
        ("julia main.jl", "julia_step_1234", ["Julia"], []),
        ("/opt/julia/bin/julia", "_Z6kernel13CuDeviceArrayI7Float32", ["Julia"], []),
        ("./hydro", "__omp_offloading_10_abc_main_l42", [], ["OpenMP"]),
        ("./hydro", "nvkernel__Z7computev_F1L33_2", [], ["OpenMP"]),
        ("./hydro", "update_halo_87_gpu", [], ["OpenACC"]),
        ("./hydro", "mathops_saxpy_", ["Fortran"], []),
        ("./md", "void Kokkos::Impl::launch<Force>(Force)", ["C++"], ["Kokkos"]),
        ("python3", "cupy_add__float32_float32_float32", ["Python"], ["CuPy"]),
        ("trtexec", "trt_volta_h884cudnn", [], ["TensorRT"]),
        ("./md", "void RAJA::policy::cuda::impl::forall_cuda_kernel<256ul, Body>(Body)", ["C++"], ["RAJA"]),
        ("./pic", "void alpaka::detail::gpuKernel<Move, int>(int)", ["C++"], ["alpaka"]),
        ("./fft", "typeinfo name for app::Transform", ["C++"], ["SYCL"]),
        ("./sum", "void cub::DeviceReduceKernel<Policy, float*, Add>(float*)", ["C++"], ["CUB"]),
        ("./sum", "void thrust::cuda_cub::core::_kernel_agent<Agent, cub::Sum>(int)", ["C++"], ["Thrust"]),
        ("python3", "cudapy::__main__::kernel[abi:v1](Array<float>)", ["Python"], ["Numba"]),
        ("python3", "loop_add_convert_fusion_3", ["Python"], ["JAX"]),
        ("python3", "void tensorflow::functor::Fill<float>(float*)", ["Python"], ["TensorFlow"]),
        ("julia", "gpu_broadcast_kernel_linear(CompilerMetadata)", ["Julia"], []),
        ("VLLM::EngineCore", "void vllm::rms_norm<float>(float*)", ["Python"], ["PyTorch", "vLLM"]),
        (None, "f", [], []),
    ],
)
def test_a_program_is_told_by_its_executable_and_its_kernels(
    tmp_path: Path, process: str | None, name: str, languages: list[str], frameworks: list[str]
) -> None:
    found = analysed(exported(tmp_path / "a.sqlite", process, name)).program
    assert (found.languages, found.frameworks, found.vendor) == (languages, frameworks, "NVIDIA")


def test_libraries_tell_a_language_only_where_no_process_does(tmp_path: Path) -> None:
    libraries = {**STRINGS, 1: "f", 50: "/usr/lib/libpython3.10.so.1.0", 51: "/opt/lib/libgfortran.so.5"}
    tables: Tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel()], "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime()]}
    alone = make_export(tmp_path / "alone.sqlite", tables, libraries)
    assert analysed(alone).program.languages == ["Python", "Fortran"]
    named = {**tables, "PROCESSES": [{"globalPid": global_id(7), "pid": 7, "name": "./model"}]}
    assert analysed(make_export(tmp_path / "named.sqlite", named, libraries)).program.languages == ["Fortran"]


@pytest.mark.parametrize("process", ["./solver", "julia main.jl", None])
def test_who_has_no_python_hears_of_none(tmp_path: Path, process: str | None) -> None:
    gc = [nvtx(t, t + 150_000, "GC") for t in range(210_000, 4_000_000, 200_000)]
    found = analysed(exported(tmp_path / "a.sqlite", process, more={"NVTX_EVENTS": gc}))
    assert found.findings[0].rule == "HST002"
    said = [finding.message + json.dumps(finding.recommend) for finding in found.findings] + [found.verdict.headline]
    assert not [text for text in said if PYTHON.search(text)]


def test_python_is_told_of_its_own_garbage(tmp_path: Path) -> None:
    gc = [nvtx(t, t + 150_000, "GC") for t in range(210_000, 4_000_000, 200_000)]
    found = analysed(exported(tmp_path / "a.sqlite", "python3", more={"NVTX_EVENTS": gc}))
    assert "gc.freeze()" in json.dumps(found.findings[0].recommend)


def test_advice_to_record_keeps_what_was_recorded(tmp_path: Path) -> None:
    found = analysed(exported(tmp_path / "a.sqlite", "./solver", command=f"{COMMAND} ./solver"))
    assert "--trace=cuda,nvtx,osrt,mpi" in json.dumps(found.findings[0].recommend)


@pytest.mark.parametrize(
    ("process", "name", "marks", "runs"),
    [
        ("./solver", "f(int*)", "nvtxRangePushA(name);", "./program"),
        ("julia main.jl", "julia_f_1", "NVTX.@range", "julia --project main.jl"),
        ("./hydro", "mathops_saxpy_", "call nvtxStartRange", "./program"),
        ("./md", "void Kokkos::Impl::launch<Force>(Force)", "Kokkos::Profiling::pushRegion", "./program --kokkos"),
        ("python3", "cupy_add__float32", "time_range", "python main.py"),
        ("python3", "f(int*)", "nvtx.annotate", "python main.py"),
        ("python3", "void at::native::f<float>(float*)", "torch.cuda.nvtx.range_push", "python train.py"),
    ],
)
def test_doctor_speaks_the_language_of_the_program(
    tmp_path: Path, process: str, name: str, marks: str, runs: str
) -> None:
    path = exported(tmp_path / "a.sqlite", process, name, f"{COMMAND} {process}")
    (recording,) = diagnose([path]).recordings
    marking, command = recording.next_time.snippets
    assert marks in marking.text
    assert runs in command.text
    assert "--trace=cuda,nvtx,osrt,mpi" in command.text
    if "python" not in process:
        said = json.dumps([vars(setting) for setting in recording.next_time.settings]) + marking.text + command.text
        assert not PYTHON.search(said)


def test_doctor_keeps_samples(tmp_path: Path) -> None:
    samples = {"SAMPLING_CALLCHAINS": [{"id": 1, "symbol": 2}]}
    (recording,) = diagnose([exported(tmp_path / "a.sqlite", "./solver", more=samples)]).recordings
    assert "--sample=process-tree" in recording.next_time.snippets[-1].text
    assert "samples" not in [setting.name for setting in recording.next_time.settings]


def test_an_mpi_program_is_started_by_mpirun(tmp_path: Path) -> None:
    calls = {"MPI_P2P_EVENTS": [{"start": 10, "end": 20, "globalTid": global_id(7, 8)}]}
    (recording,) = diagnose([exported(tmp_path / "a.sqlite", "./solver", more=calls)]).recordings
    assert "MPI" in recording.contents.program.frameworks
    assert recording.next_time.snippets[-1].text.startswith("mpirun -n $RANKS nsys profile")
    assert "run.rank%q{OMPI_COMM_WORLD_RANK}" in recording.next_time.snippets[-1].text


@pytest.mark.parametrize(("share", "compiled"), [(1.0, True), (0.5, True), (0.01, False)])
def test_a_compiled_norm_is_no_compiled_model(tmp_path: Path, share: float, compiled: bool) -> None:
    made = KinetoTrace()
    for i in range(100):
        name = "triton_poi_fused_add_0" if i < 100 * share else "ampere_sgemm_128x64_nn"
        made.op(1000 * i + 100, 1000 * i + 900, launch=(1000 * i, 1000 * i + 50), name=name)
    assert analysed(made.write(tmp_path / "t.json")).program.compiled is compiled


@pytest.mark.parametrize(("gap", "wait", "held"), [(2, False, True), (2, True, False), (-400, False, False)])
def test_one_hardware_queue_is_told_by_what_waits_without_being_asked(
    tmp_path: Path, gap: int, wait: bool, held: bool
) -> None:
    """`gap` us from the end of a collective to the computation that was launched behind it, with or without a wait between them."""
    made = KinetoTrace()
    for i in range(20):
        at, begin = 40 * i, 2_000 + 1_000 * i
        made.op(begin, begin + 498, launch=(at, at + 5), name="gemm", stream=7)
        made.op(
            begin + 499,
            begin + 999,
            launch=(at + 10, at + 15),
            name="ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
            stream=20,
        )
        if wait:
            made.call("cudaStreamWaitEvent", at + 17, at + 18)
    for op in made.events:
        op["ts"] += gap - 1 if op["name"] == "gemm" and gap < 0 else 0
    found = {finding.rule for finding in analysed(made.write(tmp_path / "t.json")).findings}
    assert ("COM007" in found) is held


@pytest.mark.parametrize(
    ("work", "between", "returned", "told"),
    [
        (20_000, [], 1 << 24, True),
        (900_000, [], 1 << 24, False),
        (20_000, ["MPI_Sendrecv"], 1 << 24, False),
        (20_000, ["write"], 1 << 24, False),
        (20_000, ["poll"], 1 << 24, True),
        (20_000, [], 1 << 23, False),
    ],
    ids=[
        "at once",
        "after the host had the time to change it",
        "after another rank had it",
        "after it was written out",
        "a wait",
        "another size",
    ],
)
def test_a_round_trip_is_data_that_nobody_used(
    tmp_path: Path, work: int, between: list[str], returned: int, told: bool
) -> None:
    """`work` ns on the host, and `between` ranges, from the end of each copy down to the start of the next copy up."""
    kernels, copies, calls, ranges, system = [], [], [], [], []
    at, number = 1_000_000, 0
    for _ in range(10):
        for kind, size, length in ((1, returned, 1_000_000), (0, 0, 100_000), (2, 1 << 24, 1_000_000)):
            number += 1
            calls.append(runtime(at - 5_000, at - 2_000, correlation=number))
            if kind:
                copies.append(memcpy(at, at + length, kind=kind, bytes=size, correlationId=number))
            else:
                kernels.append(kernel(at, at + length, correlation=number))
            at += length + 10_000
        for name in between:
            if name in SYSTEM:
                system.append({"start": at, "end": at + 1_000, "globalTid": global_id(7, 8), "nameId": SYSTEM[name]})
            else:
                ranges.append(nvtx(at, at + 1_000, name))
        at += work
    tables: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "NVTX_EVENTS": ranges,
        "OSRT_API": system,
        "PROCESSES": [{"globalPid": global_id(7), "pid": 7, "name": "./jacobi"}],
    }
    tables = {name: rows for name, rows in tables.items() if rows}
    names = {**STRINGS, 1: "__omp_offloading_10_abc_main_l42", **{number: name for name, number in SYSTEM.items()}}
    path = make_export(tmp_path / "a.sqlite", tables, names)
    found = {finding.rule: finding for finding in analysed(path).findings}
    assert ("CPY006" in found) is told
    if told:
        assert "target data" in json.dumps(found["CPY006"].recommend)


@settings(max_examples=40)
@given(st.data())
def test_no_name_with_a_sign_is_left_out(data: st.DataObject) -> None:
    """The quick pass over all names keeps what the expressions for each sign find, with letters and digits of any script."""
    sign = data.draw(st.sampled_from([*programs._BY_NAME.values(), programs._XLA]))
    name = data.draw(st.from_regex(sign).filter(lambda text: text.isprintable() or "\n" in text))
    assert programs._with_signs([name, "x"]) == {name}


@pytest.mark.parametrize(
    "name", ["é::at::native", "_QMäPö", "_１_gpu\n", "loop_ä_fusion", "a.omp_fn$omp_fn", "MPI_Send\n"]
)
def test_a_sign_among_letters_of_another_script(name: str) -> None:
    assert any(sign.search(name) for sign in (*programs._BY_NAME.values(), programs._XLA))
    assert programs._with_signs([name]) == {name}
