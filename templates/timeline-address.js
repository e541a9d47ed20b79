"use strict";
// Addresses: `#finding=0&e=2`, `#finding=INP001` and `#t=from-to&y=scroll` reproduce what is shown; buttons elsewhere on the page lead here.

class Address {
  /** `places`: {evidence: a finding's number to [from, to, group, label] or null an item, rules: a rule's id to its first finding}. */
  constructor(timeline, places) {
    this.timeline = timeline;
    this.evidence = places.evidence;
    this.rules = places.rules;
    window.addEventListener("hashchange", () => this.follow());
    document.addEventListener("showrange", ({ detail }) => this.showRange(detail.from, detail.to, detail.group));
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.dataset.finding) this.showEvidence(button.dataset.finding, Number(button.dataset.evidence ?? 0));
      else if (button?.matches(".show-range")) {
        const { from, to, group } = button.dataset;
        this.showRange(Number(from), Number(to), group ? Number(group) : null);
      }
    });
  }

  /** Show what the address says, if it speaks of the timeline. */
  follow() {
    const finding = /^#finding=(\w+)(?:&e=(\d+))?$/.exec(location.hash);
    const times = /^#t=(-?\d+)-(-?\d+)(?:&y=(\d+))?$/.exec(location.hash);
    if (finding) this.showEvidence(this.rules[finding[1]] ?? finding[1], finding[2] === undefined ? null : Number(finding[2]));
    else if (times && Number(times[2]) > Number(times[1])) {
      this.timeline.show(Number(times[1]), Number(times[2]), false);
      this.timeline.scrollTo(Number(times[3] ?? 0));
      this.timeline.section.scrollIntoView();
    }
  }

  /** Zoom to an item of a finding's evidence (its first place when null); a finding without a place is scrolled to. */
  showEvidence(finding, item) {
    const places = this.evidence[finding] ?? [];
    const number = item ?? places.findIndex(Boolean);
    const place = places[number];
    if (!place) {
      document.getElementById(`finding-${finding}`)?.scrollIntoView();
      return;
    }
    this.showRange(...place);
    this.replace(`finding=${finding}&e=${number}`);
  }

  /** Zoom to [from, to) with half of its length on each side, scroll to a group's lanes and pin what fills the range. */
  showRange(from, to, group = null) {
    const { timeline } = this;
    timeline.showMarked(from, to, timeline.data.groups[group]);
    timeline.section.scrollIntoView();
    timeline.lanes.focus({ preventScroll: true });
  }

  /** Write the view into the address, a moment after it last changed. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { window: shown, lanes } = this.timeline;
      const scroll = Math.round(lanes.scrollTop);
      this.replace(`t=${Math.round(shown.from)}-${Math.round(shown.to)}${scroll ? `&y=${scroll}` : ""}`);
    }, 250);
  }

  replace(hash) {
    clearTimeout(this.timer);
    history.replaceState(null, "", `#${hash}`);
  }
}
