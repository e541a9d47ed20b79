"use strict";
// Painting of the timeline on a canvas. Work is bounded by pixels, not by events: what is narrower than a pixel is painted as one
// column, and the next column is found by searching.

const ELLIPSIS = 11; // px that one takes
const HATCHED_FROM = 3; // px of width of a slice; a ledger's narrower ones are hatched as columns

/** The colours of the page as it is now; `ink` is the better of black and white on each, so that text has a contrast of 4.5 at least. */
function readColours(data) {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  const fill = data.colours.map((css) => get(`--c-${css}`));
  const ink = data.colours.map((css) => get(`--on-${css}`));
  const strength = Number(get("--hatch-strength"));
  const hatches = data.colours.map(hatchOf);
  const hatch = hatches.map((one, colour) => one && hatchFill(one, ink[colour], strength));
  const tints = { plain: tintsOf(fill), inked: tintsOf(fill, ink, strength), pixels: hatches.map((one) => one && hatchPixels(one)) };
  return { fill, tints, ink, hatch, paper: get("--paper"), sheet: get("--sheet"), text: get("--ink"), dim: get("--dim"), rule: get("--rule"), mark: get("--mark"), link: get("--link"), sans: get("--sans") };
}

/**
 * Paint everything. `scene`: {layout, window (a TimeWindow), colours, labels (a Labels), scroll (px), matches (a name's number to 0 or 1,
 * or null), marked and selection ({from, to} or null), pinned ({row, i} or null), arrows (an array of [from, to] places)}.
 */
function paint(ctx, scene) {
  const { layout, window: { width, height, gutter }, colours, scroll } = scene;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, height);
  const visible = layout.boxes.filter((box) => box.y - scroll < height && box.y + box.height - scroll > AXIS);
  const ticks = axisTicks(scene.window);
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter, 0, width - gutter, height);
  ctx.clip();
  ctx.fillStyle = colours.rule;
  for (const tick of ticks.at) ctx.fillRect(Math.round(scene.window.xOf(tick)), AXIS, 1, height);
  for (const box of visible) {
    if (box.kind !== "row") continue;
    if (box.lane.kind === "counter") paintCounter(ctx, box.row, box.y - scroll, box.height, scene);
    else paintSlices(ctx, box.row, box.y - scroll, box.height, scene);
  }
  if (scene.marked) paintVeil(ctx, scene.marked, scene);
  if (scene.selection) paintSelection(ctx, scene.selection, scene);
  ctx.restore();
  for (const box of visible) paintLabel(ctx, box, box.y - scroll, scene);
  paintOver(ctx, scene);
  paintAxis(ctx, ticks, scene);
}

/** What belongs to the pinned slice: its frame, and the arrows between it and what it launched or was launched by. */
function paintOver(ctx, scene) {
  const { width, height, gutter } = scene.window;
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter, AXIS, width - gutter, height - AXIS);
  ctx.clip();
  paintArrows(ctx, scene);
  if (scene.pinned) paintFrame(ctx, scene.pinned, scene);
  ctx.restore();
}

const rowColumns = new Columns();

