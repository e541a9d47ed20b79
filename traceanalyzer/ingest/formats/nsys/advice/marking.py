"""How a program marks its steps and bounds its recording for Nsight Systems, in the language that it is written in."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Program
from traceanalyzer.result.recording.diagnosis import Snippet
from traceanalyzer.result.recording.ways import NEW

_HERE = " <new>"
_BY_CALLS = ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
# Where no call starts the recording a range does, whose name need not be registered.
_BY_RANGE = [
    "--capture-range=nvtx",
    "--nvtx-capture=recorded",
    "--capture-range-end=stop",
    "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
]


@dataclass(frozen=True)
class Marking:
    """`about` says which program it is for, `language` what `text` is written in, in which `_HERE` ends the line that marks steps.
    `bounds` are the options that go with it, `command` is what runs such a program. `torchrun` says that it starts its ranks."""

    about: str
    language: str
    comment: str
    text: str
    command: str
    bounds: list[str]
    torchrun: bool = False

    def snippet(self, new: bool) -> Snippet:
        """`new` calls out that steps were not marked so far."""
        mark = f"  {self.comment} {NEW.split('# ', 1)[1]}" if new else ""
        return Snippet(
            f"In the program, for Nsight Systems ({self.about})", self.language, self.text.replace(_HERE, mark)
        )


_PYTORCH = Marking(
    "here PyTorch; any NVTX and CUDA binding does",
    "python",
    "#",
    """\
for step, batch in enumerate(loader):
    if step == 10:
        torch.cuda.profiler.start()  # cudaProfilerStart(): recording begins after the warm-up
    torch.cuda.nvtx.range_push(f"step_{step}") <new>
    train_step(batch)
    torch.cuda.nvtx.range_pop()
    if step == 15:
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()""",
    "python train.py",
    _BY_CALLS,
    torchrun=True,
)
_CUPY = Marking(
    "CuPy",
    "python",
    "#",
    """\
from cupyx.profiler import profile, time_range

for step in range(10):  # warm-up
    iterate(step)
with profile():  # cudaProfilerStart() and cudaProfilerStop()
    for step in range(10, 15):
        with time_range(f"step_{step}"): <new>
            iterate(step)""",
    "python main.py",
    _BY_CALLS,
)
_PYTHON = Marking(
    "Python, with the packages nvtx and cuda-python",
    "python",
    "#",
    """\
import nvtx
from cuda.bindings import runtime

for step in range(steps):
    if step == 10:
        runtime.cudaProfilerStart()  # recording begins after the warm-up
    with nvtx.annotate(f"step_{step}"): <new>
        iterate(step)
    if step == 15:
        runtime.cudaDeviceSynchronize()
        runtime.cudaProfilerStop()""",
    "python main.py",
    _BY_CALLS,
)
_JULIA = Marking(
    "Julia, with CUDA.jl and NVTX.jl",
    "julia",
    "#",
    """\
using CUDA, NVTX

foreach(iterate!, 1:10)  # warm-up: everything is compiled
CUDA.@profile external=true for step in 11:15
    NVTX.@range "step_$step" iterate!(step) <new>
end""",
    "julia --project main.jl",
    _BY_CALLS,
)
_FORTRAN = Marking(
    "Fortran; nvfortran links it with -cudalib=nvtx",
    "fortran",
    "!",
    """\
use nvtx

do step = 1, steps
  if (step == 10) call nvtxStartRange("recorded")  ! recording begins after the warm-up
  call nvtxStartRange("step", step) <new>
  call iterate(step)
  call nvtxEndRange
  if (step == 15) call nvtxEndRange
end do""",
    "./program",
    _BY_RANGE,
)
_KOKKOS = Marking(
    "Kokkos; the nvtx-connector of kokkos-tools turns regions and kernels into ranges",
    "cpp",
    "//",
    """\
#include <cuda_profiler_api.h>

for (int step = 0; step < steps; ++step) {
  if (step == 10) cudaProfilerStart();  // recording begins after the warm-up
  Kokkos::Profiling::pushRegion("step_" + std::to_string(step)); <new>
  iterate(step);
  Kokkos::Profiling::popRegion();
  if (step == 15) { Kokkos::fence(); cudaProfilerStop(); }
}""",
    "./program --kokkos-tools-libs=libkp_nvtx_connector.so",
    _BY_CALLS,
)
_CPP = Marking(
    "C and C++; NVTX has headers alone, nvtx3/",
    "cpp",
    "//",
    """\
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

char name[32];
for (int step = 0; step < steps; ++step) {
  if (step == 10) cudaProfilerStart();  // recording begins after the warm-up
  snprintf(name, sizeof name, "step_%d", step);
  nvtxRangePushA(name); <new>
  iterate(step);
  nvtxRangePop();
  if (step == 15) { cudaDeviceSynchronize(); cudaProfilerStop(); }
}""",
    "./program",
    _BY_CALLS,
)
# By what the result calls a framework or a language, narrow before wide.
_MARKINGS = {
    "PyTorch": _PYTORCH,
    "CuPy": _CUPY,
    "Python": _PYTHON,
    "Julia": _JULIA,
    "Kokkos": _KOKKOS,
    "Fortran": _FORTRAN,
}


def marking_of(program: Program) -> Marking:
    """The marking for a program; C++ where nothing else is known."""
    known = {*program.frameworks, *program.languages}
    return next((marking for name, marking in _MARKINGS.items() if name in known), _CPP)
