"use strict";
// The timeline as a whole: what is shown, pinned, found and selected, and what can be done with it.

const PAPER_HEIGHT = 880; // px of lanes that a sheet holds
const PAPER_RATIO = 2; // pixels of the canvas to one of the page, for printers

class Timeline {
  constructor(data, places) {
    this.data = data;
    this.section = document.getElementById("timeline");
    this.lanes = document.getElementById("lanes");
    this.canvas = document.getElementById("canvas");
    this.ctx = this.canvas.getContext("2d");
    this.window = new TimeWindow(data.extent, data.home);
    this.labels = new Labels(data.names);
    this.folded = new Set(data.groups.filter((group) => group.folded));
    this.marked = this.pinned = this.hovered = this.selection = null;
    this.links = () => (this.linksMade ??= new Links(data.rows)); // made when first asked for
    this.colours = readColours(data);
    this.search = new Search(data);
    this.names = new FoundNames(this);
    this.details = new Details(this);
    this.range = new RangePanel(data);
    this.minimap = new Minimap(this);
    this.address = new Address(this, places);
    this.section.querySelector(":scope > .before-scripts")?.remove();
    this.arrange();
    this.resize();
    this.input = new PointerInput(this);
    listenToControls(this);
    listenToKeys(this);
    this.lanes.addEventListener("scroll", () => this.scrolled());
    new ResizeObserver(() => this.resize()).observe(this.section);
    document.addEventListener("themechange", () => this.recolour());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  // ---- the view ----

  get from() {
    return this.window.from;
  }

  get to() {
    return this.window.to;
  }

  timeAt(x) {
    return this.window.timeAt(x);
  }

  show(from, to, remember = true) {
    this.window.set(from, to);
    if (remember) this.address.remember();
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(share) {
    const by = this.window.span * share;
    this.show(this.from + by, this.to + by);
  }

  home() {
    this.marked = null;
    this.show(...this.data.home);
  }

  /** The first view again, because the address says so. */
  showHome() {
    this.marked = null;
    this.pin(null);
    this.show(...this.data.home, false);
  }

  /** Zoom to [from, to) with air around it, mark it, scroll to a group, and pin the slice that makes up most of it. */
  showMarked(from, to, group) {
    const air = Math.max((to - from) / 2, 500);
    this.marked = { from, to };
    this.show(from - air, to + air, false);
    if (group) {
      this.unfold(group);
      this.scrollTo(this.layout.headingOf(group).y - AXIS);
    }
    this.pin(group ? mainSlice(group, from, to) : null);
  }

  /** Bring a slice into view, as far from its edges as it takes to see it, and pin it. */
  goTo(place) {
    const { row, i } = place;
    const [start, end] = [row.start[i], row.end[i]];
    const isSeen = start >= this.from && end <= this.to && (end - start) * this.window.scale >= 4;
    if (!isSeen) {
      const span = Math.max(Math.min(this.window.span, (end - start) * 30), end - start, SHORTEST_VIEW * 4);
      const middle = (start + end) / 2;
      this.show(middle - span * 0.6, middle + span * 0.6);
    }
    this.unfold(row.group);
    const box = this.layout.boxOf(row);
    const top = this.lanes.scrollTop;
    if (box.y - top < AXIS + 10 || box.y + box.height - top > this.window.height - 10) this.scrollTo(box.y - this.window.height / 2);
    this.pin(place);
  }

  scrollTo(y) {
    this.lanes.scrollTop = y;
    this.knownScroll = this.lanes.scrollTop;
    this.draw();
  }

  scrolled() {
    if (Math.abs(this.lanes.scrollTop - (this.knownScroll ?? 0)) > 1) this.address.remember(); // the reader did it
    this.knownScroll = this.lanes.scrollTop;
    this.draw();
  }

  // ---- groups ----

  arrange() {
    this.layout = layOut(this.data.groups, this.folded);
    document.getElementById("spacer").style.height = `${this.layout.height}px`;
  }

  fold(group, isFolded = !this.folded.has(group)) {
    if (isFolded === this.folded.has(group)) return;
    if (isFolded) this.folded.add(group);
    else this.folded.delete(group);
    this.arrange();
    this.resize();
    this.draw();
  }

  unfold(group) {
    this.fold(group, false);
  }

  /** Fold all groups, or unfold them when all are folded. */
  foldAll() {
    const isFolded = this.folded.size < this.data.groups.length;
    for (const group of this.data.groups) this.fold(group, isFolded);
  }

  // ---- drawing ----

  draw() {
    this.frame ||= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    paint(this.ctx, {
      layout: this.layout, window: this.window, colours: this.colours, labels: this.labels, scroll: this.scroll, matches: this.search.matches,
      marked: this.marked, selection: this.selection, pinned: this.pinned, arrows: this.arrows(),
    });
    this.minimap.draw();
    const { from, to, span } = this.window;
    const step = Math.max(1, span / 100);
    document.getElementById("range").textContent = `${formatTick(from, step, to)} – ${formatTick(to, step, to)} · ${formatDuration(span)} shown`;
  }

  /** Those of the pinned slice; without one, those of the slice under the pointer. */
  arrows() {
    const place = this.pinned ?? this.hovered;
    return place?.row.link ? this.links().arrowsOf(place) : [];
  }

  resize() {
    const { isOnPaper } = this;
    const ratio = isOnPaper ? PAPER_RATIO : window.devicePixelRatio || 1;
    const tall = Math.min(this.layout.height + 2, isOnPaper ? PAPER_HEIGHT : Math.max(260, window.innerHeight * 0.72));
    const height = `${tall}px`;
    if (this.lanes.style.height !== height) this.lanes.style.height = height;
    const { clientWidth, clientHeight } = isOnPaper ? { clientWidth: PAPER_WIDTH, clientHeight: tall } : this.lanes;
    const known = this.window;
    if (!clientWidth || !clientHeight) return; // not shown at all
    if (clientWidth === known.width && clientHeight === known.height && ratio === this.ratio) return;
    this.ratio = ratio;
    Object.assign(known, { width: clientWidth, height: clientHeight, gutter: clientWidth < 640 ? 86 : 150 });
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.minimap.repaint();
    this.drawNow(); // at once: a resized canvas is empty
  }

  /** On paper the lanes are as wide as a sheet, and as high as one holds; what is left says so. */
  print(isOnPaper) {
    this.isOnPaper = isOnPaper;
    this.resize();
    document.getElementById("lanes-left").hidden = !isOnPaper || this.layout.height <= PAPER_HEIGHT;
  }

  /** How far the lanes are scrolled, in px. */
  get scroll() {
    const top = this.lanes.scrollTop;
    return this.isOnPaper ? Math.max(0, Math.min(top, this.layout.height - this.window.height)) : top;
  }

  recolour() {
    this.colours = readColours(this.data);
    this.minimap.repaint();
    this.drawNow();
  }

  // ---- what is under the pointer ----

  hover(event) {
    this.pointer = event.offsetX;
    const found = hitAt(this, event.offsetX, event.offsetY);
    this.details.show(found, event.clientX, event.clientY);
    this.canvas.style.cursor = found?.kind === "heading" ? "pointer" : "";
    const slice = found?.kind === "slice" && found.row.link?.[found.i] ? found : null;
    if (slice?.row === this.hovered?.row && slice?.i === this.hovered?.i) return;
    this.hovered = slice;
    if (!this.pinned) this.draw();
  }

  leave() {
    this.details.hide();
    this.pointer = null;
    if (this.hovered) this.draw();
    this.hovered = null;
  }

  /** The time under the pointer; none when it is elsewhere. */
  pointedTime() {
    return this.pointer > this.window.gutter ? this.timeAt(this.pointer) : undefined;
  }

  click(x, y) {
    const found = hitAt(this, x, y);
    if (found?.kind === "heading") this.fold(found.group);
    else if (found?.kind === "crowd") this.pin({ row: found.row, i: found.longest });
    else this.pin(found?.kind === "slice" ? found : null);
  }

  // ---- the pinned slice ----

  pin(place) {
    this.pinned = place && { row: place.row, i: place.i };
    this.details.pin(this.pinned);
    this.draw();
  }

  zoomToPinned() {
    if (!this.pinned) return;
    const { row, i } = this.pinned;
    const air = Math.max((row.end[i] - row.start[i]) / 2, SHORTEST_VIEW);
    this.show(row.start[i] - air, row.end[i] + air);
  }

  /** The next or the previous slice of the pinned one's name on the same GPU or thread. */
  goToSameName(step) {
    if (!this.pinned) return;
    const { row, i } = this.pinned;
    const rows = this.search.rows.filter((other) => other.group === row.group && other.lane.kind === row.lane.kind);
    const found = nextSlice(rows, this.pinned, step, (other, k) => hasName(other, k, row.name[i]));
    if (found) this.goTo(found);
  }

  /** Escape: first what is pinned or marked, then what is selected. */
  letGo() {
    if (!this.pinned && !this.marked) this.clearSelection();
    this.marked = null;
    this.pin(null);
  }

  // ---- search ----

  find(text) {
    this.search.find(text);
    this.names.show();
    for (const button of document.querySelectorAll('[data-act^="find-"]')) button.disabled = !this.search.count;
    this.draw();
  }

  goToMatch(step) {
    if (this.search.count) this.goToNext(step, (row, i) => row.hits[i + 1] > row.hits[i]);
  }

  /** Go to the next slice that is wanted, or the one before; round at the end. From the pinned slice, else from what is in view. */
  goToNext(step, wanted) {
    const { rows } = this.search;
    const edge = { time: step > 0 ? -Infinity : Infinity };
    const here = this.pinned ?? { time: step > 0 ? this.from : this.to };
    const found = nextSlice(rows, here, step, wanted) ?? nextSlice(rows, edge, step, wanted);
    if (found) this.goTo(found);
  }

  // ---- the selected range ----

  /** Select what lies between two times, in whole ns; `isDragging` puts off the figures until it is final. */
  select(a, b, isDragging = false) {
    this.selection = { from: Math.round(Math.min(a, b)), to: Math.round(Math.max(a, b)) };
    if (!isDragging) this.range.show(this.selection);
    this.draw();
  }

  selectView() {
    this.select(this.from, this.to);
  }

  zoomToSelection() {
    if (this.selection) this.show(this.selection.from, this.selection.to);
  }

  clearSelection() {
    this.selection = null;
    this.range.show(null);
    this.draw();
  }

  toggleHelp() {
    const keys = document.getElementById("keys");
    keys.hidden = !keys.hidden;
    document.querySelector('[data-act="help"]').setAttribute("aria-expanded", String(!keys.hidden));
    if (!keys.hidden) keys.scrollIntoView({ block: "nearest" });
  }
}
