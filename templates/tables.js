"use strict";
// The tables on the page: tabs, and in each tab a table that is built when it is first looked at.

const FIRST_ROWS = 25;
const MORE_ROWS = 100;
const LONG_TEXT = 40;
const WORTH_FILTERING = 8;

class TableView {
  constructor(panel, data) {
    this.data = data;
    this.shown = FIRST_ROWS;
    this.made = []; // the rows that were shown so far, as elements
    this.headings = data.columns.map((column, at) => this.heading(column, at));
    this.body = element("tbody");
    const head = element("thead", {}, element("tr", {}, ...this.headings));
    const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: data.title });
    scroll.append(element("table", { className: "figures" }, head, this.body));
    const find = element("input", { type: "search", placeholder: "name contains…", autocomplete: "off", spellcheck: false });
    find.addEventListener("input", () => {
      data.filter(find.value);
      this.shown = FIRST_ROWS;
      this.paint();
      this.status.value = data.wanted ? `${formatCount(data.rows.length, "row")} of ${data.length.toLocaleString("en-US")}` : "";
    });
    this.status = element("output", { className: "dim" });
    const copy = element("button", { type: "button", textContent: "Copy as CSV", title: "All rows on this page that pass the filter, with whole names and exact figures" });
    copy.addEventListener("click", () => this.copy());
    this.about = element("p", { className: "about" });
    this.count = element("span");
    this.more = this.moreButton(`Show ${MORE_ROWS} more`, () => this.shown + MORE_ROWS);
    this.all = this.moreButton("Show all", () => Infinity);
    panel.append(
      element("div", { className: "finder" }, ...(data.length >= WORTH_FILTERING ? [element("label", {}, "Filter ", find)] : []), copy, this.status),
      this.about,
      scroll,
      element("p", { className: "more" }, this.count, this.more, this.all),
    );
    this.explain(data.columns[data.order]);
    this.paint();
    panel.nextElementSibling?.matches(".plain") && panel.nextElementSibling.remove();
  }

  heading(column, at) {
    const button = element("button", { type: "button", title: column.about, ariaDescription: column.about }, column.title);
    if (column.unit) button.append(" ", element("span", { className: "unit", textContent: column.unit }));
    button.addEventListener("click", () => {
      this.data.sortBy(at);
      this.paint();
    });
    for (const event of ["focus", "pointerenter", "click"]) button.addEventListener(event, () => this.explain(column));
    return element("th", { scope: "col", className: column.kind === "text" ? "" : "n" }, button);
  }

  /** Say what a column means, where keyboard and touch can read it too. */
  explain(column) {
    this.about.replaceChildren(element("b", { textContent: column.title }), `: ${column.about}.`);
  }

  moreButton(label, next) {
    const button = element("button", { type: "button", textContent: label });
    button.addEventListener("click", () => {
      const first = Math.min(this.shown, this.data.rows.length);
      this.shown = next();
      this.paint();
      if (button.hidden) this.body.rows[first]?.querySelector("button")?.focus();
    });
    return button;
  }

  paint() {
    const { data } = this;
    const rows = data.rows.slice(0, this.shown);
    this.headings.forEach((heading, at) => {
      if (at === data.order) heading.ariaSort = data.ascending ? "ascending" : "descending";
      else heading.ariaSort = null;
    });
    this.body.replaceChildren(...rows.map((row) => (this.made[row] ??= this.row(row))));
    const left = data.rows.length - rows.length;
    this.count.textContent = left ? `${formatCount(rows.length, "row")} of ${data.rows.length.toLocaleString("en-US")}` : "";
    this.more.hidden = left <= MORE_ROWS;
    this.all.hidden = !left;
  }

  row(row) {
    const cells = this.data.columns.map((column, at) => this.cell(column, row, at));
    return element("tr", { className: this.data.colours ? `c-${this.data.colours[row]}` : "" }, ...cells);
  }

  cell(column, row, at) {
    const first = at === 0;
    const cell = element(first ? "th" : "td", { className: column.kind !== "text" ? "n" : column.name ? "text name" : "text" });
    if (first) cell.scope = "row";
    if (at === this.data.swatch) cell.append(element("i", { className: "swatch" }));
    const text = this.data.text(column, row);
    const exact = this.data.exact(column, row);
    if (first && this.data.ranges) cell.append(this.rangeButton(row, text, column.unit));
    else if (column.kind === "text" && (exact || text.length > LONG_TEXT)) cell.append(this.longText(cell, text, exact ?? text));
    else cell.append(text);
    if (exact && column.kind !== "text") cell.title = exact;
    return cell;
  }

  rangeButton(row, text, unit) {
    const [from, to, group] = this.data.ranges.map((column) => column[row]);
    const button = element("button", { type: "button", className: "link show-range", textContent: text });
    button.ariaLabel = `Show ${text} ${unit} on the timeline`;
    Object.assign(button.dataset, { from, to, group });
    return button;
  }

  /** A text that is cut: whole in a tooltip, while it has the keyboard's focus, and, once pressed, until it is pressed again. */
  longText(cell, short, full) {
    const button = element("button", { type: "button", className: "long", textContent: short, title: full, ariaExpanded: "false" });
    const show = (open) => {
      button.textContent = open ? full : short;
      cell.classList.toggle("open", open);
    };
    const isOpen = () => button.ariaExpanded === "true";
    button.addEventListener("click", () => {
      button.ariaExpanded = String(!isOpen());
      show(isOpen());
    });
    button.addEventListener("focus", () => button.matches(":focus-visible") && show(true));
    button.addEventListener("blur", () => show(isOpen()));
    return button;
  }

  async copy() {
    const text = this.data.csv();
    const say = (words) => (this.status.value = words);
    try {
      await navigator.clipboard.writeText(text);
      say(`${formatCount(this.data.rows.length, "row")} copied`);
    } catch {
      say("This browser does not let the page copy.");
    }
  }

  /** Paper has the first rows. Returns what puts the table back. */
  forPaper() {
    const { shown } = this;
    this.shown = FIRST_ROWS;
    this.paint();
    return () => {
      this.shown = shown;
      this.paint();
    };
  }
}

