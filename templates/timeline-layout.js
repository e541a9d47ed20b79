"use strict";
// Where things are: lanes from top to bottom, and the stretch of time that is shown from left to right.

const AXIS = 26;
const HEADING = 24;
const LANE_GAP = 5;
const ROW_HEIGHT = { slices: 16, ledger: 24, counter: 34 };
const SHORTEST_VIEW = 50; // ns

/**
 * Boxes from top to bottom: one heading a group, one box a row. Of a folded group only the ledger is left. `boxOf(row)` is where a
 * row is, its group's heading when it is folded away; `height` is that of all.
 */
function layOut(groups, folded) {
  const boxes = [];
  const places = new Map();
  let y = AXIS;
  for (const group of groups) {
    const isFolded = folded.has(group);
    const heading = { kind: "heading", group, y, height: HEADING, label: group.label, isFolded };
    boxes.push(heading);
    y += HEADING;
    for (const lane of group.lanes) {
      if (isFolded && lane.kind !== "ledger") {
        for (const row of lane.rows) places.set(row, heading);
        continue;
      }
      const height = ROW_HEIGHT[lane.kind];
      lane.rows.forEach((row, i) => {
        const box = { kind: "row", group, lane, row, y, height, label: i ? "" : lane.label };
        boxes.push(box);
        places.set(row, box);
        y += height + 1;
      });
      y += LANE_GAP;
    }
  }
  return { boxes, height: y, boxOf: (row) => places.get(row), headingOf: (group) => boxes.find((box) => box.kind === "heading" && box.group === group) };
}

/** The stretch [from, to) in ns that is shown between the gutter (where the labels are) and the right edge. */
class TimeWindow {
  constructor(extent, home) {
    this.extent = extent;
    [this.from, this.to] = home;
    this.width = this.height = this.gutter = 0;
  }

  get span() {
    return this.to - this.from;
  }

  get scale() {
    return (this.width - this.gutter) / this.span;
  }

  timeAt(x) {
    return this.from + (x - this.gutter) / this.scale;
  }

  xOf(time) {
    return this.gutter + (time - this.from) * this.scale;
  }

  /** Show [from, to), as far as that lies in the recording and a little around it. */
  set(from, to) {
    const [low, high] = this.extent;
    const slack = (high - low) * 0.05 + 1000;
    const span = Math.min(Math.max(to - from, SHORTEST_VIEW), high - low + 2 * slack);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, low - slack), high + slack - span);
    this.to = this.from + span;
  }
}
