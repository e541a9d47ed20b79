"use strict";
// What is known of a slice, in words: for the tooltip and for the panel of the pinned one. Names are text, never markup.

const MOST_NAMED = 6; // operations of one call that are listed
const OTHERS_NAMED = 4; // names inside a merged slice that are told
const OTHER_NAME = 40;

class Details {
  constructor(timeline) {
    this.timeline = timeline;
    this.tip = document.getElementById("tip");
    this.panel = document.getElementById("pinned");
    this.text = document.getElementById("pinned-text");
    this.launches = document.getElementById("pinned-launches");
  }

  // ---- the tooltip ----

  hide() {
    this.tip.hidden = true;
  }

  /** Show what `hitAt` found, at a place in the browser's window. */
  show(found, x, y) {
    if (!found) return this.hide();
    fillLines(this.tip, ...this.linesOf(found));
    this.tip.hidden = false;
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - w - 8))}px`;
    this.tip.style.top = `${y + 18 + h > window.innerHeight ? Math.max(4, y - h - 10) : y + 18}px`;
  }

  /** A title, and lines of text below it. */
  linesOf(found) {
    if (found.kind === "slice") return this.sliceLines(found);
    if (found.kind === "crowd") return this.crowdLines(found);
    if (found.kind === "point") return this.pointLines(found);
    return [found.group.label, "click to fold or unfold its lanes"];
  }

  sliceLines({ row, i }) {
    const { data } = this.timeline;
    const { lane, group } = row;
    const [start, ns, colour] = [row.start[i], row.end[i] - row.start[i], row.colour[i]];
    const count = eventsOf(row, i);
    const meaning = data.meanings[colour];
    const label = data.labels[colour];
    const kind = lane.kind === "ledger" || label === lane.label ? "" : ` · ${label}`;
    return [
      data.names[row.name[i]],
      count > 1 && `${count.toLocaleString("en-US")} events merged; the longest is named`,
      count > 1 && this.othersLine(row, i),
      lane.kind === "ledger" && `${label}: ${meaning}`,
      `${formatDuration(ns)} · ${formatExact(ns)}`,
      isExact(row, i) ? this.startLine(start, group) : `starts at about ${formatTick(start, data.quantum, Math.max(Math.abs(start), 1))}: merging moved it by less than ${formatDuration(2 * data.quantum)}`,
      `${group.label} · ${lane.label}${kind}`,
    ];
  }

  /** The other names inside a merged slice, as far as the page has them; those that are searched for first. */
  othersLine(row, i) {
    const { matches } = this.timeline.search;
    const inside = [...namesInside(row, i)];
    if (matches) inside.sort((a, b) => matches[b] - matches[a]);
    const others = inside.map((name) => cutAt(shortName(this.timeline.data.names[name]), OTHER_NAME));
    if (!others.length) return null;
    const more = others.length - OTHERS_NAMED;
    return `also in it: ${others.slice(0, OTHERS_NAMED).join(", ")}${more > 0 ? ` and ${formatCount(more, "other name")}` : ""}`;
  }

  startLine(start, group) {
    const absolute = BigInt(group.origin) + BigInt(Math.round(start));
    return `starts at ${formatTick(start, 1, Math.max(Math.abs(start), 1))} · ${absolute.toLocaleString("en-US")} ns on the trace's clock`;
  }

  crowdLines({ row, count, events, time, name, named, from, to }) {
    const more = events > count ? ` of ${events.toLocaleString("en-US")} events` : "";
    return [
      `${count.toLocaleString("en-US")} slices${more} in this pixel`,
      more ? `${formatDuration(time)} in all` : `most time: ${this.timeline.data.names[name]}, ${formatDuration(named)} of ${formatDuration(time)}`,
      `${formatDuration(to - from)} a pixel · ${row.group.label} · ${row.lane.label}`,
    ];
  }

  pointLines({ row, low, high, last, time }) {
    const { lane, group } = row;
    const value = low === high ? formatAmount(last, lane.unit) : `${formatAmount(low, lane.unit)} to ${formatAmount(high, lane.unit)}`;
    return [value, lane.label, `at ${formatTick(time, this.timeline.window.span / 1000, Math.max(Math.abs(time), 1))} · ${group.label}`];
  }

  // ---- the pinned slice ----

  pin(place) {
    this.panel.hidden = !place;
    if (!place) return;
    fillLines(this.text, ...this.sliceLines(place));
    this.launches.replaceChildren(...this.launchItems(place));
    this.launches.hidden = !this.launches.childElementCount;
  }

  /** List items about launching, each with a button that goes to the other end. */
  launchItems(place) {
    const { links, data } = this.timeline;
    const nameOf = ({ row, i }) => data.names[row.name[i]];
    const startOf = ({ row, i }) => row.start[i];
    const call = links().callOf(place);
    const areExact = (other) => isExact(place.row, place.i) && isExact(other.row, other.i);
    if (call && !areExact(call)) return [this.item("launched by ", nameOf(call), "", call)];
    if (call) {
      const early = startOf(place) - startOf(call);
      const text = early < 0 ? `, ${formatDuration(-early)} after it started (the clocks disagree)` : `, ${formatDuration(early)} before it started`;
      return [this.item("launched by ", nameOf(call), text, call)];
    }
    const { count, places } = links().operationsOf(place, Infinity);
    const items = places.slice(0, MOST_NAMED).map((one) => {
      const late = startOf(one) - startOf(place);
      if (!areExact(one)) return this.item("started ", nameOf(one), "", one);
      return this.item("started ", nameOf(one), `, ${formatDuration(Math.abs(late))} ${late < 0 ? "before" : "after"} the call began`, one);
    });
    if (count > MOST_NAMED) {
      const drawn = count > MOST_ARROWS ? `; ${MOST_ARROWS} of ${count.toLocaleString("en-US")} arrows are drawn` : "";
      items.push(element("li", {}, `and ${formatCount(count - MOST_NAMED, "more operation")}${drawn}`));
    }
    return items;
  }

  item(before, name, after, place) {
    const button = element("button", { type: "button", className: "link", textContent: cutAt(name, LONGEST_NAME) });
    button.addEventListener("click", () => this.timeline.goTo(place));
    return element("li", {}, before, button, after);
  }
}

/** A title and the lines below it, without those that are not there. */
function fillLines(target, title, ...lines) {
  target.replaceChildren(element("b", {}, title), ...lines.filter(Boolean).map((line) => element("span", {}, line)));
}
