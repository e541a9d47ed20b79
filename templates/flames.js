"use strict";
// Flame graphs of evidence: trees like those of calls, of bytes or other amounts, each in its own place.

class FlameGraph {
  constructor(place, data) {
    Object.assign(this, { place, data, at: 0, zoomed: 0, hovered: -1, width: 0, ratio: 1 });
    const total = Float64Array.from(data.self);
    for (let i = total.length - 1; i > 0; i--) total[data.parent[i]] += total[i];
    this.tree = new CallTree(Int32Array.from(data.parent), Uint32Array.from(data.frame), Float64Array.from(data.self), total);
    this.frames = { name: data.names.map((_, i) => i), colour: data.colour };
    this.labels = new Labels(data.names);
    this.colours = readColours(data);
    this.box = place.querySelector(".flame-box");
    this.canvas = place.querySelector("canvas");
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
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    document.addEventListener("themechange", () => {
      this.colours = readColours(this.data);
      this.draw();
    });
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  get from() {
    return this.tree.start[this.zoomed];
  }

  get to() {
    return this.tree.end(this.zoomed);
  }

  get scroll() {
    return this.isOnPaper ? 0 : this.box.scrollTop;
  }

  nameOf(i) {
    return this.data.names[this.tree.frame[i]];
  }

  amount(value) {
    return formatAmount(value, this.data.unit === "count" ? "" : this.data.unit);
  }

  /** Let a node fill the width. */
  zoom(i) {
    this.zoomed = this.at = i;
    this.layOut();
    this.showPath();
    this.describe();
    this.draw();
  }

  zoomOut() {
    const before = this.zoomed;
    let i = before;
    while (i > 0 && this.tree.total[i] === this.tree.total[before]) i = this.tree.parent[i];
    this.zoom(Math.max(i, 0));
  }

  /** The nodes around the one that fills the width, to go back to. */
  showPath() {
    const nodes = this.tree.path(this.zoomed);
    const shown = nodes.length <= LONGEST_PATH ? nodes : [nodes[0], -1, ...nodes.slice(2 - LONGEST_PATH)];
    const crumbs = shown.map((i, k) => {
      if (i < 0) return element("li", {}, "…");
      const name = cutAt(shortName(this.nameOf(i)), 48);
      if (k === shown.length - 1) return element("li", { ariaCurrent: "location" }, name);
      const button = element("button", { type: "button", className: "link", textContent: name });
      button.addEventListener("click", () => {
        this.zoom(i);
        this.box.focus({ preventScroll: true });
      });
      return element("li", {}, button);
    });
    this.place.querySelector(".flame-path").replaceChildren(...crumbs);
  }

  nodeAt({ offsetX, offsetY }) {
    const level = Math.floor((offsetY + this.scroll) / TREE_ROW);
    return level < this.levels ? this.tree.at(level, this.from + (offsetX / this.width) * (this.to - this.from)) : -1;
  }

  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.canvas.style.cursor = i >= 0 ? "pointer" : "";
    this.describe();
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
    const { tree, at } = this;
    const acts = { ArrowUp: () => this.go(tree.parent[at]), ArrowDown: () => this.go(tree.first[at] || -1), ArrowLeft: () => this.goAside(-1), ArrowRight: () => this.goAside(1), Home: () => this.go(0), Enter: () => this.enter(), Escape: this.zoomed ? () => this.leave() : null };
    if (!acts[event.key] || (event.key === "Escape" && isDefinitionShown())) return;
    event.preventDefault();
    acts[event.key]();
  }

  enter() {
    this.zoom(this.at);
    say(`Zoomed to ${this.describe()}`);
  }

  leave() {
    this.zoomOut();
    say(`Zoomed out to ${cutAt(this.nameOf(this.zoomed), 160)}`);
  }

  go(i) {
    if (i < 0) return;
    this.hovered = -1;
    let around = this.zoomed;
    while (this.tree.start[i] < this.tree.start[around] || this.tree.end(i) > this.tree.end(around)) around = this.tree.parent[around];
    this.zoomed = around;
    this.at = i;
    this.layOut();
    this.showPath();
    const y = this.tree.level[i] * TREE_ROW;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    else if (y + TREE_ROW > this.box.scrollTop + this.height) this.box.scrollTop = y + TREE_ROW - this.height;
    say(this.describe());
    this.draw();
  }

  goAside(step) {
    const { tree, at } = this;
    const level = tree.level[at];
    const i = at + step;
    if (i >= tree.levels[level] && i < tree.levels[level + 1] && tree.start[i] < this.to && tree.end(i) > this.from) this.go(i);
  }

  draw() {
    if (!this.width) return;
    const { tree, labels, frames, from, to, width, height, scroll, levels, colours } = this;
    paintTree(this.ctx, { tree, labels, frames, from, to, width, height, scroll, levels, colours, hits: null, selected: this.isOnPaper || !this.at ? -1 : this.at });
  }

  /** How many levels there are to see, and so how high the graph is: as high as the whole of it, so that what is below stays. */
  layOut() {
    if (!this.width) return;
    this.levels = Math.max(levelsWorthPainting(this.tree, this.from, this.to, this.width / (this.to - this.from)), this.tree.level[this.at] + 1);
    const high = this.levels * TREE_ROW;
    if (!this.zoomed && !this.isOnPaper) this.least = high;
    this.height = this.isOnPaper ? Math.min(high, DEEPEST_SHEET) : Math.min(Math.max(high, this.least ?? 0), Math.max(260, Math.round(innerHeight * 0.6)));
    this.box.style.height = `${this.height + 2}px`;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.style.marginBottom = `${Math.max(0, high - this.height)}px`; // what the box scrolls through
    this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }

  resize() {
    const width = this.isOnPaper ? PAPER_WIDTH : this.box.clientWidth;
    const ratio = this.isOnPaper ? PAPER_RATIO : devicePixelRatio || 1;
    if (!width || (width === this.width && ratio === this.ratio)) return;
    Object.assign(this, { width, ratio });
    this.layOut();
    this.draw();
  }

  print(isOnPaper) {
    this.isOnPaper = isOnPaper;
    this.resize();
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
