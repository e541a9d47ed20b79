"""What is said of matrix work and of what the GPU gives: in the first sentence, in the result, in figures and in a section."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.support.products import Program
from traceanalyzer.analysis import analyze_parts, parts_of
from traceanalyzer.render.text import render_text
from traceanalyzer.report.html import render_html
from traceanalyzer.result.document import Result
from traceanalyzer.result.roofline import Rate, added
from traceanalyzer.result.verdict import Split, judge

SECOND = 10**9
IDEAL = 2 * 4096**3 / 989.4e12 * 1e6
"""Of a product of 4096 × 4096 in bf16 on an H100, in us."""
OTHER = "void at::native::elementwise_kernel<128, 2>(int)"


def trace(share: float, count: int = 20, other: float = 0.0, gpu: str = "NVIDIA H100 80GB HBM3") -> Program:
    """Products that reach that share of the peak, each followed by so many us of something else."""
    program = Program(gpu)
    for _ in range(count):
        program.product(IDEAL / share)
        if other:
            program.kernel(other, OTHER)
    return program


@pytest.fixture
def found(tmp_path: Any) -> Any:
    return lambda program: analyze_parts(parts_of(ta.load(program.write(tmp_path / "t.json"))))


def test_a_busy_gpu_far_from_its_peak_says_so(found: Any) -> None:
    analysis = found(trace(0.09))
    result: Result = analysis.result
    assert result.verdict.bound_by == "compute"
    assert (
        "; its matrix products reach 9.0% of the peak of 989 TFLOP/s in bf16, and nothing else"
        in result.verdict.headline
    )
    text = render_text(result, analysis.sections)
    assert "nothing worth fixing" not in text and "No rule knows" in render_html(result, None).decode()
    (one,) = result.roofline
    assert (one.precision, one.peak_tflops, one.known_share, one.note) == ("bf16", 989.4, 1.0, None)
    assert one.peak_share == one.roof_share == pytest.approx(0.09, abs=1e-3)
    assert one.tflops == pytest.approx(0.09 * 989.4, rel=1e-2) and one.mfu == pytest.approx(0.09, abs=2e-3)
    assert "9.0% of the peak of 989 TFLOP/s in bf16; they are 100% of its compute time" in " ".join(text.split())


def test_one_near_it_may_say_that_nothing_is_worth_fixing(found: Any) -> None:
    analysis = found(trace(0.8))
    assert "reach 80% of the peak" in analysis.result.verdict.headline
    assert (
        "nothing worth fixing" in render_text(analysis.result)
        and "Nothing worth" in render_html(analysis.result, None).decode()
    )


def test_products_that_are_a_part_say_which(found: Any) -> None:
    headline = found(trace(0.5, other=IDEAL)).result.verdict.headline
    assert "its matrix products, 67% of its compute time, reach 50% of the peak" in headline
    assert "matrix products" not in found(trace(0.5, other=50 * IDEAL)).result.verdict.headline


def test_what_is_not_known_is_not_said(found: Any) -> None:
    other = found(trace(0.5, gpu="NVIDIA H1000"))
    assert "matrix products" not in other.result.verdict.headline
    (one,) = other.result.roofline
    assert one.mfu is one.peak_share is one.roof_share is None and one.tflops > 0
    assert one.note == "no peaks are known of NVIDIA H1000"
    assert "Not known: no peaks are known of NVIDIA H1000." in " ".join(
        render_text(other.result, other.sections).split()
    )
    program = trace(0.5)
    for _ in range(20):
        program.kernel(IDEAL * 2)  # a product of no operator
    (one,) = (analysis := found(program)).result.roofline
    assert "matrix products" not in analysis.result.verdict.headline and one.mfu is None
    assert one.note and one.note.startswith("50% of the time of matrix kernels is of operators that do not tell")


def test_what_cannot_be_is_not_said(found: Any) -> None:
    result = found(trace(2.0)).result
    assert "matrix products" not in result.verdict.headline and result.roofline[0].mfu is None
    assert "more comes out than this GPU can give" in (result.roofline[0].note or "")


def test_too_little_time_is_not_judged(found: Any) -> None:
    assert "matrix products" not in found(trace(0.5, count=2)).result.verdict.headline


def test_products_that_memory_bounds(found: Any) -> None:
    program = Program()
    for _ in range(40):
        program.operator("aten::mm", [1, 8192], [8192, 8192], within=lambda p: p.kernel(80.0))
    analysis = found(program)
    assert "its matrix products reach 50% of the 3.35 TB/s of its memory" in analysis.result.verdict.headline
    assert analysis.result.roofline[0].memory_bound_share == 1.0
    for _ in range(10):
        program.product(IDEAL * 2)
    assert "of what 989 TFLOP/s in bf16 and 3.35 TB/s allow for their sizes" in found(program).result.verdict.headline


def test_a_section_shows_them_under_the_roof(found: Any) -> None:
    (section,) = found(trace(0.5)).sections
    words, plane, grid, how = section.blocks
    assert words.text.startswith("GPU 0 (NVIDIA H100 80GB HBM3): matrix products") and "MFU" in words.text
    assert [name for name, _ in plane.lines] == ["bf16: 989 TFLOP/s, memory: 3.35 TB/s"]
    ridge, roof = plane.lines[0][1][1]
    assert roof == 989.4 and ridge == pytest.approx(989.4 / 3.352)
    assert plane.points[0].y == pytest.approx(0.5 * 989.4, rel=1e-2) and "boost clock" in how.text
    assert grid.rows[0][:5] == [
        "aten::mm",
        "4096×4096 by 4096×4096",
        "bf16",
        pytest.approx(40 * IDEAL * 1_000, rel=1e-2),
        20,
    ]


def test_a_result_without_shapes_says_nothing_of_it(found: Any) -> None:
    program = Program()
    for _ in range(20):
        program.kernel(100.0)
    assert "roofline" not in found(program).result.to_dict() and not found(program).sections
    body = json.loads(found(trace(0.5)).result.to_json())
    assert Result.from_json(json.dumps(body).encode()).roofline[0].gpu == "NVIDIA H100 80GB HBM3"


def split(rate: Rate | None, **percent: float) -> Split:
    return Split(
        "GPU 0", SECOND, 0, {cause: round(share * SECOND / 100) for cause, share in percent.items()}, rate=rate
    )


NINE = Rate("the peak of 989 TFLOP/s in bf16", SECOND, SECOND * 9 // 100, SECOND, SECOND)


def test_where_the_sentence_says_it() -> None:
    said = "its matrix products reach 9.0% of the peak of 989 TFLOP/s in bf16"
    busy = split(NINE, compute=97, host=3)
    assert judge([busy]).headline == f"GPU 0 computes 97% of the time; {said}, and nothing else takes as much as 5%."
    wasteful = replace(busy, waste=(SECOND // 2, "Tensor cores that idle"))
    assert judge([wasteful]).headline == (
        f"GPU 0 computes 97% of the time; {said}; about 500 ms of 1 s could be saved: tensor cores that idle."
    )
    copies = judge([split(NINE, compute=60, memcpy=40)]).headline
    assert copies.startswith("GPU 0 computes 60% of the time, and 40%") and copies.endswith(f"covers; {said}.")
    assert "matrix products" not in judge([split(NINE, compute=40, memcpy=60)]).headline


def test_gpus_of_a_job_together() -> None:
    twice = judge([split(NINE, compute=97), split(replace(NINE, least_ns=SECOND // 4), compute=97)]).headline
    assert twice.startswith("The 2 GPUs compute 97% of the time; their matrix products reach 17% of the peak")
    other = replace(NINE, roof="the peak of 67 TFLOP/s in fp32")
    assert (
        added([NINE, other]) is None
        and "products" not in judge([split(NINE, compute=97), split(other, compute=97)]).headline
    )
    assert "products" not in judge([split(NINE, compute=97), split(None, compute=97)]).headline


def test_compare_and_check_know_it(tmp_path: Any, capsysbinary: Any) -> None:
    base, new = trace(0.5).write(tmp_path / "base.json"), trace(0.4).write(tmp_path / "new.json")
    _, out, _ = run(capsysbinary, "compare", base, new)
    assert "50% instead of" not in out and "40% instead of 50%" in " ".join(out.split())
    for budget, code in (("mfu >= 45%", 0), ("mfu >= 55%", 1), ("tflops >= 400", 0)):
        assert run(capsysbinary, "check", base, "--assert", budget)[0] == code, budget


def test_large_figures_are_written_out(found: Any) -> None:
    program = Program()
    for _ in range(20):
        program.operator(
            "aten::_scaled_mm",
            [8192, 8192],
            [8192, 8192],
            within=lambda p: p.kernel(700.0, "nvjet_sm90_qqtst_128x256_128x4_1x2_h_coopA_NTN"),
            types="c10::Float8_e4m3fn",
        )
    text = " ".join(render_text((analysis := found(program)).result, analysis.sections).split())
    assert "run at 1,571 TFLOP/s, 79% of the peak of 1,979 TFLOP/s in fp8" in text and "e+" not in text


def test_gpus_of_a_job_are_in_one_table(found: Any) -> None:
    from traceanalyzer.analysis.roofline import _merged

    row = {"operator": "aten::mm", "sizes": "1×1 by 1×1", "precision": "bf16", "kernel": "k", "bound": "compute"}
    row |= {"intensity": 5.0, "peak": 989.4, "kernel_time": 100, "count": 2, "flops": 7, "roof_share": 0.5}
    (one,) = _merged([row, {**row, "kernel_time": 300, "roof_share": 0.7}])
    assert (one["time"], one["count"], one["all"]) == (400, 4, 28) and one["roof"] == pytest.approx(260)
    assert _merged([{**row, "roof_share": None}])[0]["roof"] is None
