"""Call stacks of 100,000 nodes in a browser without a GPU: how fast they are drawn, zoomed, searched, turned over.

Prints figures and asserts nothing. An act's time ends when its pixels are there.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import milliseconds
from benchmarks.page import CHROMIUM, FLAGS, Tables, no_result
from traceanalyzer.derive.trees.tables import CALL_TREES
from traceanalyzer.report.html import render_html

NODES, DEPTH, FRAMES = 100_000, 40, 5_000
GOAL = 50
"""Ms for drawing, and for zooming."""
READY = "Boolean(window.traceanalyzer.stacks)"
ACTS = """() => {
  const stacks = window.traceanalyzer.stacks;
  const timed = (act) => {
    const began = performance.now();
    act();
    stacks.ctx.getImageData(0, 0, 1, 1);
    return performance.now() - began;
  };
  const every = (n, act) => Array.from({length: n}, (_, k) => timed(() => act(k)));
  const times = {};
  times['draw'] = every(20, () => stacks.drawNow());
  const {n} = stacks.tree;
  times['zoom to a node'] = every(60, (k) => stacks.zoom(Math.floor(k ** 3 / 60 ** 3 * n)));
  times['zoom out'] = every(20, () => stacks.zoomOut());
  stacks.zoom(0);
  times['hover'] = every(60, (k) => stacks.hover(stacks.nodeAt({offsetX: 20 * k, offsetY: 10 + 7 * k})));
  times['search'] = every(10, (k) => { stacks.find(`frame_${k}`); stacks.drawNow(); });
  times['zoom with a search'] = every(60, (k) => stacks.zoom(Math.floor(k ** 3 / 60 ** 3 * n)));
  stacks.find('');
  times['choose a tree'] = every(3, () => { stacks.made.clear(); stacks.choosePart(); });
  times['invert'] = every(2, () => { stacks.made.clear(); stacks.isInverted = false; stacks.invert(); });
  times['draw, inverted'] = every(20, () => stacks.drawNow());
  const {n: inverted} = stacks.tree;
  times['zoom to a node, inverted'] = every(60, (k) => stacks.zoom(Math.floor(k ** 3 / 60 ** 3 * inverted)));
  return [n, inverted, times];
}"""


def stacks(folder: Path) -> None:
    if CHROMIUM is None or find_spec("playwright") is None:
        print("Call stacks in a browser: chromium or playwright is not there")
        return
    from playwright.sync_api import sync_playwright

    file = folder / "stacks.html"
    file.write_bytes(render_html(no_result(), Tables(call_trees=tree(NODES)), limit=50_000_000))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        tab.goto(file.as_uri())
        for _ in range(200):
            if tab.evaluate(READY):
                break
            tab.wait_for_timeout(50)
        marks = tab.evaluate(
            "() => Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"
        )
        upright, inverted, acts = tab.evaluate(ACTS)
        browser.close()
    print(f"Call stacks in a browser, {upright:,} nodes, {inverted:,} inverted")
    milliseconds("first paint, from decoded arrays to painted", marks["stacks-painted"] - marks["stacks-decoded"])
    for name, times in acts.items():
        goal = GOAL if name.startswith(("draw", "zoom")) else None
        milliseconds(f"{name}, median of {len(times)}", float(np.median(times)))
        milliseconds(f"{name}, slowest", max(times), goal)
    file.unlink()


def tree(nodes: int) -> pa.Table:
    """One tree of so many nodes, in which stacks grow and shrink by chance; times spread over five orders."""
    rng = np.random.default_rng(3)
    steps = rng.choice([-6, -2, -1, 0, 1], nodes, p=[0.02, 0.1, 0.15, 0.2, 0.53])
    level, parent, last = np.zeros(nodes, np.int64), np.full(nodes, -1), [0]
    for node, step in enumerate(steps[1:].tolist(), 1):  # at most one deeper than the one before
        here = min(max(len(last) - 1 + step, 1), DEPTH, len(last))
        parent[node], level[node] = last[here - 1], here
        last = [*last[:here], node]
    own = (10 ** rng.uniform(2, 7, nodes)).astype(np.int64)
    total = own.copy()
    for node in range(nodes - 1, 0, -1):
        total[parent[node]] += total[node]
    frame = rng.integers(0, FRAMES, nodes)
    kinds = ("python", "operator", "annotation", "call")
    columns = {
        "rank": np.zeros(nodes, np.int32),
        "device": np.zeros(nodes, np.int32),
        "tree": ["idle"] * nodes,
        "node": np.arange(nodes, dtype=np.int32),
        "parent": parent,
        "name": [f"frame_{number}" for number in frame.tolist()],
        "kind": ["root", *(kinds[number % 4] for number in frame[1:].tolist())],
        "total_ns": total,
        "self_ns": own,
    }
    arrays = [pa.array(columns[column.name]).cast(column.type) for column in CALL_TREES.columns]
    return pa.Table.from_arrays(arrays, schema=CALL_TREES.schema)


if __name__ == "__main__":
    stacks(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
