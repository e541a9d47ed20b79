"""What Nsight Systems says of its own recording reaches health in its own words, whatever severity it gives it."""

from __future__ import annotations

from pathlib import Path

import pytest
from nsys_export import Tables, facts, kernel, make_export, read, runtime

from traceanalyzer import load
from traceanalyzer.analysis import analyze

GPU = "CUPTI_ACTIVITY_KIND_KERNEL"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
TRACED = facts("META_DATA_CAPTURE", **{"PROCESS_0:COLLECT_CUDA_TRACE": "true"})
WORK: Tables = {GPU: [kernel()], API: [runtime()]}
NO_WORK: Tables = {API: [runtime(name=6)], **TRACED}
DRIVER = (
    "Installed CUDA driver version (99.1) is not supported by this build of Nsight Systems. Libraries for 12.9 are used"
)
NOT_STARTED = "CUDA profiling might have not been started correctly."
NOT_ALL = "Not all CUDA events might have been collected."
NO_EVENTS = "No CUDA events collected. Does the process use CUDA?"
BUFFERS = "Number of CUPTI events produced: {}, CUPTI buffers: {} of 50. Some CUPTI events might be missing."


def said(*lines: tuple[int, str]) -> Tables:
    return {"DIAGNOSTIC_EVENT": [{"severity": severity, "text": text} for severity, text in lines]}


@pytest.mark.parametrize(
    ("severity", "text", "found"),
    [
        (2, DRIVER, "info"),
        (2, NOT_STARTED, "info"),
        (2, NOT_ALL, "info"),
        (0, "CUDA hardware tracing is not supported on this system.", "info"),
        (1, BUFFERS.format(31, 49), "low"),
        (2, "1234 events were dropped", "medium"),
        (3, "the device buffer overflowed", "medium"),
        (2, "No CUDA events were lost, but some may be late", "info"),
        (2, "1234 CPU samples were lost", "info"),
    ],
)
def test_every_severity_in_its_own_words(tmp_path: Path, severity: int, text: str, found: str) -> None:
    ((code, grave, message, count, _),) = read(
        make_export(tmp_path / "e.sqlite", WORK | said((severity, text)))
    ).messages
    assert (code, grave, count) == ("TRC003", found, 1)
    assert f'"{text}"' in message


@pytest.mark.parametrize(
    "text",
    [
        "Profiling has started.",
        "CUDA injection initialized successfully.",
        "Number of CUDA events collected: \t3.",
        "Number of CUPTI events produced: 31, CUPTI buffers: 50.",
        BUFFERS.format(31, 50).partition(". ")[0] + ".",
        "Loaded CUPTI library: /opt/nvidia/libcupti.so.12.9",
    ],
)
def test_routine_says_nothing(tmp_path: Path, text: str) -> None:
    assert read(make_export(tmp_path / "e.sqlite", WORK | said((1, text)))).messages == []


def test_what_differs_in_numbers_only_is_said_once(tmp_path: Path) -> None:
    lines = [(1, BUFFERS.format(n, n)) for n in range(30, 40)]
    assert read(make_export(tmp_path / "e.sqlite", WORK | said(*lines))).said() == [("TRC003", "low", 10)]


def test_long_words_are_cut(tmp_path: Path) -> None:
    sink = read(make_export(tmp_path / "e.sqlite", WORK | said((2, "CUPTI failed. " + "again " * 500))))
    assert sink.messages[0][2] == 'Nsight Systems warns: "CUPTI failed. ..."'


def test_other_libraries_share_a_line(tmp_path: Path) -> None:
    lines = [(2, "No cuDNN events collected."), (2, "cuDNN profiling failed."), (2, "Not all NVTX events were kept.")]
    ((_, severity, message, count, _),) = read(make_export(tmp_path / "e.sqlite", WORK | said(*lines))).messages
    assert (severity, count) == ("info", 3)
    assert message.endswith('" and 2 more of this kind')


@pytest.mark.parametrize("why", [DRIVER, NOT_STARTED, NO_EVENTS, NOT_ALL, BUFFERS.format(31, 49)])
def test_the_gpu_is_not_called_unused_against_the_profilers_own_doubts(tmp_path: Path, why: str) -> None:
    lines = said((1, "Profiling has started."), (2, why))
    found = analyze(load(make_export(tmp_path / "e.sqlite", NO_WORK | lines)))
    assert not found.judged
    assert "not used" not in found.verdict.headline
    assert why in found.verdict.headline
    # Said once, and not as a note of its own as well.
    assert sum(why in note.message for note in found.health) == 1


def test_the_most_telling_comes_first(tmp_path: Path) -> None:
    lines = said((2, NOT_ALL), (2, BUFFERS.format(31, 49)), (2, DRIVER), (3, NO_EVENTS))
    headline = analyze(load(make_export(tmp_path / "e.sqlite", NO_WORK | lines))).verdict.headline
    assert headline.index("driver") < headline.index("buffers")
    assert NOT_ALL not in headline


def test_launches_whose_work_is_missing(tmp_path: Path) -> None:
    found = analyze(load(make_export(tmp_path / "e.sqlite", {API: [runtime()], **TRACED} | said((2, DRIVER)))))
    assert "what these ran is missing" in found.verdict.headline
    assert "driver" in found.verdict.headline


def test_without_doubts_it_was_not_used(tmp_path: Path) -> None:
    found = analyze(load(make_export(tmp_path / "e.sqlite", NO_WORK | said((2, "No NVTX events collected.")))))
    assert "the GPU was not used" in found.verdict.headline


def test_graphics_is_named(tmp_path: Path) -> None:
    graphics: Tables = {"DX12_WORKLOAD": [{"start": 1, "end": 9}] * 3, "OPENGL_API": [{"start": 1, "end": 2}] * 7}
    found = analyze(load(make_export(tmp_path / "e.sqlite", graphics)))
    assert not found.judged
    assert "(3 Direct3D 12 workloads on the GPU that took 24 ns, 7 OpenGL calls on the host)" in found.verdict.headline
    sink = read(make_export(tmp_path / "f.sqlite", WORK | graphics))
    assert sink.said() == [("TRC001", "low", 3)]
