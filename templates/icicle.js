"use strict";
// What trees that are drawn as icicles have in common: how far into one is zoomed, where keys and the pointer are, and how large it is.

const LONGEST_PATH = 6; // crumbs; of a longer path the middle is left out
const DEEPEST_SHEET = 900; // px of a tree on paper

/** One tree in its box. Who extends it has `tree`, `box`, `canvas` and `ctx`, and says `crumbs` (the list of the nodes around), `nameOf`, `describe`,
 * `drawNow` and `layOut`. */
class Icicle {
  at = 0;
  zoomed = 0;
  hovered = -1;
  width = 0;
  ratio = 1;

  get from() {
    return this.tree.start[this.zoomed];
  }

  get to() {
    return this.tree.end(this.zoomed);
  }

  get scroll() {
    return this.isOnPaper ? 0 : this.box.scrollTop;
  }

  // ---- how far into it ----

  fill(i) {
    this.zoomed = i;
    this.showPath();
  }

  /** The next node around that is wider than the one that fills the width. */
  get wider() {
    let i = this.zoomed;
    while (i > 0 && this.tree.total[i] === this.tree.total[this.zoomed]) i = this.tree.parent[i];
    return Math.max(i, 0);
  }

  /** Where we are: the nodes around the one that fills the width, to go back to. */
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
    this.crumbs.replaceChildren(...crumbs);
  }

  enter() {
    this.zoom(this.at);
    say(`Zoomed to ${this.describe()}`);
  }

  leave() {
    this.zoomOut();
    if (document.activeElement === document.body) this.box.focus({ preventScroll: true }); // a crumb that had the focus is gone
    say(`Zoomed out to ${cutAt(this.nameOf(this.zoomed), 160)}`);
  }

  // ---- what is pointed at ----

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

  // ---- keys ----

  /** What the keys do that move within the tree. */
  get moves() {
    const { tree, at } = this;
    return { ArrowUp: () => this.go(tree.parent[at]), ArrowDown: () => this.go(tree.first[at] || -1), ArrowLeft: () => this.goAside(-1), ArrowRight: () => this.goAside(1), Enter: () => this.enter(), Home: () => this.go(0) };
  }

  go(i) {
    if (i < 0) return;
    this.at = i;
    this.hovered = -1;
    let around = this.zoomed;
    while (this.tree.start[i] < this.tree.start[around] || this.tree.end(i) > this.tree.end(around)) around = this.tree.parent[around];
    if (around !== this.zoomed) this.fill(around);
    this.layOut();
    const y = this.tree.level[i] * TREE_ROW;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    else if (y + TREE_ROW > this.box.scrollTop + this.height) this.box.scrollTop = y + TREE_ROW - this.height;
    say(this.describe());
    this.drawNow();
  }

  /** The next node beside this one on its level, as far as it is in view. */
  goAside(step) {
    const { tree, at } = this;
    const i = at + step;
    const level = tree.level[at];
    if (i >= tree.levels[level] && i < tree.levels[level + 1] && tree.start[i] < this.to && tree.end(i) > this.from) this.go(i);
  }

  // ---- how large it is ----

  /** How many levels there are to see, and so how high all of it is, in px. Sets `height`, that of its box, which has the canvas's size then. */
  measure() {
    this.levels = Math.max(levelsWorthPainting(this.tree, this.from, this.to, this.width / (this.to - this.from)), this.tree.level[this.at] + 1);
    const high = this.levels * TREE_ROW;
    if (!this.zoomed && !this.isOnPaper) this.least = high; // what lies below stays where it is while one zooms
    const tall = this.isOnPaper ? Math.min(high, DEEPEST_SHEET) : Math.min(Math.max(high, this.least ?? 0), Math.max(260, Math.round(innerHeight * 0.6)));
    this.box.style.height = `${tall + 2}px`;
    if (tall !== this.height || this.width !== this.drawnWidth || this.ratio !== this.drawnRatio) {
      Object.assign(this, { height: tall, drawnWidth: this.width, drawnRatio: this.ratio });
      this.canvas.width = Math.round(this.width * this.ratio);
      this.canvas.height = Math.round(tall * this.ratio);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${tall}px`;
      this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    }
    return high;
  }

  resize() {
    const width = this.isOnPaper ? PAPER_WIDTH : this.box.clientWidth;
    const ratio = this.isOnPaper ? PAPER_RATIO : devicePixelRatio || 1;
    if (!width || (width === this.width && ratio === this.ratio)) return;
    Object.assign(this, { width, ratio });
    this.layOut();
    this.drawNow();
  }

  print(isOnPaper) {
    this.isOnPaper = isOnPaper;
    this.resize();
  }
}
