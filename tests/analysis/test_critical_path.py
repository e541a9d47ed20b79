"""The critical path of a single GPU in results and comparisons."""

from __future__ import annotations

from pathlib import Path

from tests.support.comparisons import change, comparison
from traceanalyzer.analysis import Analysis, analyze_parts, load, parts_of
from traceanalyzer.analysis.capturing import WORK_TABLES, capture_of
from traceanalyzer.render.comparing.compare_text import render_comparison
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.text import render_text
from traceanalyzer.result.comparing import compare

FIXTURES = Path(__file__).parents[1] / "fixtures"


def analysis(name: str) -> Analysis:
    return analyze_parts(parts_of(load(FIXTURES / name)), also=WORK_TABLES)


def test_a_step_is_named_after_what_sets_its_length() -> None:
    found = analysis("captured/log_metrics.json.gz").result
    path = found.critical_path
    assert path is not None and path.step_count == 3
    largest = path.links[0]
    assert (largest.kind, largest.name) == ("host_work", "log_metrics.py:12 (log_metrics)")
    assert largest.gain_ns == largest.ns and largest.ns > 0.7 * path.ns
    assert "host work in log_metrics.py:12 (log_metrics)" in render_text(found)
    assert "What sets the length of a step: 19.9 ms a step, the mean of 3" in render_markdown(found)


def test_a_copy_goes_with_the_call_that_it_held_up() -> None:
    path = analysis("captured/pageable.json.gz").result.critical_path
    assert path is not None
    largest = path.links[0]
    assert largest.name == "Memcpy HtoD (Pageable -> Device)"
    assert largest.gain_ns is not None and largest.gain_ns > 0.99 * largest.ns


def test_without_steps_the_path_is_of_the_window() -> None:
    found = analysis("captured/square_blocks.json.gz").result
    path = found.critical_path
    assert path is not None
    windows = [device.window_ns for device in found.devices]
    assert path.step_count > 0 or path.ns in windows
    assert path.ns == sum(one.ns for one in path.kinds)


def test_what_of_the_path_grew_is_compared() -> None:
    slow, fixed = (
        [capture_of(name, analysis(f"kineto/item_sync.{name}.pt.trace.json.gz"))] for name in ("slow", "fixed")
    )
    path = compare(slow, fixed).path
    changes = {one.name: one for one in path}
    assert changes["after waiting for the GPU in aten::item"].direction == "vanished"
    assert changes["host work in aten::addmm"].direction == "slower"
    assert all(one.base_count is None and one.new_count is None for one in path)
    said = render_comparison(compare(slow, fixed))
    assert "CRITICAL PATH" in said and "after waiting for the GPU" in said


def test_a_comparison_without_paths_says_nothing_of_them() -> None:
    assert "path" not in comparison().to_dict()
    assert "CRITICAL PATH" not in render_comparison(comparison())
    assert "path" in comparison(path=[change("host work in step", 4_000_000, 2_000_000)]).to_dict()
