"use strict";
// The timeline as a thing to use: the view and its limits, keys, pointer and wheel, tooltip and pin, evidence and links.

class Timeline {
  constructor(data, evidence) {
    this.data = data;
    this.evidence = evidence;
    this.lanes = document.getElementById("lanes");
    this.canvas = document.getElementById("canvas");
    this.tip = document.getElementById("tip");
    this.ctx = this.canvas.getContext("2d");
    this.layout = layOut(data.groups);
    this.matches = this.marked = this.selected = this.measure = null;
    this.pointers = new Map();
    [this.from, this.to] = data.home;
    document.getElementById("spacer").style.height = `${this.layout.height}px`;
    this.showLegend();
    this.recolour();
    this.listen();
    this.resize();
  }

  // ---- the view: [from, to) in ns ----

  show(from, to, remember = true) {
    const [low, high] = this.data.extent;
    const slack = (high - low) * 0.05 + 1000;
    const span = Math.min(Math.max(to - from, 50), high - low + 2 * slack);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, low - slack), high + slack - span);
    this.to = this.from + span;
    if (remember) this.remember();
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  home() {
    this.marked = null;
    this.show(...this.data.home);
  }

  /** Zoom to a piece of evidence: the interval, with half of its length on each side. */
  showEvidence(finding, item, scroll = true) {
    const place = this.evidence[finding]?.[item];
    if (!place) return;
    const [from, to, group] = place;
    const air = Math.max((to - from) / 2, 500);
    this.marked = { from, to };
    this.show(from - air, to + air, false);
    this.replaceHash(`finding=${finding}&e=${item}`);
    const box = this.layout.boxes.find((candidate) => candidate.number === group);
    if (box) this.lanes.scrollTop = box.y - AXIS;
    if (scroll) document.getElementById("timeline").scrollIntoView();
    this.lanes.focus({ preventScroll: true });
  }

  // ---- links ----

  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.replaceHash(`t=${Math.round(this.from)}-${Math.round(this.to)}`), 250);
  }

  replaceHash(hash) {
    clearTimeout(this.timer);
    history.replaceState(null, "", `#${hash}`);
  }

  followHash() {
    const finding = /^#finding=(\d+)(?:&e=(\d+))?$/.exec(location.hash);
    const times = /^#t=(-?\d+)-(\d+)$/.exec(location.hash);
    if (finding) this.showEvidence(Number(finding[1]), Number(finding[2] ?? 0));
    else if (times && Number(times[2]) > Number(times[1])) {
      this.show(Number(times[1]), Number(times[2]), false);
      document.getElementById("timeline").scrollIntoView();
    }
  }

  // ---- drawing ----

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    paint(this.ctx, {
      layout: this.layout, colours: this.colours, shortNames: this.data.shortNames, from: this.from, to: this.to, width: this.width,
      height: this.height, gutter: this.gutter, scroll: this.lanes.scrollTop, matches: this.matches, marked: this.measure ?? this.marked,
      selected: this.selected,
    });
    const step = Math.max(1, (this.to - this.from) / 100);
    document.getElementById("range").textContent =
      `${formatTick(this.from, step, this.to)} – ${formatTick(this.to, step, this.to)} · ${formatDuration(this.to - this.from)} shown`;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.lanes.style.height = `${Math.min(this.layout.height + 2, Math.max(260, window.innerHeight * 0.72))}px`;
    this.width = this.lanes.clientWidth;
    this.height = this.lanes.clientHeight;
    this.gutter = this.width < 640 ? 86 : 150;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNow(); // at once: a resized canvas is empty
  }

  recolour() {
    this.colours = readColours(this.data);
  }

  showLegend() {
    const used = new Set();
    for (const { row } of this.layout.boxes) if (row) for (const colour of row.colour) used.add(colour);
    for (const colour of used) document.querySelector(`#legend [data-css="${this.data.colours[colour]}"]`).hidden = false;
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.matches = wanted ? Uint8Array.from(this.data.names, (name) => Number(name.toLowerCase().includes(wanted))) : null;
    this.draw();
  }

  // ---- what is under the pointer ----

  timeAt(x) {
    return this.from + ((x - this.gutter) / (this.width - this.gutter)) * (this.to - this.from);
  }

  hit(x, y) {
    if (x < this.gutter || y < AXIS) return null;
    const at = y + this.lanes.scrollTop;
    const box = this.layout.boxes.find((candidate) => candidate.row && at >= candidate.y && at <= candidate.y + candidate.height);
    if (!box) return null;
    const reach = (2 * (this.to - this.from)) / (this.width - this.gutter);
    const i = sliceAt(box.row, this.timeAt(x), reach);
    return i < 0 ? null : { box, i };
  }

  /** Fill an element with what is known of a slice. Names are text, never markup. */
  describe(element, { box, i }) {
    const { row, group, lane } = box;
    const start = row.start[i];
    const count = row.count?.[i] ?? 1;
    const kind = this.data.labels[row.colour[i]];
    const absolute = BigInt(group.origin) + BigInt(start);
    const lines = [
      `${formatDuration(row.end[i] - start)} · ${formatExact(row.end[i] - start)}`,
      `starts at ${formatTick(start, 1, Math.max(start, 1))} · ${absolute.toLocaleString("en-US")} ns on the trace's clock`,
      `${group.label} · ${lane.label}${lane.tiled ? "" : ` · ${kind}`}`,
    ];
    if (count > 1) lines.unshift(`${count.toLocaleString("en-US")} events merged; the longest is named`);
    const title = document.createElement("b");
    title.textContent = this.data.names[row.name[i]];
    const rest = lines.map((line) => {
      const span = document.createElement("span");
      span.textContent = line;
      return span;
    });
    element.replaceChildren(title, ...rest);
    element.hidden = false;
  }

  hover(event) {
    this.pointerTime = this.timeAt(Math.max(event.offsetX, this.gutter));
    const found = this.hit(event.offsetX, event.offsetY);
    if (!found) {
      this.tip.hidden = true;
      return;
    }
    this.describe(this.tip, found);
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - w - 8))}px`;
    this.tip.style.top = `${event.clientY + 18 + h > window.innerHeight ? event.clientY - h - 10 : event.clientY + 18}px`;
  }

  pin(found) {
    const pinned = document.getElementById("pinned");
    this.selected = found;
    if (found) this.describe(pinned, found);
    else pinned.hidden = true;
    this.draw();
  }

  // ---- input ----

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => (this.pointers.size ? this.drag(event) : this.hover(event)));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", () => this.home());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.lanes.addEventListener("scroll", () => this.draw());
    this.lanes.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.lanes.parentElement);
    document.getElementById("find").addEventListener("input", (event) => this.find(event.target.value));
    document.querySelector("#timeline .toolbar").addEventListener("click", (event) => this.act(event.target.dataset.act));
    document.addEventListener("themechange", () => {
      this.recolour();
      this.drawNow();
    });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-finding]");
      if (button) this.showEvidence(Number(button.dataset.finding), Number(button.dataset.evidence));
    });
    window.addEventListener("hashchange", () => this.followHash());
  }

  act(name) {
    const acts = { in: () => this.zoom(0.5), out: () => this.zoom(2), home: () => this.home(), help: () => this.help() };
    acts[name]?.();
  }

  help() {
    const keys = document.getElementById("keys");
    keys.hidden = !keys.hidden;
    document.querySelector('[data-act="help"]').setAttribute("aria-expanded", String(!keys.hidden));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pointed = this.pointerTime >= this.from && this.pointerTime <= this.to;
    const at = pointed ? this.pointerTime : undefined;
    const keys = {
      w: () => this.zoom(0.7, at), "+": () => this.zoom(0.7), "=": () => this.zoom(0.7),
      s: () => this.zoom(1 / 0.7, at), "-": () => this.zoom(1 / 0.7),
      a: () => this.move(-0.15), ArrowLeft: () => this.move(-0.15),
      d: () => this.move(0.15), ArrowRight: () => this.move(0.15),
      ArrowUp: () => (this.lanes.scrollTop -= 40), ArrowDown: () => (this.lanes.scrollTop += 40),
      0: () => this.home(), Home: () => this.home(), "?": () => this.help(),
      Escape: () => {
        this.marked = null;
        this.pin(null);
      },
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** The wheel zooms once the timeline has been clicked, or with Ctrl: a page must stay scrollable across it. */
  wheel(event) {
    if (document.activeElement !== this.lanes && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const pixels = (delta) => delta * (event.deltaMode === 1 ? 16 : 1);
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.move(pixels(event.deltaX || event.deltaY) / (this.width - this.gutter));
    } else {
      this.zoom(Math.exp(Math.max(-1, Math.min(1, pixels(event.deltaY) * 0.002))), this.timeAt(event.offsetX));
    }
    this.hover(event);
  }

  press(event) {
    if (event.button) return;
    this.lanes.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.dragged = false;
    if (event.shiftKey) {
      const time = this.timeAt(event.offsetX);
      this.measure = { anchor: time, from: time, to: time };
    }
  }

  drag(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const { offsetX: x, offsetY: y } = event;
    if (!this.dragged && Math.hypot(x - last.x, y - last.y) < 4) return;
    this.dragged = true;
    this.tip.hidden = true;
    const perPixel = (this.to - this.from) / (this.width - this.gutter);
    if (this.measure) {
      const time = this.timeAt(x);
      this.measure.from = Math.min(time, this.measure.anchor);
      this.measure.to = Math.max(time, this.measure.anchor);
      this.draw();
    } else if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.max(20, Math.abs(last.x - other.x));
      this.zoom(before / Math.max(20, Math.abs(x - other.x)), this.timeAt((x + other.x) / 2));
    } else {
      this.canvas.classList.add("dragging");
      const by = (last.x - x) * perPixel;
      this.show(this.from + by, this.to + by);
      if (event.pointerType === "mouse") this.lanes.scrollTop += last.y - y;
    }
    this.pointers.set(event.pointerId, { x, y });
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    this.canvas.classList.remove("dragging");
    if (this.measure) {
      const { from, to } = this.measure;
      this.measure = null;
      if (this.dragged) this.show(from, to);
    } else if (!this.dragged) this.pin(this.hit(event.offsetX, event.offsetY));
    this.draw();
  }
}

async function startTimeline() {
  const buffer = await unpack("timeline-data");
  if (!buffer) return null;
  const timeline = new Timeline(decodeTimeline(buffer), JSON.parse(document.getElementById("page-data").textContent).evidence);
  timeline.followHash();
  return timeline;
}

// For browser tests and the console: `view()` is what is shown, in ns since the first event; null until the timeline is ready.
window.traceanalyzer = {
  timeline: null,
  view() {
    return this.timeline && { start_ns: this.timeline.from, end_ns: this.timeline.to };
  },
};
startTimeline().then((timeline) => (window.traceanalyzer.timeline = timeline));
