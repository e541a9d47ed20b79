import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { TimeWindow, layOut, SHORTEST_VIEW } = load("timeline-layout.js");

const groups = [0, 1].map((at) => ({
  label: `GPU ${at}`,
  lanes: [
    { kind: "ledger", label: "ledger", rows: [{}] },
    { kind: "slices", label: "stream 7", rows: [{}, {}] },
  ],
}));

test("boxes follow each other without overlap, each lane labelled once", () => {
  const { boxes, height } = layOut(groups, new Set());
  assert.equal(boxes.length, 2 * (1 + 3));
  for (let k = 1; k < boxes.length; k++) assert.ok(boxes[k].y >= boxes[k - 1].y + boxes[k - 1].height);
  assert.ok(height >= boxes.at(-1).y + boxes.at(-1).height);
  assert.equal(boxes.filter((box) => box.label === "stream 7").length, 2);
});

test("of a folded group the ledger is left, and its rows are at its heading", () => {
  const laid = layOut(groups, new Set([groups[0]]));
  assert.equal(laid.boxes.length, 2 + 4);
  assert.equal(laid.boxOf(groups[0].lanes[1].rows[1]), laid.headingOf(groups[0]));
  assert.equal(laid.boxOf(groups[0].lanes[0].rows[0]).kind, "row");
});

test("places and times are each other's inverse", () => {
  const shown = new TimeWindow([0, 1e9], [2e8, 3e8]);
  Object.assign(shown, { width: 1200, gutter: 200 });
  for (const time of [2e8, 2.5e8, 3e8]) assert.ok(Math.abs(shown.timeAt(shown.xOf(time)) - time) < 1e-3);
  assert.equal(shown.xOf(2e8), 200);
});

test("what is shown stays near the recording and is never too short", () => {
  const shown = new TimeWindow([0, 1e6], [0, 1e6]);
  const slack = 1e6 * 0.05 + 1000;
  for (const [from, to] of [[-1e9, 1e9], [5e9, 6e9], [-6e9, -5e9], [10, 10], [5e5, 5e5 + 1]]) {
    shown.set(from, to);
    assert.ok(shown.from >= -slack - 1e-6 && shown.to <= 1e6 + slack + 1e-6);
    assert.ok(shown.span >= SHORTEST_VIEW - 1e-6);
  }
});
