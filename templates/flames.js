"use strict";
// Flame graphs of evidence: trees like those of calls, of bytes or other amounts, each in its own place.

class FlameGraph extends Icicle {
  constructor(place, data) {
    super();
    Object.assign(this, { place, data });
    const total = Float64Array.from(data.self);
    for (let i = total.length - 1; i > 0; i--) total[data.parent[i]] += total[i];
    this.tree = new CallTree(Int32Array.from(data.parent), Uint32Array.from(data.frame), Float64Array.from(data.self), total);
    this.frames = { name: data.names.map((_, i) => i), colour: data.colour };
    this.labels = new Labels(data.names);
    this.colours = readColours(data);
    this.box = place.querySelector(".flame-box");
    this.canvas = place.querySelector("canvas");
    this.crumbs = place.querySelector(".flame-path");
    this.ctx = this.canvas.getContext("2d", { alpha: false });
    this.listen();
    this.resize();
    place.querySelector(":scope > .before-scripts")?.remove();
    this.zoom(0);
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.nodeAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.nodeAt(event) >= 0 && this.zoom(this.nodeAt(event)));
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("scroll", () => this.drawNow(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    document.addEventListener("themechange", () => {
      this.colours = readColours(this.data);
      this.drawNow();
    });
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  nameOf(i) {
    return this.data.names[this.tree.frame[i]];
  }

  amount(value) {
    return formatAmount(value, this.data.unit === "count" ? "" : this.data.unit);
  }

  /** Let a node fill the width. */
  zoom(i) {
    this.at = i;
    this.fill(i);
    this.layOut();
    this.describe();
    this.drawNow();
  }

  zoomOut() {
    this.zoom(this.wider);
  }

  /** The figures of the node that is pointed at, else of that which the keys have come to. */
  describe() {
    const i = this.hovered >= 0 ? this.hovered : this.at;
    const { tree } = this;
    const own = tree.self[i] ? `${this.amount(tree.self[i])} of its own` : "nothing of its own";
    const figures = [this.amount(tree.total[i]), ...(i ? [`${shareText(tree.total[i] / tree.total[0])} of all`] : []), own].join(" · ");
    this.place.querySelector(".flame-node b").textContent = cutAt(this.nameOf(i), 400);
    this.place.querySelector(".flame-node span").textContent = figures;
    return `${cutAt(this.nameOf(i), 160)}: ${figures}`;
  }

  key(event) {
    if (event.defaultPrevented || isCommand(event)) return;
    const acts = { ...this.moves, Escape: this.zoomed ? () => this.leave() : null };
    if (!acts[event.key] || (event.key === "Escape" && isDefinitionShown())) return;
    event.preventDefault();
    acts[event.key]();
  }

  drawNow() {
    if (!this.width) return;
    const { tree, labels, frames, from, to, width, height, scroll, levels, colours } = this;
    paintTree(this.ctx, { tree, labels, frames, from, to, width, height, scroll, levels, colours, hits: null, selected: this.isOnPaper || !this.at ? -1 : this.at });
  }

  layOut() {
    if (!this.width) return;
    const high = this.measure();
    this.canvas.style.marginBottom = `${Math.max(0, high - this.height)}px`; // what the box scrolls through
  }
}

async function startFlames(section) {
  const graphs = JSON.parse(await unpackText(`flames-${section.id}`));
  for (const place of section.querySelectorAll(".flame")) {
    const graph = new FlameGraph(place, graphs[place.dataset.flame]);
    (window.traceanalyzer.flames ??= {})[place.dataset.flame] = graph;
  }
}

for (const section of document.querySelectorAll(".evidence-section:has(.flame)")) (window.requestIdleCallback ?? setTimeout)(() => startFlames(section));
