"use strict";
// A selected range of time and what it is made of: for every GPU its ledger within the range, exact to the nanosecond.

const TOP_NAMES = 5;
const LONGEST_NAME = 100;

/** The ledger of one lane within [from, to): ns by colour code, in the order of the codes, and their sum. */
function ledgerIn(row, from, to) {
  const times = timesWithin(row, from, to, colourTimes);
  const lines = row.colours.map((colour, k) => ({ colour, ns: times[k] })).filter((line) => line.ns > 0);
  lines.sort((a, b) => a.colour - b.colour);
  return { lines, total: lines.reduce((sum, line) => sum + line.ns, 0), isMerged: Boolean(row.count) };
}

/**
 * The names with most time in these rows within [from, to): {found: [{name (its number), ns, count}], merged: ns of merged slices, whose
 * events have several names}. `names` is how many there are.
 */
function topNames(rows, from, to, names, most) {
  const time = new Float64Array(names);
  const count = new Uint32Array(names);
  let merged = 0;
  for (const row of rows) {
    const [first, next] = slicesIn(row, from, to);
    for (let i = first; i < next; i++) {
      const ns = Math.min(row.end[i], to) - Math.max(row.start[i], from);
      if (eventsOf(row, i) > 1) {
        merged += ns;
      } else {
        time[row.name[i]] += ns;
        count[row.name[i]]++;
      }
    }
  }
  const found = [];
  for (let name = 0; name < names; name++) if (time[name] > 0) found.push({ name, ns: time[name], count: count[name] });
  return { found: found.sort((a, b) => b.ns - a.ns).slice(0, most), merged };
}

/** The panel under the lanes that tells of the range. */
class RangePanel {
  constructor(data) {
    this.data = data;
    this.panel = document.getElementById("selection");
    this.title = document.getElementById("selection-title");
    this.content = document.getElementById("selection-content");
    this.ledgers = data.rows.filter((row) => row.lane.kind === "ledger");
    this.streams = data.rows.filter((row) => row.lane.content === "streams");
  }

  /** Tell of {from, to}, whole ns since the origin; null hides the panel. */
  show(range) {
    this.panel.hidden = !range;
    if (!range) return;
    const { from, to } = range;
    const step = Math.max(1, (to - from) / 100);
    this.title.textContent = `Selected: ${formatDuration(to - from)}, from ${formatTick(from, step, Math.max(Math.abs(to), 1))} to ${formatTick(to, step, Math.max(Math.abs(to), 1))}`;
    const ledgers = this.ledgers.map((row) => ({ row, ...ledgerIn(row, from, to) })).filter((ledger) => ledger.total > 0);
    const { found: names, merged } = topNames(this.streams, from, to, this.data.names.length, TOP_NAMES);
    this.content.replaceChildren(
      ...ledgers.map((ledger) => this.ledger(ledger, ledgers.length)),
      ...(ledgers.length ? [] : [element("p", {}, "No GPU was being recorded in this range.")]),
      ...(names.length ? [this.names(names, ledgers.length)] : []),
      ...(ledgers.some((ledger) => ledger.isMerged) ? [element("p", {}, "Short slices are merged at this size: what is cut at the edges of the range is estimated.")] : []),
      ...(merged ? [element("p", {}, `${formatDuration(merged)} on the streams is in merged slices and not listed by name.`)] : []),
    );
  }

  /** One GPU: its ledger as a bar and as a table, folded when there are many. */
  ledger({ row, lines, total }, count) {
    const bar = element("div", { className: "range-bar", ariaHidden: "true" }, ...lines.map((line) => this.segment(line, total)));
    const rows = lines.map(({ colour, ns }) => {
      const label = element("span", {}, element("i", { className: "swatch" }), this.data.labels[colour]);
      return shareRow(label, ns, total, `c-${this.data.colours[colour]}`);
    });
    const sum = element("tfoot", {}, shareRow("Sum", total, total));
    const table = element("table", { className: "figures" }, headRow("Line", "ms", "share"), element("tbody", {}, ...rows), sum);
    const details = element("details", { open: count <= 2 }, element("summary", {}, "in milliseconds"), table);
    return element("div", {}, element("h4", {}, `${row.group.label}: ${formatDuration(total)} of its window`), bar, details);
  }

  segment({ colour, ns }, total) {
    const title = `${this.data.labels[colour]}: ${formatDuration(ns)}, ${percent(ns, total)}`;
    const part = element("span", { className: `c-${this.data.colours[colour]}`, title });
    part.style.width = `${(100 * ns) / total}%`;
    return part;
  }

  names(names, ledgers) {
    const rows = names.map(({ name, ns, count }) => {
      const full = this.data.names[name];
      const label = element("th", { scope: "row", title: full }, cutAt(shortName(full), LONGEST_NAME));
      return element("tr", {}, label, figure(milliseconds(ns), formatExact(ns)), figure(count.toLocaleString("en-US")));
    });
    const className = ledgers > 2 ? "figures across" : "figures";
    return element("table", { className }, headRow(`Most time on the streams${ledgers > 1 ? ` of these ${ledgers} GPUs together` : ""}`, "ms", "events"), element("tbody", {}, ...rows));
  }
}

function headRow(first, ...others) {
  const cells = others.map((title) => element("th", { scope: "col", className: "n" }, title));
  return element("thead", {}, element("tr", {}, element("th", { scope: "col" }, first), ...cells));
}

function shareRow(label, ns, total, className = "") {
  const cells = [figure(milliseconds(ns), formatExact(ns)), figure(percent(ns, total))];
  return element("tr", { className }, element("th", { scope: "row" }, label), ...cells);
}

function figure(textContent, title = "") {
  return element("td", { className: "n", textContent, title });
}

function milliseconds(ns) {
  return withCommas(ns / 1e6, 3);
}

/** A share with one decimal; what is tiny but there is never shown as zero. */
function percent(ns, total) {
  const share = (100 * ns) / total;
  if (share > 0 && share < 0.05) return "<0.1%";
  return share >= 99.95 && share < 100 ? ">99.9%" : `${share.toFixed(1)}%`;
}
