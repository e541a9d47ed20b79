"""The section, the headline, figures and advice, alone and beside a trace."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.evidence.kernel_counters.pages import FIXTURES, RAW_ONE, details, raw, write
from traceanalyzer.analysis.evidence import measured
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.evidence.kernel_counters import KIND
from traceanalyzer.evidence.kernel_counters.roofline import roofline
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Grid, Scatter, Section, Words

TRACE = "gemv.slow.pt.trace.json.gz"
PAGES = ("gemv.slow.details.csv.gz", "gemv.slow.raw.csv.gz", "gemv.slow.details.txt.gz")


@cache
def result(*names: str) -> Result:
    return ta.analyze(ta.load([FIXTURES / name for name in names]))


def tables(name: str) -> Catalog:
    return Catalog(ta.load(FIXTURES / name), (), communication_patterns=())


def alone(name: str) -> Section:
    (section,) = KIND.sections(result(name), _WithPlaced(tables(name)))
    return section


class _WithPlaced:
    """Tables with none of placed evidence."""

    def __init__(self, of: Catalog) -> None:
        self._of = of

    def table(self, name: str):  # type: ignore[no-untyped-def]
        from traceanalyzer.model.placed import PLACED

        return PLACED.empty() if name == PLACED.name else self._of.table(name)


def test_the_table_and_the_roofline() -> None:
    section = alone("gemv.slow.raw.csv.gz")
    grid, plot, words = section.blocks
    assert isinstance(grid, Grid)
    assert isinstance(plot, Scatter)
    assert isinstance(words, Words)
    row = dict(zip([title for title, _ in grid.columns], grid.rows[0], strict=True))
    assert (row["Kernel"], row["Grid"], row["Limiter"], row["Launches profiled"]) == (
        "gemv_rows",
        "24",
        "too few blocks",
        2,
    )
    # Without a trace nothing is matched, and there are no columns of it.
    assert "Exposed time" not in row
    (point,) = plot.points
    assert point.x == pytest.approx(0.497, rel=0.01)
    assert [name for name, _ in plot.lines] == ["DRAM", "FP32"]
    (left, low), (ridge, high) = plot.lines[0][1]
    assert low / left == pytest.approx(high / ridge)
    assert plot.lines[1][1][0] == pytest.approx((ridge, high))


def test_tensor_cores_have_a_roof_of_their_own() -> None:
    plot = next(block for block in alone("gemm.slow.raw.csv.gz").blocks if isinstance(block, Scatter))
    assert plot.points[0].y == pytest.approx(806, rel=0.01)
    assert [name for name, _ in plot.lines] == ["DRAM", "tensor"]
    assert plot.lines[1][1][0][1] == pytest.approx(864, rel=0.01)


def test_no_roofline_without_operations() -> None:
    assert roofline([{"flop_rate": None, "dram_rate": 1.0}]) is None
    assert not any(isinstance(block, Scatter) for block in alone("gemv.slow.details.csv.gz").blocks)


def test_headline() -> None:
    said = KIND.headline(tables("gemm.slow.raw.csv.gz"))
    kernel = "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT"
    assert said == f"Kernel {kernel} is tensor-core-bound at 93% of peak at its 1.60 GHz (806 TFLOP/s), near the roof"
    assert result("gemm.slow.raw.csv.gz").verdict.headline == f"{said}."


def test_figures() -> None:
    found = {name: value.value for name, value in measured(KIND, tables("gemv.slow.details.csv.gz"))}
    assert found["kernel_counters.used"] == pytest.approx(0.0189)
    assert found["kernel_counters.profiled"] == found["kernel_counters.profiled[gemv_rows]"] == 4_270_000
    # Exposed time is a trace's.
    assert "kernel_counters.limited" not in found


def test_advice(tmp_path: Path) -> None:
    def asked(path: Path) -> set[str]:
        return {one.name for one in KIND.recording_advice(Catalog(ta.load(path), (), communication_patterns=()))}

    assert asked(FIXTURES / PAGES[0]) == {"operations and bytes for the roofline", "source lines"}
    assert asked(FIXTURES / PAGES[1]) == {"what the profiler's own rules say", "source lines"}
    assert {"throughputs of the multiprocessors and of memory", "a second launch"} <= asked(
        write(tmp_path, raw(RAW_ONE))
    )
    assert "grid and block of each launch" in asked(write(tmp_path, details(without=("Block Size", "Grid Size"))))


def test_beside_the_trace() -> None:
    found = result(TRACE, *PAGES)
    assert [(one.kind, one.placed_by, one.note) for one in found.evidence] == [
        ("kernel_counters", "the kernels that both ran", None)
    ] * 3
    fired = {finding.rule: finding for finding in found.findings}
    assert fired["KRN008"].saving.recoverable_ns > 0
    # What knows the grid only claims after it, and is left with nothing.
    assert fired["KRN004"].saving.recoverable_ns == 0
    assert "24 blocks on 132 SMs" in found.verdict.headline


def test_beside_no_trace_with_other_grids(tmp_path: Path) -> None:
    path = write(tmp_path, details(facts={"Kernel Name": "gemv_rows", "Grid Size": "(999, 1, 1)"}))
    found = ta.analyze(ta.load([FIXTURES / TRACE, path]))
    assert found.evidence[0].placed_by is None


def test_names_of_kernels_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, details(facts={"Kernel Name": "<script>alert(1)</script>{x}"}))
    assert "alert" in ta.analyze(ta.load(path)).verdict.headline
