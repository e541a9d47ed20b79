"use strict";
// Finding slices: by a part of their name, and from one to the next.

/** Slices whose name holds a text. `matches` says for each name's number 0 or 1, or is null; each row gets a running count, `hits`. */
class Search {
  constructor(data) {
    this.names = data.names;
    this.rows = data.rows.filter((row) => row.name);
    this.total = this.rows.reduce((sum, row) => sum + row.n, 0);
    this.matches = null;
    this.count = 0;
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.lower ??= this.names.map((name) => name.toLowerCase());
    this.matches = wanted ? Uint8Array.from(this.lower, (name) => Number(name.includes(wanted))) : null;
    this.count = 0;
    if (!this.matches) return;
    for (const row of this.rows) this.count += this.countHits(row);
  }

  countHits(row) {
    const hits = (row.hits ??= new Uint32Array(row.n + 1));
    const { name, n } = row;
    let sum = 0;
    for (let i = 0; i < n; i++) {
      sum += this.matches[name[i]];
      hits[i + 1] = sum;
    }
    return sum;
  }
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