/** One row of slices over the window of time of `scene`; `y` and `height` in px. */
function paintSlices(ctx, row, y, height, scene) {
  const { start, end, covered, colour, name, n } = row;
  const { from, to, scale, gutter, width } = scene.window;
  const { fill, ink, hatch } = scene.colours;
  const matches = scene.matches;
  const isLedger = row.lane.kind === "ledger";
  const lines = isLedger ? height : 1;
  rowColumns.start(Math.ceil(width - gutter) + 1, lines, scene.colours.tints, gutter, y);
  ctx.font = `11px ${scene.colours.sans}`;
  ctx.textBaseline = "middle";
  let i = firstAfter(end, from);
  while (i < n && start[i] < to) {
    const left = gutter + (start[i] - from) * scale;
    const wide = (end[i] - start[i]) * scale;
    if (wide >= 1) {
      const a = Math.max(left, gutter - 2);
      const w = Math.min(left + wide, width + 2) - a;
      ctx.globalAlpha = matches && row.hits[i + 1] === row.hits[i] ? FADED : 1;
      ctx.fillStyle = fill[colour[i]];
      const room = w > 4 && !isLedger ? w - 0.6 : w; // a hairline between neighbours
      ctx.fillRect(a, y, room, height);
      const hatching = w >= HATCHED_FROM ? hatch[colour[i]] : null;
      if (hatching) {
        ctx.fillStyle = hatching;
        ctx.fillRect(a, y, room, height);
      }
      if (w > 34 && scene.labels) paintName(ctx, scene.labels, name[i], Math.max(a, gutter), y + height / 2 + 0.5, Math.min(a + w, width) - Math.max(a, gutter), ink[colour[i]], hatching && fill[colour[i]]);
      i++;
      continue;
    }
    // A column one pixel wide: all narrow slices that start in it. Only the last of them can be a wide one: that is left for the next turn.
    const column = Math.max(0, Math.floor(left - gutter));
    const until = from + (column + 1) / scale;
    let next = firstFromNear(start, until, i + 1);
    if (next > i + 1 && (end[next - 1] - start[next - 1]) * scale >= 1) next--;
    const isMatch = !matches || row.hits[next] > row.hits[i];
    if (isLedger) rowColumns.stack(column, height, row, from + column / scale, until, isMatch ? SHADES : 0);
    else {
      const busy = Math.min(SHADES, Math.max(1, Math.ceil((covered[next] - covered[i]) * scale * SHADES)));
      rowColumns.set(column, mainColour(row, i, next), isMatch ? busy : 0);
    }
    i = next;
  }
  rowColumns.paint(ctx, gutter, y, height, lines);
  ctx.globalAlpha = 1;
}

/** The colour that the slices [first, next) of a row spend most time in. */
function mainColour(row, first, next) {
  if (next === first + 1 || row.colours.length === 1) return row.colour[first];
  const times = timesByColour(row, first, next, colourTimes);
  let main = 0;
  for (let k = 1; k < row.colours.length; k++) if (times[k] > times[main]) main = k;
  return row.colours[main];
}

/** A counter as a filled step line from zero, or from its least value when that is below. */
function paintCounter(ctx, row, y, height, scene) {
  const { window: shown, colours } = scene;
  const size = (height - 2) / (row.most - row.least || 1);
  const yOf = (value) => y + height - 1 - (value - row.least) * size;
  ctx.fillStyle = colours.sheet;
  ctx.fillRect(shown.gutter, y, shown.width - shown.gutter, height);
  ctx.fillStyle = colours.link;
  let before = null;
  for (let x = shown.gutter; x < shown.width; x++) {
    const found = extremesIn(row, shown.timeAt(x), shown.timeAt(x + 1));
    if (!found) continue;
    const top = yOf(found.high);
    ctx.globalAlpha = 0.28;
    ctx.fillRect(x, top, 1, yOf(Math.max(row.least, 0)) - top);
    ctx.globalAlpha = 1;
    const low = before === null ? found.low : Math.min(found.low, before);
    ctx.fillRect(x, top - 0.75, 1, yOf(low) - top + 1.5);
    before = found.last;
  }
}

/** Short names, and how wide they are painted: measured once each. */
class Labels {
  constructor(names) {
    this.names = names;
    this.short = new Array(names.length);
    this.widths = new Float32Array(names.length);
  }

  of(number) {
    return (this.short[number] ??= shortName(this.names[number]));
  }

  widthOf(ctx, number) {
    return (this.widths[number] ||= ctx.measureText(this.of(number)).width);
  }
}

/** A name at its slice's left end; `ground` is the colour to put behind it where the slice is hatched. */
function paintName(ctx, labels, number, left, y, room, ink, ground) {
  const name = labels.of(number);
  const text = cut(name, labels.widthOf(ctx, number), room - 8);
  if (text.length < 3) return;
  if (ground) {
    ctx.fillStyle = ground;
    ctx.fillRect(left + 1, y - 7, Math.min(labels.widthOf(ctx, number), room - 8) + 6, 13);
  }
  ctx.fillStyle = ink;
  ctx.fillText(text, left + 4, y);
}

