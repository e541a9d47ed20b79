"use strict";
// The timeline's data: decoding of the inline blob (its layout is described in traceanalyzer/report/timeline/encoding.py), and what is asked of
// its rows. Questions about a stretch of a row are answered from running sums, so that their cost does not grow with the stretch.

const BLOCK = 64; // slices or points between two entries of a running sum by colour, or of extremes
const ROUGH = 128; // in a colour code: merging has moved the start

/** Decode the bytes of the blob into its header, with decoded rows in the lanes of its groups; `rows` are those of all lanes, in order. */
function decodeTimeline(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let offset = 4 + size;

  function read(Type, n) {
    offset += (8 - (offset % 8)) % 8;
    const array = new Type(buffer, offset, n);
    offset += array.byteLength;
    return array;
  }

  const { kinds, n } = data.index;
  Object.assign(data.index, { name: read(Uint32Array, n), kind: read(Uint8Array, n), count: read(Float64Array, n), time: read(Float64Array, n) });
  data.rows = [];
  for (const group of data.groups) {
    for (const lane of group.lanes) {
      lane.group = group;
      lane.rows = lane.rows.map((head) => {
        const row = lane.kind === "counter" ? decodePoints(head, read) : decodeSlices(head, read);
        Object.assign(row, { lane, group, number: data.rows.length, kind: kinds.indexOf(lane.content ?? lane.label) });
        data.rows.push(row);
        return row;
      });
    }
  }
  const hidden = data.index.hidden.values();
  for (const row of data.rows) {
    const pairs = row.name ? hidden.next().value : 0;
    if (pairs) row.hidden = { slice: runningSum(read(Uint32Array, pairs)), name: read(Uint32Array, pairs) };
  }
  return data;
}

/** One row as parallel arrays, sorted, without overlaps; times are whole ns as doubles, since the timeline's origin. */
function decodeSlices({ n, wide, merged, linked }, read) {
  const Times = wide ? Float64Array : Uint32Array;
  const deltas = read(Times, n);
  const durations = read(Times, n);
  const name = read(Uint32Array, n);
  const count = merged ? read(Uint32Array, n) : null;
  const link = linked ? runningSum(read(Int32Array, n)) : null;
  const code = read(Uint8Array, n);
  const colour = code.map((one) => one & (ROUGH - 1));
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
  return { n, start, end, covered, name, count, link, colour, code, ...sumsByColour(n, colour, durations) };
}

/** One row of a counter: `value[i]` holds from `time[i]` to the next point. `low` and `high` are the extremes of each block. */
function decodePoints({ n, wide }, read) {
  const time = runningSum(read(wide ? Float64Array : Uint32Array, n), Float64Array);
  const value = read(Float64Array, n);
  const blocks = Math.ceil(n / BLOCK);
  const low = new Float64Array(blocks).fill(Infinity);
  const high = new Float64Array(blocks).fill(-Infinity);
  let least = 0;
  let most = 0;
  for (let i = 0; i < n; i++) {
    const block = (i / BLOCK) | 0;
    if (value[i] < low[block]) low[block] = value[i];
    if (value[i] > high[block]) high[block] = value[i];
  }
  for (let block = 0; block < blocks; block++) {
    least = Math.min(least, low[block]);
    most = Math.max(most, high[block]);
  }
  return { n, time, value, low, high, least, most };
}

function runningSum(deltas, Type = deltas.constructor) {
  const sums = new Type(deltas.length);
  let sum = 0;
  for (let i = 0; i < deltas.length; i++) sums[i] = sum += deltas[i];
  return sums;
}

/** The colours of a row, and the ns of each before every block; a row of one colour needs no sums. */
function sumsByColour(n, colour, durations) {
  const slot = new Int8Array(256).fill(-1);
  const colours = [];
  for (let i = 0; i < n; i++) if (slot[colour[i]] < 0) slot[colour[i]] = colours.push(colour[i]) - 1;
  if (colours.length < 2) return { colours, slot, sums: null };
  const width = colours.length;
  const sums = new Float64Array((Math.ceil(n / BLOCK) + 1) * width);
  for (let from = 0, at = 0; from < n; from += BLOCK, at += width) {
    for (let k = 0; k < width; k++) sums[at + width + k] = sums[at + k];
    const to = Math.min(n, from + BLOCK);
    for (let i = from; i < to; i++) sums[at + width + slot[colour[i]]] += durations[i];
  }
  return { colours, slot, sums };
}

