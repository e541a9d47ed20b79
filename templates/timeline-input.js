"use strict";
// Input: pointer, wheel, touch and buttons, turned into what the timeline can do.

const CLICK = 4; // px that a pointer may move within a click

class PointerInput {
  constructor(timeline) {
    this.timeline = timeline;
    this.pointers = new Map();
    this.anchor = null; // where a selection began, ns
    const { canvas } = timeline;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => (this.pointers.size ? this.drag(event) : timeline.hover(event)));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.cancel(event));
    canvas.addEventListener("pointerleave", () => timeline.leave());
    canvas.addEventListener("dblclick", (event) => event.offsetX > timeline.window.gutter && timeline.home());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  press(event) {
    if (event.button) return;
    const { timeline } = this;
    timeline.lanes.focus({ preventScroll: true });
    timeline.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.dragged = false;
    this.anchor = event.shiftKey ? timeline.window.timeAt(event.offsetX) : null;
  }

  drag(event) {
    const { timeline } = this;
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const { offsetX: x, offsetY: y } = event;
    if (!this.dragged && Math.hypot(x - last.x, y - last.y) < CLICK) return;
    this.dragged = true;
    timeline.leave();
    if (this.anchor !== null) timeline.select(this.anchor, timeline.window.timeAt(x), true);
    else if (this.pointers.size === 2) this.pinch(event, last);
    else {
      timeline.canvas.classList.add("dragging");
      const by = (last.x - x) / timeline.window.scale;
      timeline.show(timeline.window.from + by, timeline.window.to + by);
      if (event.pointerType === "mouse") timeline.lanes.scrollTop += last.y - y;
    }
    this.pointers.set(event.pointerId, { x, y });
  }

  /** Two fingers: what was under each stays there as far as it can. */
  pinch(event, last) {
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
    const { window: shown } = this.timeline;
    const middle = shown.timeAt((last.x + other.x) / 2);
    const factor = Math.max(20, Math.abs(last.x - other.x)) / Math.max(20, Math.abs(event.offsetX - other.x));
    const moved = (last.x - event.offsetX) / 2 / shown.scale;
    this.timeline.show(middle - (middle - shown.from) * factor + moved * factor, middle + (shown.to - middle) * factor + moved * factor);
  }

  release(event) {
    const { timeline } = this;
    if (!this.pointers.delete(event.pointerId)) return;
    timeline.canvas.classList.remove("dragging");
    if (this.dragged && this.anchor !== null) timeline.select(this.anchor, timeline.window.timeAt(event.offsetX));
    else if (!this.dragged) timeline.click(event.offsetX, event.offsetY);
    this.anchor = null;
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.anchor = null;
  }

  /** The wheel zooms once the timeline has been clicked, or with Ctrl (a pinch on a trackpad): a page must stay scrollable across it. */
  wheel(event) {
    const { timeline } = this;
    if (document.activeElement !== timeline.lanes && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const pixels = (delta) => delta * (event.deltaMode === 1 ? 16 : 1);
    const { window: shown } = timeline;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      timeline.move(pixels(event.deltaX || event.deltaY) / (shown.width - shown.gutter));
    } else {
      const step = event.ctrlKey ? 0.01 : 0.002; // a pinch comes in small steps
      timeline.zoom(Math.exp(Math.max(-1, Math.min(1, pixels(event.deltaY) * step))), shown.timeAt(event.offsetX));
    }
    timeline.hover(event);
  }
}

/** Buttons of the toolbar and the panels (by data-act), and the search field. */
function listenToControls(timeline) {
  const acts = {
    in: () => timeline.zoom(0.5), out: () => timeline.zoom(2), home: () => timeline.home(), help: () => timeline.toggleHelp(),
    fold: () => timeline.foldAll(), select: () => timeline.selectView(),
    "find-next": () => timeline.goToMatch(1), "find-previous": () => timeline.goToMatch(-1),
    "same-next": () => timeline.goToSameName(1), "same-previous": () => timeline.goToSameName(-1),
    "zoom-pinned": () => timeline.zoomToPinned(), unpin: () => timeline.letGo(),
    "zoom-selection": () => timeline.zoomToSelection(), "clear-selection": () => timeline.clearSelection(),
  };
  document.getElementById("timeline").addEventListener("click", (event) => acts[event.target.closest("button[data-act]")?.dataset.act]?.());
  const field = document.getElementById("find");
  field.addEventListener("input", () => timeline.find(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") timeline.goToMatch(event.shiftKey ? -1 : 1);
  });
}
