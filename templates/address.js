"use strict";
// Addresses: `#finding=INP001&e=2` and `#t=from-to&y=scroll` reproduce what is shown; buttons elsewhere on the page lead here. What an
// address asks for and the page does not have is said, and the address stays as it is.

const MOST_KEYS_LISTED = 12;
const KEYS = ["finding", "e", "t", "y"];

/** What an address asks for: {place} (an element's id, may be empty), or {asked (key to text), unknown (other keys)}. */
function readAddress(hash) {
  let text = hash.slice(1);
  try {
    text = decodeURIComponent(text);
  } catch {
    // Not encoded at all, or badly: taken as it stands.
  }
  if (!text.includes("=")) return { place: text };
  const parts = text.split("&").filter(Boolean);
  const pairs = parts.map((part) => [part.split("=", 1)[0], part.slice(part.indexOf("=") + 1)]);
  return { asked: Object.fromEntries(pairs.filter(([key]) => KEYS.includes(key))), unknown: pairs.map(([key]) => key).filter((key) => !KEYS.includes(key)) };
}

/** Somebody's text within a sentence of ours. */
const quoted = (text) => `“${cutAt(text.replace(/\p{C}/gu, "\ufffd"), 60)}”`;

class Address {
  /**
   * `places`: {evidence: a finding's number to [from, to, group, label] or null an item, keys: a finding's key to its number, rules: a rule's
   * id to its first finding}. `timeline` is null on a page without one.
   */
  constructor(timeline, places) {
    this.timeline = timeline;
    this.evidence = places.evidence;
    this.keys = places.keys;
    this.numbers = { ...places.rules, ...places.keys };
    window.addEventListener("hashchange", () => this.follow());
    document.addEventListener("showrange", ({ detail }) => this.goToRange(detail.from, detail.to, detail.group));
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.dataset.finding) this.goToEvidence(button.dataset.finding, Number(button.dataset.evidence ?? 0));
      else if (button?.matches(".show-range")) {
        const { from, to, group } = button.dataset;
        this.goToRange(Number(from), Number(to), group ? Number(group) : null);
      }
    });
  }

  /** Show what the address asks for, and say what of it is not there. */
  follow() {
    clearTimeout(this.timer);
    const { place, asked, unknown } = readAddress(location.hash);
    const troubles = asked ? [...unknown.map((key) => `${quoted(key)} is nothing that a link can ask for here.`), ...this.show(asked)] : this.goToPlace(place);
    const said = troubles.filter(Boolean).join(" ");
    document.getElementById("asked").textContent = said && `The link asks for what this page does not have. ${said}`;
  }

  /** The parts of an address; returns what is wrong with them. */
  show({ finding, e, t, y }) {
    if (finding !== undefined) return [this.showFinding(finding, e), t !== undefined && "A link shows a finding or a stretch of time, not both: this is the finding."];
    if (t !== undefined) return [this.showTimes(t, y)];
    return ["Without a finding or a stretch of time there is nothing to show."];
  }

  /** Leaves [trouble] where there is no such element. The empty place is the page as it was opened. */
  goToPlace(id) {
    if (!id || id === "top") {
      if (!id) this.timeline?.showHome();
      return [];
    }
    const number = /^finding-(.+)$/.test(id) ? this.numberOf(id.slice("finding-".length)) : undefined;
    const element = document.getElementById(id) ?? (number !== undefined && this.card(number));
    if (!element) return [`It has no part called ${quoted(id)}.`];
    if (element.id !== id || element.closest("details:not([open])")) reveal(element); // else the browser has gone there
    return [];
  }

  showFinding(asked, e) {
    const number = this.numberOf(asked);
    if (number === undefined) return this.unknownFinding(asked);
    const places = this.evidence[number] ?? [];
    const item = e === undefined ? places.findIndex(Boolean) : Number(e);
    const card = this.card(number);
    if (this.timeline && places[item]) {
      this.showRange(...places[item]);
      return "";
    }
    if (card) reveal(card);
    const key = this.keyOf(number);
    if (e !== undefined && (!/^\d+$/.test(e) || !(item < places.length))) {
      return places.length ? `${key} has pieces of evidence from e=0 to e=${places.length - 1}, and ${quoted(e)} is none of them.` : `${key} has no evidence on the timeline.`;
    }
    return card ? "" : `The timeline does not show where ${key} is.`;
  }

  unknownFinding(asked) {
    const keys = Object.keys(this.keys);
    const named = keys.slice(0, MOST_KEYS_LISTED).join(", ") + (keys.length > MOST_KEYS_LISTED ? ` and ${keys.length - MOST_KEYS_LISTED} more` : "");
    return `It has no finding ${quoted(asked)}; ${keys.length ? `its findings are ${named}.` : "nothing was found."}`;
  }

  showTimes(t, y) {
    const { timeline } = this;
    if (!timeline) return "It has no timeline.";
    const [low, high] = timeline.data.extent;
    const times = /^(-?\d{1,16})-(-?\d{1,16})$/.exec(t);
    const [from, to] = times ? [Number(times[1]), Number(times[2])] : [0, 0];
    if (from >= to || to < low || from > high) {
      return `${quoted(t)} is no stretch of its timeline, which goes from ${low} to ${high}: t=FROM-TO takes whole ns, FROM before TO.`;
    }
    timeline.show(from, to, false);
    timeline.scrollTo(/^\d{1,7}$/.test(y) ? Number(y) : 0);
    timeline.section.scrollIntoView();
    return y === undefined || /^\d{1,7}$/.test(y) ? "" : `y is a number of pixels, and ${quoted(y)} is not.`;
  }

  /** The number of a finding by its key, its rule or, as older links have it, its number; undefined without such a one. */
  numberOf(asked) {
    const key = asked.toUpperCase();
    const found = Object.hasOwn(this.numbers, key) ? this.numbers[key] : /^\d{1,6}$/.test(asked) ? Number(asked) : undefined;
    return this.keyOf(found) && found;
  }

  keyOf(number) {
    return Object.keys(this.keys).find((key) => this.keys[key] === number);
  }

  card(number) {
    return document.getElementById(`finding-${this.keyOf(number)}`);
  }

  /** A click on a piece of evidence: shown, and an address of its own, so that the browser's Back leads back. */
  goToEvidence(finding, item) {
    const place = this.evidence[finding]?.[item];
    if (!place || !this.timeline) return;
    this.showRange(...place);
    this.write(`finding=${this.keyOf(Number(finding))}&e=${item}`, true);
  }

  goToRange(from, to, group) {
    if (!this.timeline) return;
    this.showRange(from, to, group);
    this.write(this.viewAsText(), true);
  }

  /** Zoom to [from, to) with half of its length on each side, scroll to a group's lanes and pin what fills the range. */
  showRange(from, to, group = null) {
    const { timeline } = this;
    timeline.showMarked(from, to, timeline.data.groups[group]);
    timeline.section.scrollIntoView();
    timeline.lanes.focus({ preventScroll: true });
  }

  viewAsText() {
    const { window: shown, lanes } = this.timeline;
    const scroll = Math.round(lanes.scrollTop);
    return `t=${Math.round(shown.from)}-${Math.round(shown.to)}${scroll ? `&y=${scroll}` : ""}`;
  }

  /** Write the view into the address, a moment after it last changed. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(this.viewAsText()), 250);
  }

  /** What was said of the address before no longer holds of this one. */
  write(hash, isJump = false) {
    clearTimeout(this.timer);
    document.getElementById("asked").textContent = "";
    if (isJump && location.hash !== `#${hash}`) history.pushState(null, "", `#${hash}`);
    else history.replaceState(null, "", `#${hash}`);
  }
}

/** Bring an element into view, unfolded. */
function reveal(element) {
  for (let folded = element.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
  element.scrollIntoView();
}
