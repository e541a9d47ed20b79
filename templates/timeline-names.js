"use strict";
// What a search found, in words: beside the field in short, and below it name by name.

const NAMES_LISTED = 20;

class FoundNames {
  constructor(timeline) {
    this.timeline = timeline;
    this.summary = document.getElementById("found");
    this.box = document.getElementById("found-names");
  }

  show() {
    const { search } = this.timeline;
    this.summary.textContent = search.matches ? this.words(search) : "";
    this.box.hidden = !search.count;
    this.box.replaceChildren(...(search.count ? [this.table(search.found), ...this.notes(search).map((text) => element("p", {}, text))] : []));
    this.box.scrollTop = 0;
  }

  /** For example "11,880 events match, 11,204 of them inside merged slices". */
  words({ count, single, index }) {
    const rest = index.left[0] ? `; ${leftOut(index.left)} not searched` : "";
    if (!count) return `no name on the timeline contains this${rest}`;
    const merged = count - single;
    const inside = !merged ? "" : merged === count ? ", inside merged slices" : `, ${merged.toLocaleString("en-US")} of them inside merged slices`;
    return `${formatCount(count, "event")} match${count === 1 ? "es" : ""}${inside}${rest}`;
  }

  table(found) {
    const rows = found.slice(0, NAMES_LISTED).map((entry) => this.row(entry));
    return element("table", { className: "figures" }, headRow("Name, longest total first", "events", "one by one", "total", "on"), element("tbody", {}, ...rows));
  }

  row({ name, kind, count, time, single }) {
    const { data } = this.timeline;
    const full = data.names[name];
    const button = element("button", { type: "button", className: "link", textContent: cutAt(shortName(full), LONGEST_NAME), title: full });
    button.addEventListener("click", () => this.timeline.goToNext(1, (row, i) => row.kind === kind && hasName(row, i, name)));
    return element(
      "tr", {}, element("th", { scope: "row" }, button),
      figure(count.toLocaleString("en-US")), figure(single.toLocaleString("en-US")), figure(formatDuration(time), formatExact(time)), element("td", {}, data.index.kinds[kind]),
    );
  }

  notes({ found, count, single, index }) {
    const more = found.length - NAMES_LISTED;
    return [
      ...(more > 0 ? [`and ${formatCount(more, "name")} more with shorter totals`] : []),
      ...(single < count ? ["“One by one” are those that are slices of their own; the others are inside merged slices, where Enter goes too."] : []),
      ...(single < count && index.places ? [`Of each name the first ${formatCount(index.places, "merged slice")} that hold it without being named after it are known; later ones are not marked.`] : []),
      ...(index.left[0] ? [`This page's index has no room for ${leftOut(index.left)}; the table of kernels and an export have what this search does not.`] : []),
    ];
  }
}

/** For example "120 rare names (130 events)". */
function leftOut([names, events]) {
  return `${formatCount(names, "rare name")} (${formatCount(events, "event")})`;
}
