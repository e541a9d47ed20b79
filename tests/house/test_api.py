"""The Python interface that the README shows."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.report.palette import BY_KEY

PATH = FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz"


@pytest.fixture(scope="module")
def trace() -> ta.Trace:
    return ta.load(PATH)


def test_load_takes_text_paths_and_lists(trace):
    for given in (str(PATH), [PATH], (str(PATH),)):
        assert ta.load(given).table("gpu_ops").equals(trace.table("gpu_ops"))


def test_tables(trace):
    table = trace.table("gpu_ops")
    assert isinstance(table, pa.Table) and table.num_rows
    frame = trace.to_pandas("gpu_ops")
    assert isinstance(frame, pd.DataFrame) and len(frame) == table.num_rows
    assert frame["start_ns"].dtype == "int64" and isinstance(frame["name"].dtype, pd.CategoricalDtype)


def test_an_unknown_table_names_the_known_ones(trace):
    for read in (trace.table, trace.to_pandas):
        with pytest.raises(KeyError, match="no table 'kernels'; the tables are gpu_ops, api_calls"):
            read("kernels")


def test_what_cannot_be_read_is_an_input_error(tmp_path):
    with pytest.raises(ta.InputError, match="no such file"):
        ta.load(tmp_path / "missing.json")


def test_results_are_deterministic_and_round_trip(trace):
    result = ta.analyze(trace)
    text = result.to_json()
    assert text == ta.analyze(ta.load(PATH)).to_json()
    assert ta.Result.from_json(text) == result
    assert ta.Result.from_json(text).to_json() == text
    assert list(result.to_dict())[:3] == ["schema_version", "tool", "inputs"]


def test_unknown_attributes_fail_as_they_should():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = ta.nope
    for name in ta.__all__:
        assert getattr(ta, name) is not None


def test_charts_are_plotlys_figures_in_the_pages_colours(trace):
    figures = ta.figures(trace)
    assert len(figures) == 5 and "Copies: size and bandwidth" in figures
    steps = figures["Time of each step · GPU 0"]
    assert all(isinstance(figure, go.Figure) for figure in figures.values())
    assert {bar.name: bar.marker.color for bar in steps.data if bar.type == "bar"}["Compute"] == BY_KEY["compute"].light
    assert "ProfilerStep#4, takes 337 ms" in steps.layout.title.subtitle.text


def test_heat_maps_and_series_of_a_job_are_figures_too():
    figures = ta.figures(ta.load(FIXTURES / "jobs" / "ddp_loader_late.slow"))
    assert "Time of each step · rank 3 (GPU 3)" in figures
    assert figures["Steps, GPU by GPU · step time"].data[0].colorscale[0][1] == "rgb(252,251,253)"