class TableTabs {
  constructor(section) {
    this.tabs = [...section.querySelectorAll('[role="tab"]')];
    this.panels = this.tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
    this.views = [];
    this.tabs.forEach((tab, at) => {
      tab.addEventListener("click", () => this.select(at));
      tab.addEventListener("keydown", (event) => this.key(event, at));
    });
    this.select(0);
    addEventListener("hashchange", () => this.follow());
    // A link to the place that the address has already changes nothing, but should lead there all the same.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (link) this.follow(link.hash);
    });
    addEventListener("beforeprint", () => this.toPaper());
    addEventListener("afterprint", () => this.fromPaper());
    // In the first quiet moment: the first paint does not wait for it, a jump to what lies below finds the page as long as it stays, and
    // paper, which cannot wait for data, has them.
    (window.requestIdleCallback ?? setTimeout)(() => this.load());
    this.follow();
  }

  /** Read the data, once; build the table of the open tab. */
  async load() {
    this.reading ??= unpackText("tables-data").then((text) => (this.data = JSON.parse(text).map((table) => new TableData(table))));
    await this.reading;
    this.build(this.at);
  }

  build(at) {
    if (this.data) this.views[at] ??= new TableView(this.panels[at], this.data[at]);
  }

  select(at) {
    this.at = at;
    this.tabs.forEach((tab, other) => {
      tab.ariaSelected = String(other === at);
      tab.tabIndex = other === at ? 0 : -1;
      this.panels[other].hidden = other !== at;
    });
    this.build(at);
  }

  key(event, at) {
    const last = this.tabs.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.select(to);
    this.tabs[to].focus();
  }

  /** Open the table that the address, or a link, names. */
  follow(hash = location.hash) {
    const at = this.panels.findIndex((panel) => `#${panel.id}` === hash);
    if (at < 0) return;
    this.select(at);
    this.load();
    this.tabs[at].scrollIntoView({ block: "start" });
  }

  toPaper() {
    this.panels.forEach((panel, at) => {
      this.build(at);
      panel.hidden = false;
    });
    this.back = this.views.map((view) => view.forPaper());
  }

  fromPaper() {
    for (const back of this.back ?? []) back();
    this.select(this.at);
  }
}

if (document.getElementById("tables")) new TableTabs(document.getElementById("tables"));