/** What a finding points at: the rest is veiled, its edges are marked. */
function paintVeil(ctx, { from, to }, { window: shown, colours }) {
  const a = shown.xOf(from);
  const b = shown.xOf(to);
  ctx.globalAlpha = 0.55;
  ctx.fillStyle = colours.paper;
  if (a > shown.gutter) ctx.fillRect(shown.gutter, AXIS, a - shown.gutter, shown.height);
  if (b < shown.width) ctx.fillRect(b, AXIS, shown.width - b, shown.height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colours.mark;
  ctx.fillRect(a - 2, AXIS, 2, shown.height);
  ctx.fillRect(b, AXIS, 2, shown.height);
}

/** A selected range: tinted, with its edges. */
function paintSelection(ctx, { from, to }, { window: shown, colours }) {
  const a = Math.max(shown.gutter - 2, shown.xOf(from));
  const b = Math.min(shown.width + 2, shown.xOf(to));
  if (b < a) return;
  ctx.fillStyle = colours.link;
  ctx.globalAlpha = 0.16;
  ctx.fillRect(a, AXIS, b - a, shown.height);
  ctx.globalAlpha = 1;
  ctx.fillRect(a - 1, AXIS, 1, shown.height);
  ctx.fillRect(b, AXIS, 1, shown.height);
}

function paintFrame(ctx, { row, i }, { layout, window: shown, colours, scroll }) {
  const box = layout.boxOf(row);
  if (box.kind === "heading") return;
  const a = Math.max(shown.gutter - 4, shown.xOf(row.start[i]));
  const b = Math.min(shown.width + 4, shown.xOf(row.end[i]));
  ctx.strokeStyle = colours.text;
  ctx.lineWidth = 2;
  if (b > a - 2) ctx.strokeRect(a, box.y - scroll - 0.5, Math.max(2, b - a), box.height + 1);
}

function paintLabel(ctx, box, y, { colours, window: { gutter, width } }) {
  ctx.textBaseline = "middle";
  if (box.kind === "heading") {
    ctx.fillStyle = colours.sheet;
    ctx.fillRect(0, y, width, box.height - 4);
    ctx.fillStyle = colours.text;
    ctx.font = `600 12px ${colours.sans}`;
    ctx.fillText(`${box.isFolded ? "▸" : "▾"} ${box.label}`, 10, y + box.height / 2 - 1);
    return;
  }
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, y, gutter, box.height + 1);
  ctx.fillStyle = colours.dim;
  ctx.font = `12px ${colours.sans}`;
  const isCounter = box.lane.kind === "counter";
  const write = (text, at) => ctx.fillText(cut(text, ctx.measureText(text).width, gutter - 14), 10, y + at);
  write(box.label, isCounter ? 10 : box.height / 2 + 0.5);
  if (!isCounter) return;
  ctx.font = `11px ${colours.sans}`;
  write(`max ${formatAmount(box.row.most, box.lane.unit)}`, 25);
}

/** A text that is `width` px wide, cut to the room there is. */
function cut(text, width, room) {
  return width <= room ? text : `${text.slice(0, Math.max(0, Math.floor((text.length * (room - ELLIPSIS)) / width)))}…`;
}

/** Ticks at round times, at least 110 px apart (64 on a narrow screen). */
function axisTicks({ from, to, scale, width }) {
  const least = (width < 640 ? 64 : 110) / scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least));
  const at = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) at.push(tick);
  return { step, at };
}

function paintAxis(ctx, ticks, { colours, window: shown }) {
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, shown.width, AXIS);
  ctx.fillStyle = colours.rule;
  ctx.fillRect(0, AXIS - 1, shown.width, 1);
  ctx.font = `11px ${colours.sans}`;
  ctx.textBaseline = "middle";
  for (const tick of ticks.at) {
    const x = Math.round(shown.xOf(tick));
    ctx.fillStyle = colours.rule;
    ctx.fillRect(x, 6, 1, AXIS - 6);
    ctx.fillStyle = colours.dim;
    const label = formatTick(tick, ticks.step);
    if (x + 4 + ctx.measureText(label).width < shown.width) ctx.fillText(label, x + 4, AXIS / 2);
  }
}
