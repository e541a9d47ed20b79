"use strict";
// What is where: the thing at a place on the canvas, and the slice that a range is about.

/**
 * What is at a place on the canvas: {kind: "slice", row, i}, {kind: "crowd", row, ...} where several share the pixel, {kind: "point", row,
 * ...} of a counter, {kind: "heading", group}, or null.
 */
function hitAt({ layout, lanes, window: shown }, x, y) {
  if (y < AXIS) return null;
  const at = y + lanes.scrollTop;
  const box = layout.boxes.find((candidate) => at >= candidate.y && at <= candidate.y + candidate.height);
  if (!box) return null;
  if (box.kind === "heading") return { kind: "heading", group: box.group };
  if (x < shown.gutter) return null;
  const { row } = box;
  const time = shown.timeAt(x);
  const [from, to] = [shown.timeAt(Math.floor(x)), shown.timeAt(Math.floor(x) + 1)];
  if (box.lane.kind === "counter") {
    const found = extremesIn(row, from, to);
    return found && { kind: "point", row, time, ...found };
  }
  const i = sliceAt(row, time, 2 / shown.scale);
  if (i < 0) return null;
  const isWide = (row.end[i] - row.start[i]) * shown.scale >= 1;
  const crowd = isWide ? null : crowdIn(row, from, to);
  return crowd ? { kind: "crowd", row, from, to, ...crowd } : { kind: "slice", row, i };
}

/**
 * Of the slices that share a stretch [from, to) of a row: {count, events, time (ns within it), name (that with most time), named (its ns),
 * longest (a slice)}; null when it is only one.
 */
function crowdIn(row, from, to) {
  const [first, next] = slicesIn(row, from, to);
  if (next - first < 2) return null;
  const times = new Map();
  let [longest, events, time] = [first, 0, 0];
  for (let i = first; i < next; i++) {
    const ns = Math.min(row.end[i], to) - Math.max(row.start[i], from);
    times.set(row.name[i], (times.get(row.name[i]) ?? 0) + ns);
    if (row.end[i] - row.start[i] > row.end[longest] - row.start[longest]) longest = i;
    events += eventsOf(row, i);
    time += ns;
  }
  const [name, named] = [...times].reduce((a, b) => (b[1] > a[1] ? b : a));
  return { count: next - first, events, time, name, named, longest };
}

/** The slice of a group that a range is about: the one at its middle that fits it best, if the two share three quarters of what they cover. */
function mainSlice(group, from, to) {
  const fits = group.lanes.flatMap((lane) => (lane.kind === "counter" ? [] : lane.rows)).flatMap((row) => {
    const i = sliceAt(row, (from + to) / 2, 0);
    if (i < 0) return [];
    const shared = Math.min(to, row.end[i]) - Math.max(from, row.start[i]);
    return [{ row, i, fit: shared / (Math.max(to, row.end[i]) - Math.min(from, row.start[i])) }];
  });
  const best = fits.reduce((a, b) => (b.fit > a.fit ? b : a), { fit: 0.75 });
  return best.row ? best : null;
}
