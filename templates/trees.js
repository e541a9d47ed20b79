"use strict";
// The section of call stacks: which tree is shown, of whom, which way up, how far into it, and what is said of it.

class StackView extends Icicle {
  constructor(section, data) {
    super();
    Object.assign(this, { section, data, isInverted: false, wanted: "", made: new Map() });
    this.box = document.getElementById("stacks-box");
    this.canvas = document.getElementById("stacks-canvas");
    this.crumbs = document.getElementById("stacks-path");
    this.ctx = this.canvas.getContext("2d", { alpha: false });
    this.treeField = document.getElementById("stacks-tree");
    this.partField = document.getElementById("stacks-part");
    this.labels = new Labels(data.names);
    this.colours = readColours(data);
    this.listen();
    this.chooseTree();
    section.querySelector(":scope > .before-scripts")?.remove();
    this.resize();
  }

  listen() {
    this.treeField.addEventListener("change", () => this.chooseTree());
    this.partField.addEventListener("change", () => this.choosePart());
    const acts = { invert: () => this.invert(), out: () => this.zoomOut(), whole: () => this.zoom(0) };
    this.section.addEventListener("click", (event) => acts[event.target.closest("button[data-stacks]")?.dataset.stacks]?.());
    const find = document.getElementById("stacks-find");
    find.addEventListener("input", () => this.find(find.value));
    this.section.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.nodeAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.click(this.nodeAt(event)));
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    document.addEventListener("themechange", () => {
      this.colours = readColours(this.data);
      this.drawNow();
    });
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  // ---- which tree ----

  get source() {
    return this.data.trees[this.treeField.selectedIndex];
  }

  /** The parts whose times are shown: one, or all. */
  get parts() {
    const { parts } = this.source;
    return this.partField.value === "all" ? parts : [parts[Number(this.partField.value)]];
  }

  /** A tree: of the same GPU or rank as before, where it has times of that. */
  chooseTree() {
    const { parts, legend, about } = this.source;
    const before = this.shownPart;
    const what = parts.every((part) => part.device === null) ? "ranks" : "GPUs";
    const every = element("option", { value: "all", textContent: `all ${parts.length} ${what}` });
    this.partField.replaceChildren(...(parts.length > 1 ? [every] : []), ...parts.map(({ label }, k) => element("option", { value: k, textContent: label })));
    const same = before ? parts.findIndex(({ rank, device }) => rank === before.rank && (device === before.device || device === null || before.device === null)) : -1;
    if (same >= 0) this.partField.value = same;
    this.partField.parentElement.hidden = parts.length < 2;
    document.getElementById("stacks-about").textContent = about;
    document.getElementById("stacks-legend").replaceChildren(
      ...legend.map(([css, label, meaning]) => element("li", { className: `c-${css}`, title: meaning }, element("i", { className: "swatch" }), label)),
    );
    this.choosePart();
  }

  choosePart() {
    this.shownPart = this.partField.value === "all" ? null : this.parts[0];
    this.show();
  }

  invert() {
    this.isInverted = !this.isInverted;
    this.section.querySelector('[data-stacks="invert"]').ariaPressed = String(this.isInverted);
    this.show();
  }

  /** The tree that is chosen, from its root. Each is made once. */
  show() {
    const key = `${this.treeField.selectedIndex} ${this.partField.value}`;
    const make = (name, how) => this.made.get(name) ?? this.made.set(name, how()).get(name);
    const upright = make(key, () => treeOfParts(this.source, this.parts));
    this.tree = this.isInverted ? make(`${key} inverted`, () => invertedTree(upright, this.data.frames.name.length)) : upright;
    this.at = 0;
    this.hovered = -1;
    this.search();
    this.zoom(0);
    this.note();
  }

