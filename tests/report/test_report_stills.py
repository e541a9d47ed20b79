"""Still pictures: what they hold at the edges of what figures and timelines can be."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from traceanalyzer.report.charts.figure import axis, layout
from traceanalyzer.report.palette import CODES
from traceanalyzer.report.stills.axes import axis_of, round_ticks
from traceanalyzer.report.stills.chart import MOST_CELLS, chart_still
from traceanalyzer.report.stills.timeline import MOST_ROWS, timeline_still
from traceanalyzer.report.timeline.lanes import Group, Lane
from traceanalyzer.report.timeline.slices import make_slices


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 337.2), (-3e-5, 2e-5), (1e9, 1e9 + 7), (5.0, 5.0)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    ticks = [at for at, _ in round_ticks(low, high)]
    assert len(ticks) <= 8 and all(low - 1e-9 <= at <= high * (1 + 1e-9) for at in ticks)
    assert len(ticks) >= 3 or low == high
    assert np.allclose(np.diff(ticks), np.diff(ticks)[:1]) if len(ticks) > 1 else True


@pytest.mark.parametrize("values", [[], [0.0], [7.0, 7.0], [None, 3.0]])
def test_an_axis_has_a_length_whatever_its_values(values: list[float | None]) -> None:
    for said in (axis("x"), axis("x", rangemode="tozero")):
        made = axis_of(said, values, True)
        assert made.high > made.low


def test_stacked_bars_lie_on_one_another_and_names_are_text() -> None:
    hostile = "&lt;/svg&gt;&lt;script&gt;"  # as figures write what plotly would read as markup
    bars = [
        {"type": "bar", "name": key, "meta": key, "x": [hostile, "b"], "y": heights}
        for key, heights in (("compute", [1.0, 2.0]), ("idle.input", [3.0, None]))
    ]
    drawn = layout(axis("step", type="category"), axis("time, ms", rangemode="tozero"), showlegend=False)
    svg = str(chart_still("steps", "medium", bars, drawn))
    boxes = [tuple(map(float, box)) for box in re.findall(r"M([\d.-]+) ([\d.-]+)h[\d.-]+v([\d.-]+)h", svg)]
    (x, top, tall), (_, _, taller), (above_x, above_top, above_tall) = boxes
    assert taller == pytest.approx(2 * tall, abs=0.2) and above_tall == pytest.approx(3 * tall, abs=0.3)
    assert above_x == x and above_top + above_tall == pytest.approx(top, abs=0.15)
    assert "&lt;/svg&gt;&lt;script&gt;" in svg and "<script" not in svg
    assert 'fill="url(#hatch-idle-input)"' in svg and "style=" not in svg


def test_a_large_heat_map_is_folded() -> None:
    z = [[float(row * column % 97) for column in range(200)] for row in range(1024)]
    heat = {"type": "heatmap", "meta": "heat", "z": z, "zmin": 0, "zmax": 97, "x": [*map(str, range(200))]}
    heat["y"] = [f"rank {row}" for row in range(1024)]
    drawn = layout(axis("step", type="category"), axis("", type="category", autorange="reversed"))
    svg = str(chart_still("heat", "huge", [heat], drawn))
    assert svg.count("h-") <= MOST_CELLS[0] * MOST_CELLS[1] and len(svg) < 120_000


def _lane(label: str, kind: str, starts: list[int], ends: list[int], colours: list[str]) -> Lane:
    names = np.zeros(len(starts), dtype=np.uint32)
    codes = np.array([CODES[colour] for colour in colours], dtype=np.uint8)
    return Lane(label, [make_slices(np.array(starts), np.array(ends), names, codes)], kind)  # type: ignore[arg-type]


def test_a_ledger_keeps_its_shares() -> None:
    ledger = _lane("where time went", "ledger", [0, 250, 750], [250, 750, 1000], ["compute", "idle.input", "compute"])
    svg = str(timeline_still([Group("GPU 0", 0, 0, (0, 1000), [ledger])], ["x"], (0, 1000)))
    widths = [float(one) for one in re.findall(r"h([\d.]+)v24h", svg)]
    assert len(widths) == 3 and widths[2] == pytest.approx(2 * widths[0], rel=0.05)  # colour by colour
    assert "GPU 0" in svg and "where time went" in svg


def test_what_a_picture_of_a_timeline_leaves_out_it_says() -> None:
    lanes = [_lane(f"stream {n}", "slices", [n], [n + 5], ["compute"]) for n in range(MOST_ROWS + 2)]
    svg = str(timeline_still([Group("GPU 0", 0, 0, (0, 100), lanes)], ["<kernel>"], (0, 100)))
    assert "2 more rows of slices are not in this picture." in svg and "<kernel>" not in svg
    tops = [float(y) for y in re.findall(r'<path class="c-compute" d="M[\d.]+ ([\d.]+)h', svg)]
    assert len(tops) >= MOST_ROWS and all(a <= b for a, b in pairwise(tops))


def test_threads_that_are_alike_in_all_but_their_process_both_have_a_heading() -> None:
    alike = [Group("worker 7", 0, None, (0, 100), [_lane("operators", "slices", [0, 9], [5, 20], ["operator"] * 2)])
             for _ in range(2)]  # fmt: skip
    assert str(timeline_still(alike, ["x"], (0, 100))).count("worker 7") == 2


def test_nothing_at_all_is_a_picture_too() -> None:
    assert timeline_still([], [], (0, 0)).startswith("<svg")
