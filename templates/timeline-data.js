"use strict";
// The timeline's data: decoding of the inline blob (its layout is described in traceanalyzer/report/timeline.py) and searching in it.

/** Decode the bytes of the blob into {names, colours, labels, home, extent, groups}. */
function decodeTimeline(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  data.shortNames = data.names.map(shortName);
  let offset = 4 + size;

  function read(Type, n) {
    offset += (8 - (offset % 8)) % 8;
    const array = new Type(buffer, offset, n);
    offset += array.byteLength;
    return array;
  }

  for (const group of data.groups) {
    for (const lane of group.lanes) lane.rows = lane.rows.map((row) => decodeRow(row, read));
  }
  return data;
}

/** A name without what would fill a slice before its point: return type, anonymous namespaces, PyTorch's own namespace. */
function shortName(name) {
  return name.replace(/^void |\bat::native::|\(anonymous namespace\)::|<unnamed>::/g, "") || name;
}

/** One row as parallel arrays, sorted, without overlaps; times are whole ns as doubles, since the timeline's origin. */
function decodeRow({ n, wide, merged }, read) {
  const Times = wide ? Float64Array : Uint32Array;
  const deltas = read(Times, n);
  const durations = read(Times, n);
  const name = read(Uint32Array, n);
  const count = merged ? read(Uint32Array, n) : null;
  const colour = read(Uint8Array, n);
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  const covered = new Float64Array(n + 1); // ns covered by all slices before this one
  let time = 0;
  for (let i = 0; i < n; i++) {
    time += deltas[i];
    start[i] = time;
    end[i] = time + durations[i];
    covered[i + 1] = covered[i] + durations[i];
  }
  return { n, start, end, covered, name, count, colour };
}

/** Index of the first element of a sorted array, from `low` on, that is > value (or >= value when `inclusive`). */
function firstAfter(array, value, low = 0, inclusive = false) {
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] > value || (inclusive && array[middle] === value)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The slice of a row at a time, or the nearest one within `reach` ns; -1 when there is none. */
function sliceAt(row, time, reach) {
  const i = firstAfter(row.end, time);
  if (i < row.n && row.start[i] <= time) return i;
  const after = i < row.n ? row.start[i] - time : Infinity;
  const before = i > 0 ? time - row.end[i - 1] : Infinity;
  if (Math.min(after, before) > reach) return -1;
  return after < before ? i : i - 1;
}

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

/** Nanoseconds with three significant digits in the unit that fits. */
function formatDuration(ns) {
  const [unit, size] = UNITS.find(([, u]) => Math.abs(ns) >= u * 0.9995) ?? UNITS[3];
  const value = ns / size;
  const digits = size === 1 ? 0 : Math.max(0, 3 - String(Math.trunc(Math.abs(value))).length);
  return `${value.toFixed(digits)} ${unit}`;
}

/** Whole nanoseconds with separators. */
function formatExact(ns) {
  return `${BigInt(Math.round(ns)).toLocaleString("en-US")} ns`;
}

/** A point in time in the unit that fits `scale`, with as many decimals as a step of the axis needs. */
function formatTick(ns, step, scale = step) {
  const [unit, size] = UNITS.find(([, u]) => scale >= u) ?? UNITS[3];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })} ${unit}`;
}
