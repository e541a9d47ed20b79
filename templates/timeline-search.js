"use strict";
// Finding slices: by a part of their name, and from one to the next.

/**
 * Events whose name holds a text, from the index of all names: `found` has an entry for each name and kind of lane, the longest total first,
 * {name (its number), kind, count, time, single (how many are slices of their own)}. `count` and `single` are those of all; each row gets a running
 * count, `hits`, of slices that are or hold a match.
 */
class Search {
  constructor(data) {
    this.names = data.names;
    this.index = data.index;
    this.rows = data.rows.filter((row) => row.name);
    this.matches = null; // for each name's number 0 or 1; null: nothing is searched for
    this.found = [];
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.lower ??= this.names.map((name) => name.toLowerCase());
    this.matches = wanted ? Uint8Array.from(this.lower, (name) => Number(name.includes(wanted))) : null;
    this.found = this.matches ? this.entries() : [];
    this.count = this.found.reduce((sum, entry) => sum + entry.count, 0);
    this.single = this.found.reduce((sum, entry) => sum + entry.single, 0);
    if (this.count) for (const row of this.rows) this.mark(row);
    else for (const row of this.rows) (row.hits ??= new Uint32Array(row.n + 1)).fill(0);
  }

  entries() {
    const { name, kind, count, time } = this.index;
    this.singles ??= this.countSingles();
    const found = [];
    for (let k = 0; k < name.length; k++)
      if (this.matches[name[k]]) found.push({ name: name[k], kind: kind[k], count: count[k], time: time[k], single: this.singles[kind[k]][name[k]] });
    return found.sort((a, b) => b.time - a.time || b.count - a.count);
  }

  /** For each kind of lane, by name, how many events are slices of their own. */
  countSingles() {
    const singles = this.index.kinds.map(() => new Uint32Array(this.names.length));
    for (const row of this.rows) {
      const of = singles[row.kind];
      for (let i = 0; i < row.n; i++) if (eventsOf(row, i) === 1) of[row.name[i]]++;
    }
    return singles;
  }

  mark(row) {
    const hits = (row.hits ??= new Uint32Array(row.n + 1));
    const { name, n, hidden } = row;
    const { matches } = this;
    let sum = 0;
    for (let i = 0, k = 0; i < n; i++) {
      let isHit = matches[name[i]];
      for (; hidden && hidden.slice[k] === i; k++) isHit |= matches[hidden.name[k]];
      hits[i + 1] = sum += isHit;
    }
  }
}

/** Whether a slice has this name, or is a merged one that holds it. */
function hasName(row, i, name) {
  return row.name[i] === name || namesInside(row, i).includes(name);
}

/**
 * The next slice of these rows for which `wanted(row, i)` holds: the first after `place` in the order of starts, then of rows, or the last
 * before it when `step` is -1. From a time alone: {time}. Null when there is none.
 */
function nextSlice(rows, place, step, wanted) {
  const time = place.row ? place.row.start[place.i] : place.time;
  const number = place.row ? place.row.number : step > 0 ? -1 : Infinity;
  let best = null;
  for (const row of rows) {
    // Of slices that start together, those of later rows come after.
    const after = firstAfter(row.start, time, 0, row.number > number);
    let i = step > 0 ? after : after - 1;
    if (row.number === number) i = place.i + step;
    while (i >= 0 && i < row.n && !wanted(row, i)) {
      i += step;
      if (best && (row.start[i] - best.row.start[best.i]) * step > 0) i = -1; // another row has a nearer one
    }
    if (!(i >= 0 && i < row.n)) continue;
    const ahead = best ? (row.start[i] - best.row.start[best.i]) * step : -1;
    if (ahead < 0 || (ahead === 0 && step < 0)) best = { row, i };
  }
  return best;
}
