"use strict";
// The whole recording in small above the lanes: the ledger of every GPU as a strip, and the view as a frame that can be dragged.

const GRIP = 6; // px around an edge of the frame that hold on to it

class Minimap {
  constructor(timeline) {
    this.timeline = timeline;
    this.canvas = document.getElementById("minimap");
    this.ctx = this.canvas.getContext("2d");
    this.picture = document.createElement("canvas");
    const { data } = timeline;
    const ledgers = data.rows.filter((row) => row.lane.kind === "ledger");
    this.rows = ledgers.length ? ledgers : data.groups.flatMap((group) => group.lanes.find((lane) => lane.kind === "slices")?.rows[0] ?? []);
    this.strip = Math.max(2, Math.min(14, Math.floor(56 / Math.max(this.rows.length, 1))));
    this.height = this.rows.length * this.strip + 8;
    this.window = new TimeWindow(data.extent, data.extent);
    this.held = null;
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const type of ["pointerup", "pointercancel"]) this.canvas.addEventListener(type, () => (this.held = null));
  }

  /** Paint the picture of all: on a change of size or colours, not of the view. */
  repaint() {
    const { window: shown, colours, ratio } = this.timeline;
    this.window.set(...this.window.extent);
    Object.assign(this.window, { width: shown.width, gutter: shown.gutter, height: this.height });
    for (const canvas of [this.canvas, this.picture]) {
      canvas.width = Math.round(shown.width * ratio);
      canvas.height = Math.round(this.height * ratio);
    }
    this.canvas.style.width = `${shown.width}px`;
    this.canvas.style.height = `${this.height}px`;
    const ctx = this.picture.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colours.paper;
    ctx.fillRect(0, 0, shown.width, this.height);
    const scene = { window: this.window, colours, matches: null };
    this.rows.forEach((row, k) => paintSlices(ctx, row, 4 + k * this.strip, this.strip - (this.rows.length > 1 ? 1 : 0), scene));
    ctx.fillStyle = colours.paper; // what begins left of the gutter
    ctx.fillRect(0, 0, shown.gutter, this.height);
    ctx.fillStyle = colours.dim;
    ctx.font = `12px ${colours.sans}`;
    ctx.textBaseline = "middle";
    ctx.fillText("overview", 10, this.height / 2, shown.gutter - 14);
    this.draw();
  }

  get frame() {
    const { from, to } = this.timeline.window;
    return [Math.max(this.window.gutter, this.window.xOf(from)), Math.min(this.window.width, this.window.xOf(to))];
  }

  draw() {
    const { ctx, height, window: { width, gutter } } = this;
    const { colours, ratio } = this.timeline;
    const [a, b] = this.frame;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.drawImage(this.picture, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.globalAlpha = 0.6;
    ctx.fillStyle = colours.paper;
    ctx.fillRect(gutter, 0, a - gutter, height);
    ctx.fillRect(b, 0, width - b, height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colours.text;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(Math.min(a, width - 3) + 0.75, 0.75, Math.max(2, b - a - 1.5), height - 1.5);
  }

  /** What of the frame is at x: "from", "to", "both", or null beside it. A frame too narrow to take by an edge is taken whole. */
  partAt(x) {
    const [a, b] = this.frame;
    if (b - a > 3 * GRIP) {
      if (Math.abs(x - a) <= GRIP) return "from";
      if (Math.abs(x - b) <= GRIP) return "to";
    }
    return x >= a - GRIP && x <= b + GRIP ? "both" : null;
  }

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    const time = this.window.timeAt(event.offsetX);
    const part = this.partAt(event.offsetX);
    const { from, to, span } = this.timeline.window;
    if (!part) this.timeline.show(time - span / 2, time + span / 2);
    this.held = part === null ? { part: "both", from: -span / 2, to: span / 2 } : { part, from: from - time, to: to - time };
  }

  move(event) {
    if (!this.held) {
      this.canvas.style.cursor = { from: "ew-resize", to: "ew-resize", both: "grab" }[this.partAt(event.offsetX)] ?? "pointer";
      return;
    }
    const { part, from, to } = this.held;
    const time = this.window.timeAt(event.offsetX);
    const shown = this.timeline.window;
    if (part === "both") this.timeline.show(time + from, time + to);
    else if (part === "from") this.timeline.show(Math.min(time + from, shown.to - SHORTEST_VIEW), shown.to);
    else this.timeline.show(shown.from, Math.max(time + to, shown.from + SHORTEST_VIEW));
  }
}