  note() {
    const { left } = this.source;
    const notes = [
      this.isInverted ? "From the leaves: in the first row what the time itself was spent in, below that what called it." : "",
      this.isInverted && this.tree.isCut ? "What is further out than this is left off." : "",
      left ? `${formatCount(left, "node")} of the least time ${left === 1 ? "is" : "are"} merged into “(other)”; totals are exact.` : "",
    ];
    document.getElementById("stacks-notes").textContent = notes.filter(Boolean).join(" ");
  }

  // ---- how far into it ----

  /** Let a node fill the width. */
  zoom(i) {
    this.at = i;
    this.fill(i);
    this.layOut();
    this.box.scrollTop = Math.max(0, (this.tree.level[i] - 1) * TREE_ROW);
    this.describe();
    this.drawNow();
  }

  fill(i) {
    for (const act of ["out", "whole"]) this.section.querySelector(`[data-stacks="${act}"]`).disabled = !i;
    super.fill(i);
  }

  /** To the next node around that is wider. */
  zoomOut() {
    const before = this.zoomed;
    this.zoom(this.wider);
    this.at = before;
    this.describe();
    this.drawNow();
  }

  nameOf(i) {
    return nodeName(i, this.tree, this.data);
  }

  // ---- search ----

  find(text) {
    this.wanted = text.trim().toLowerCase();
    this.search();
    this.draw();
  }

  search() {
    const said = document.getElementById("stacks-found");
    this.found = null;
    said.value = "";
    if (!this.wanted) return;
    const { names, frames } = this.data;
    this.lower ??= names.map((name) => name.toLowerCase());
    this.found = this.tree.find(Uint8Array.from(frames.name, (name) => Number(this.lower[name].includes(this.wanted))));
    const { count, time } = this.found;
    said.value = count ? `${formatCount(count, "node")}, ${formatDuration(time)} in them: ${shareText(time / this.tree.total[0])} of ${this.source.label}` : "no match";
  }

  // ---- what is pointed at ----

  click(i) {
    if (i >= 0) this.zoom(i);
  }

  /** The figures of the node that is pointed at, else of that which the keys have come to. */
  describe() {
    const i = this.hovered >= 0 ? this.hovered : this.at;
    const { tree, data } = this;
    const figures = nodeFigures(i, { tree, data, whole: this.source.label, parts: this.parts, isInverted: this.isInverted });
    const name = this.nameOf(i);
    document.getElementById("stacks-name").textContent = cutAt(name, 400);
    document.getElementById("stacks-figures").textContent = figures.join(" · ");
    document.getElementById("stacks-figures").title = formatExact(tree.total[i]);
    return `${cutAt(name, 160)}: ${figures.join(", ")}`;
  }

  // ---- keys ----

  key(event) {
    if (event.defaultPrevented || isTyping(event) || isCommand(event) || event.target.matches("select")) return;
    const inSection = { "/": () => focusField(document.getElementById("stacks-find")), Escape: this.zoomed ? () => this.leave() : null };
    const act = inSection[event.key] || (event.target === this.box && this.moves[event.key]);
    if (!act || (event.key === "Escape" && isDefinitionShown())) return;
    event.preventDefault();
    act();
  }

  // ---- drawing ----

  draw() {
    this.frame ||= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.width) return;
    const { tree, labels, from, to, width, height, scroll, levels, colours } = this;
    const selected = this.isOnPaper || this.at === 0 ? -1 : this.at;
    paintTree(this.ctx, { tree, labels, frames: this.data.frames, from, to, width, height, scroll, levels, colours, hits: this.found?.count ? this.found.hits : null, selected });
  }

  layOut() {
    if (this.width) document.getElementById("stacks-spacer").style.height = `${this.measure()}px`;
  }
}

async function startStacks(section) {
  const data = decodeTrees(await unpack("stacks-data"));
  performance.mark("stacks-decoded");
  window.traceanalyzer.stacks = new StackView(section, data);
  performance.mark("stacks-painted");
}

// In the first quiet moment: the first paint of the page does not wait for it, and paper, which cannot wait, has it.
if (document.getElementById("stacks")) (window.requestIdleCallback ?? setTimeout)(() => startStacks(document.getElementById("stacks")));
