"use strict";
// A table of the page as rows in an order: sorting, filtering, figures as text, CSV. Nothing here touches the page.

const CELL_FORMATS = {
  text: () => String,
  count: () => (value) => value.toLocaleString("en-US"),
  duration: durations,
  change: (unit) => signed(durations(unit)),
  bytes: () => (value) => formatAmount(value, "bytes"),
  share: () => (value) => `${fixed(0.01, 1)(value)}%`,
  rate: () => fixed(1, 2),
  ratio: () => (value) => `${fixed(1, value < 0.1 ? 3 : 2)(value)}×`,
};
const NATURAL_ORDER = new Intl.Collator("en", { numeric: true });

function durations(unit) {
  return unit === "ms" ? fixed(1e6, 3) : fixed(1e3, 2);
}

/** A format of amounts, for differences. */
function signed(format) {
  return (value) => (value < 0 ? `−${format(-value)}` : value > 0 ? `+${format(value)}` : format(value));
}

/** Numbers in multiples of `size` with so many decimals; what is tiny but there is never shown as zero, nor zero as a figure that was rounded. */
function fixed(size, decimals) {
  const format = new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const least = 10 ** -decimals;
  return (value) => {
    if (value === 0) return "0";
    return value / size < least / 2 ? `<${format.format(least)}` : format.format(value / size);
  };
}

/** A cell of a CSV file (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe before it. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = /^[\s'"]*[=+\-@＝＋－＠]/.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

class TableData {
  constructor(data) {
    Object.assign(this, data);
    for (const column of this.columns) column.format = CELL_FORMATS[column.kind](column.unit);
    this.length = this.columns[0].values.length;
    this.ascending = this.columns[this.order].kind === "text";
    this.rows = Array.from({ length: this.length }, (_, row) => row);
  }

  /** What the cell shows; "–" where the value is not known. */
  text(column, row) {
    const value = column.values[row];
    if (value === null) return "–";
    return (column.atLeast?.includes(row) ? "≥ " : "") + (column.short?.[row] ?? column.format(value));
  }

  /** The whole value behind the cell's text, or null where that says it all. */
  exact(column, row) {
    const value = column.values[row];
    if (value === null) return null;
    if (column.kind === "text") return column.short?.[row] ? value : null;
    return ["duration", "change", "bytes"].includes(column.kind) ? `${value.toLocaleString("en-US")} ${column.raw}` : null;
  }

  /** Sort by a column; by the same one again, the other way round. Figures begin with the largest, and what is not known comes last. */
  sortBy(at) {
    this.ascending = at === this.order ? !this.ascending : this.columns[at].kind === "text";
    this.order = at;
    this.arrange();
  }

  /** Keep the rows in which a text contains this, in whatever case. */
  filter(wanted) {
    this.wanted = wanted.trim().toLowerCase();
    this.arrange();
  }

  arrange() {
    const { kind, values } = this.columns[this.order];
    const sign = this.ascending ? 1 : -1;
    const compare = kind === "text" ? NATURAL_ORDER.compare : kind === "change" ? (a, b) => Math.abs(a) - Math.abs(b) : (a, b) => a - b;
    this.rows = [];
    for (let row = 0; row < this.length; row++) if (!this.wanted || this.searched(row).includes(this.wanted)) this.rows.push(row);
    this.rows.sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * compare(x, y) || a - b;
    });
  }

  searched(row) {
    this.haystacks ??= [];
    return (this.haystacks[row] ??= this.columns.filter((c) => c.kind === "text").map((c) => c.values[row] ?? "").join("\n").toLowerCase());
  }

  /** All rows that pass the filter, in their order, with raw values; beside figures that can be lower bounds a column that says which are. */
  csv() {
    const header = this.columns.flatMap(({ title, raw, atLeast }) => [raw ? `${title} (${raw})` : title, ...(atLeast ? [`${title} is`] : [])]);
    const cells = (row) => this.columns.flatMap((column) => [column.values[row], ...(column.atLeast ? [boundOf(column, row)] : [])]);
    const lines = this.rows.map((row) => cells(row).map(csvCell).join(","));
    return [header.map(csvCell).join(","), ...lines, ""].join("\r\n");
  }
}

function boundOf({ values, atLeast }, row) {
  if (values[row] === null) return null;
  return atLeast.includes(row) ? "at least" : "exact";
}
