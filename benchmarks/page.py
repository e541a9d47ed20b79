"""The report's timeline in a browser without a GPU: a page of a million slices, how soon it shows and how fast it follows.

Prints figures and asserts nothing. An act's time ends when its pixels are there; that of opening the page when all of the timeline
has been drawn, which the browser then brings to the screen with its next frame.
"""

from __future__ import annotations

import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import milliseconds
from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.report.html import render_html
from traceanalyzer.result.document import Result, Verdict

SLICES = 1_000_000
STREAMS, THREADS, DEPTH = 8, 4, 5
OPENINGS = 5
LINES = {
    "compute": 0.5,
    "idle.turnaround": 0.25,
    "idle.launch_latency": 0.12,
    "idle.host_work": 0.08,
    "exposed_memcpy": 0.05,
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run"]

# Every kind of act, many times over the whole recording; the time of each ends when its pixels can be read.
ACTS = """() => {
  const timeline = window.traceanalyzer.timeline;
  const [low, high] = timeline.data.extent;
  const timed = (act) => {
    const began = performance.now();
    act();
    timeline.drawNow();
    timeline.ctx.getImageData(0, 0, 1, 1);
    return performance.now() - began;
  };
  const every = (n, act) => Array.from({length: n}, (_, k) => timed(() => act(k)));
  const span = (k) => (high - low) / 2 ** k;
  const zoom = (k) => timeline.show(low + (high - low) * 0.37, low + (high - low) * 0.37 + span(k / 2), false);
  const times = {};
  times['whole recording'] = every(9, () => timeline.show(low, high, false));
  times['zoom'] = every(40, zoom);
  timeline.show(low, high, false);
  times['pan'] = every(30, (k) => timeline.show(low + k * span(7), low + k * span(7) + span(3), false));
  times['hover'] = every(60, (k) => {
    timeline.show(low, low + span(k % 12), false);
    timeline.hover({offsetX: 200 + 15 * k, offsetY: 40 + 9 * k, clientX: 300, clientY: 300});
  });
  times['search'] = every(5, (k) => timeline.find(['gemm', 'conv', 'aten', 'k', 'zzz'][k]));
  timeline.find('gemm');
  times['zoom with a search'] = every(40, zoom);
  times['next match'] = every(20, () => timeline.goToMatch(1));
  times['select a range'] = every(10, (k) => timeline.select(low, low + span(k)));
  timeline.lanes.scrollTop = 200;
  times['scroll'] = every(10, (k) => (timeline.lanes.scrollTop = 30 * k));
  return times;
}"""
MARKS = "() => Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"


class Tables:
    """Made-up tables by name; those not made are empty."""

    def __init__(self, **tables: pa.Table) -> None:
        self._tables = tables

    def table(self, name: str) -> pa.Table:
        return self._tables[name] if name in self._tables else rule_tables()[name].empty()


def page(folder: Path) -> None:
    if CHROMIUM is None or find_spec("playwright") is None:
        print("Report in a browser: chromium or playwright is not there")
        return
    print(f"Report in a browser, {SLICES:,} slices")
    file = folder / "page.html"
    began = time.monotonic()
    file.write_bytes(render_html(no_result(), million(), limit=50_000_000))
    milliseconds("making the page", (time.monotonic() - began) * 1e3)
    print(f"  {'its size':<64}{file.stat().st_size / 1e6:8.1f} MB")
    marks, acts = _measured(file)
    milliseconds(f"opened to painted, median of {OPENINGS}", marks["timeline-painted"], 1000)
    milliseconds("  of that, unpacking", marks["timeline-unpacked"] - marks["timeline-start"])
    milliseconds("  of that, decoding", marks["timeline-decoded"] - marks["timeline-unpacked"])
    milliseconds(
        "first paint, from decoded arrays to painted", marks["timeline-painted"] - marks["timeline-decoded"], 100
    )
    for name, times in acts.items():
        milliseconds(f"{name}, median of {len(times)}", float(np.median(times)))
        milliseconds(f"{name}, slowest", max(times), 50)
    file.unlink()


def _measured(file: Path) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The page's marks since it was opened, as medians, and the times of each kind of act, in ms."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = []
        for _ in range(OPENINGS):
            tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            tab.goto(file.as_uri())
            while tab.evaluate("window.traceanalyzer.view()") is None:
                tab.wait_for_timeout(50)
            opened.append(tab.evaluate(MARKS))
        tab.wait_for_timeout(3000)  # what the page does when idle is over
        acts = tab.evaluate(ACTS)
        browser.close()
    return {name: float(np.median([marks[name] for marks in opened])) for name in opened[0]}, acts


def million(slices: int = SLICES) -> Tables:
    """A run of `slices` slices: 3/10 kernels on 8 streams, as many launch calls on 4 threads, 1/5 nested ranges, 1/5 of the ledger."""
    rng = np.random.default_rng(5)
    kernels = slices * 3 // 10
    calls, launched = _calls(rng, kernels)
    start = _rows_in_turn(
        launched + rng.integers(3_000, 60_000, kernels), STREAMS, rng.integers(1_000, 90_000, kernels)
    )
    ops = {**start, "stream": np.arange(kernels) % STREAMS + 7}
    length = int(max(ops["end_ns"].max(), calls["end_ns"].max()))
    links = {f"op_{key}": ops[key] for key in ("start_ns", "end_ns")} | {"op": np.arange(kernels)}
    return Tables(
        gpu_ops=_table(
            "gpu_ops",
            kernels,
            **ops,
            name=_names(rng, kernels, 200, "gemm_{}x128_tn_kernel"),
            kind="kernel",
            **{"class": "compute"},
        ),
        api_calls=_table("api_calls", kernels, **calls, name="cudaLaunchKernel", **{"class": "launch"}),
        launches=_table("launches", kernels, **calls, **links, api_name="cudaLaunchKernel"),
        host_ranges=_ranges(rng, slices // 5, length),
        ledger_intervals=_ledger(rng, slices // 5, length),
    )


def _calls(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], np.ndarray]:
    """Launch calls, in turn on each thread, and their starts."""
    start = np.cumsum(rng.integers(2_000, 9_000, n))
    spans = _rows_in_turn(start, THREADS, rng.integers(1_500, 9_000, n))
    return {**spans, "process": 1, "thread": np.arange(n) % THREADS + 1}, spans["start_ns"]


def _rows_in_turn(start: np.ndarray, rows: int, duration: np.ndarray) -> dict[str, np.ndarray]:
    """Spans that do not overlap where each `rows`-th one is on the same row: each begins after the one before it ended."""
    start, duration = start.copy(), duration.copy()
    for row in range(rows):
        mine = slice(row, None, rows)
        before = np.cumsum(duration[mine]) - duration[mine]
        start[mine] = np.maximum.accumulate(start[mine] - before) + before
    return {"start_ns": start, "end_ns": start + duration}


def _ranges(rng: np.random.Generator, n: int, length: int) -> pa.Table:
    """Operators that nest five deep, each half as long as the one around it, evenly on the threads."""
    outer = n // THREADS // DEPTH
    begin = np.sort(rng.integers(0, length, outer))
    whole = np.maximum(np.diff(begin, append=length) * 9 // 10, 64)
    levels = [(begin + whole * level // 20, whole >> level) for level in range(DEPTH)]
    start = np.tile(np.concatenate([a for a, _ in levels]), THREADS)
    end = start + np.tile(np.concatenate([d for _, d in levels]), THREADS)
    thread = np.repeat(np.arange(THREADS) + 1, outer * DEPTH)
    names = _names(rng, len(start), 120, "aten::conv_{}")
    return _table(
        "host_ranges", len(start), start_ns=start, end_ns=end, process=1, thread=thread, name=names, category="operator"
    )


def _ledger(rng: np.random.Generator, n: int, length: int) -> pa.Table:
    edges = np.sort(rng.choice(length, n + 1, replace=False))
    lines = pa.DictionaryArray.from_arrays(
        pa.array(rng.choice(len(LINES), n, p=list(LINES.values())), pa.int32()), list(LINES)
    )
    return _table("ledger_intervals", n, start_ns=edges[:-1], end_ns=edges[1:], line=lines)


def _names(rng: np.random.Generator, n: int, distinct: int, form: str) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(rng.integers(0, distinct, n), pa.int32()), [form.format(k) for k in range(distinct)]
    )


def _table(table: str, n: int, /, **columns: Any) -> pa.Table:
    """A table with its declared schema: one value stands for all rows; rank and device are 0, other columns not given are null."""
    arrays = []
    spec = rule_tables()[table]
    for column in spec.columns:
        value = columns.get(column.name, 0 if column.name in ("rank", "device", "context", "process") else None)
        if isinstance(value, np.ndarray | pa.Array):
            arrays.append(pa.array(value))
        elif pa.types.is_dictionary(column.type):
            index = pa.nulls(n, pa.int32()) if value is None else pa.array(np.zeros(n, dtype=np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(index, pa.array([value or ""])))
        else:
            arrays.append(pa.repeat(pa.scalar(value, column.type), n))
    fields = [array.cast(column.type) for array, column in zip(arrays, spec.columns, strict=True)]
    return pa.Table.from_arrays(fields, schema=spec.schema)


def no_result() -> Result:
    empty: dict[str, Any] = {"inputs": [], "health": [], "devices": [], "steps": [], "findings": [], "rules": []}
    return Result(
        tool={"name": "traceanalyzer", "version": "0"}, **empty, verdict=Verdict("unknown", "A page to measure.")
    )


if __name__ == "__main__":
    page(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