/** The ns of each of a row's colours (by their place in `row.colours`) in its slices [first, next), into the array `into`. */
function timesByColour(row, first, next, into) {
  const { colour, slot, sums, start, end, colours } = row;
  const width = colours.length;
  if (width === 1) {
    into[0] = row.covered[next] - row.covered[first];
    return into;
  }
  into.fill(0, 0, width);
  const low = Math.ceil(first / BLOCK);
  const high = Math.floor(next / BLOCK);
  if (low >= high) {
    for (let i = first; i < next; i++) into[slot[colour[i]]] += end[i] - start[i];
    return into;
  }
  for (let k = 0; k < width; k++) into[k] = sums[high * width + k] - sums[low * width + k];
  for (let i = first; i < low * BLOCK; i++) into[slot[colour[i]]] += end[i] - start[i];
  for (let i = high * BLOCK; i < next; i++) into[slot[colour[i]]] += end[i] - start[i];
  return into;
}

/** Index of the first element of a sorted array, from `low` on, that is > value (or >= value when `inclusive`). */
function firstAfter(array, value, low = 0, inclusive = false, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] > value || (inclusive && array[middle] === value)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The same with `inclusive`, for an answer that is expected near `low`. */
function firstFromNear(array, value, low) {
  let step = 1;
  while (low + step < array.length && array[low + step] < value) step *= 2;
  return firstAfter(array, value, low + (step >> 1), true, Math.min(array.length, low + step));
}

/** The slices of a row that touch [from, to), as [first, next). */
function slicesIn(row, from, to) {
  const first = firstAfter(row.end, from);
  return [first, Math.max(first, firstAfter(row.start, to, first, true))];
}

/** The ns of each of a row's colours within [from, to), as `timesByColour` gives them: of slices across an edge only what lies inside. */
function timesWithin(row, from, to, into) {
  const [first, next] = slicesIn(row, from, to);
  timesByColour(row, first, next, into);
  if (next > first) {
    into[row.slot[row.colour[first]]] -= Math.max(0, from - row.start[first]);
    into[row.slot[row.colour[next - 1]]] -= Math.max(0, row.end[next - 1] - to);
  }
  return into;
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

/** Lowest and highest value of a counter while it passes through [from, to); null before its first point and after its last, where nothing is known. */
function extremesIn(row, from, to) {
  const first = Math.max(0, firstAfter(row.time, from) - 1);
  const next = firstAfter(row.time, to, first, true);
  if (next <= first || from > row.time[row.n - 1]) return null;
  let low = Infinity;
  let high = -Infinity;
  const take = (least, most) => {
    if (least < low) low = least;
    if (most > high) high = most;
  };
  for (let i = first; i < next; ) {
    if (i % BLOCK === 0 && i + BLOCK <= next) {
      take(row.low[i / BLOCK], row.high[i / BLOCK]);
      i += BLOCK;
    } else {
      take(row.value[i], row.value[i]);
      i++;
    }
  }
  return { low, high, last: row.value[next - 1] };
}

/** How many events a slice stands for. */
function eventsOf(row, i) {
  return row.count?.[i] ?? 1;
}

/** Whether a slice begins where an event does, and not only near it. */
function isExact(row, i) {
  return row.code[i] < ROUGH;
}

/** The names that a merged slice holds but is not named after, as far as the page knows them. */
function namesInside({ hidden }, i) {
  if (!hidden) return [];
  return [...hidden.name.subarray(firstAfter(hidden.slice, i, 0, true), firstAfter(hidden.slice, i))];
}

/** A name without what would fill a slice before its point: return type, anonymous namespaces, PyTorch's own namespace. */
function shortName(name) {
  return name.replace(/^void |\bat::native::|\(anonymous namespace\)::|<unnamed>::/g, "") || name;
}
