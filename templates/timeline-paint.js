"use strict";
// Painting of the timeline on a canvas. Work is bounded by pixels, not by events: what is narrower than a pixel is painted as one
// column, and the next column is found by binary search.

const AXIS = 26;
const HEADING = 24;
const ROW = 16;
const TILED_ROW = 24;
const LANE_GAP = 5;

/** Boxes from top to bottom: one heading a group, one box a row. `height` is that of all of them. */
function layOut(groups) {
  const boxes = [];
  let y = AXIS;
  groups.forEach((group, number) => {
    boxes.push({ kind: "heading", group, number, y, height: HEADING, label: group.label });
    y += HEADING;
    for (const lane of group.lanes) {
      lane.rows.forEach((row, i) => {
        const height = lane.tiled ? TILED_ROW : ROW;
        boxes.push({ kind: "row", group, lane, row, y, height, label: i ? "" : lane.label });
        y += height + 1;
      });
      y += LANE_GAP;
    }
  });
  return { boxes, height: y };
}

/** The colours of the page as it is now; `ink` is the better of black and white on each. */
function readColours(data) {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  const fill = data.colours.map((css) => get(`--c-${css}`));
  return { fill, ink: fill.map(inkOn), paper: get("--paper"), sheet: get("--sheet"), text: get("--ink"), dim: get("--dim"), rule: get("--rule"), mark: get("--mark"), sans: get("--sans") };
}

function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#000c" : "#fff";
}

/**
 * Paint everything. `scene`: {layout, colours, shortNames, from, to (ns), width, height, gutter (px), scroll (px), matches (by name
 * number, or null), marked ({from, to} or null), selected ({box, i} or null)}.
 */
function paint(ctx, scene) {
  const { layout, colours, width, height, gutter, scroll } = scene;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, height);
  const plot = { x: gutter, width: width - gutter, from: scene.from, to: scene.to, scale: (width - gutter) / (scene.to - scene.from) };
  const visible = layout.boxes.filter((box) => box.y - scroll < height && box.y + box.height - scroll > AXIS);
  const ticks = axisTicks(plot);
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter, 0, plot.width, height);
  ctx.clip();
  ctx.fillStyle = colours.rule;
  for (const tick of ticks.at) ctx.fillRect(Math.round(gutter + (tick - plot.from) * plot.scale), AXIS, 1, height);
  for (const box of visible) {
    if (box.kind === "row") paintRow(ctx, box, box.y - scroll, plot, scene);
  }
  if (scene.marked) paintMark(ctx, scene.marked, plot, scene);
  ctx.restore();
  for (const box of visible) paintLabel(ctx, box, box.y - scroll, scene);
  paintAxis(ctx, ticks, plot, scene);
}

function paintRow(ctx, box, y, plot, scene) {
  const { row, lane, height } = box;
  const { start, end, covered, colour, name, n } = row;
  const { from, to, scale, x } = plot;
  const { fill, ink } = scene.colours;
  const matches = scene.matches;
  ctx.font = `11px ${scene.colours.sans}`;
  ctx.textBaseline = "middle";
  let i = firstAfter(end, from);
  while (i < n && start[i] < to) {
    const left = x + (start[i] - from) * scale;
    const wide = (end[i] - start[i]) * scale;
    if (wide >= 1) {
      const a = Math.max(left, x - 2);
      const w = Math.min(left + wide, x + plot.width + 2) - a;
      ctx.globalAlpha = matches && !matches[name[i]] ? 0.12 : 1;
      ctx.fillStyle = fill[colour[i]];
      ctx.fillRect(a, y, w > 4 && !lane.tiled ? w - 0.6 : w, height); // a hairline between neighbours
      if (w > 34) paintName(ctx, scene.shortNames[name[i]], a, y + height / 2 + 0.5, w, ink[colour[i]]);
      i++;
      continue;
    }
    // A column one pixel wide: all narrow slices that start in it. Only the last of them can be a wide one: that is left for the next turn.
    const column = Math.floor(left);
    const edge = from + (column + 1 - x) / scale;
    let next = firstAfter(start, edge, i + 1, true);
    if (next > i + 1 && (end[next - 1] - start[next - 1]) * scale >= 1) next--;
    if (lane.tiled) paintShares(ctx, row, i, next, column, y, height, scene);
    else {
      const busy = Math.min(1, (covered[next] - covered[i]) * scale);
      ctx.globalAlpha = matches && !anyMatch(row, i, next, matches) ? 0.08 : 0.3 + 0.7 * busy;
      ctx.fillStyle = fill[colour[i]];
      ctx.fillRect(column, y, 1, height);
    }
    i = next;
  }
  ctx.globalAlpha = 1;
  if (scene.selected && scene.selected.box === box) {
    const s = scene.selected.i;
    ctx.strokeStyle = scene.colours.text;
    ctx.lineWidth = 2;
    ctx.strokeRect(x + (start[s] - from) * scale, y - 0.5, Math.max(2, (end[s] - start[s]) * scale), height + 1);
  }
}

/** One column of a lane that covers its window: the colours one above the other, each as high as its share of the time. */
function paintShares(ctx, row, first, next, column, y, height, scene) {
  const share = new Float64Array(scene.colours.fill.length);
  let all = 0;
  for (let i = first; i < next; i++) {
    share[row.colour[i]] += row.end[i] - row.start[i];
    all += row.end[i] - row.start[i];
  }
  ctx.globalAlpha = scene.matches && !anyMatch(row, first, next, scene.matches) ? 0.12 : 1;
  let bottom = y + height;
  share.forEach((ns, colour) => {
    if (!ns) return;
    const part = (height * ns) / all;
    ctx.fillStyle = scene.colours.fill[colour];
    ctx.fillRect(column, bottom - part, 1, part);
    bottom -= part;
  });
}

function anyMatch(row, first, next, matches) {
  for (let i = first; i < next; i++) if (matches[row.name[i]]) return true;
  return false;
}

function paintName(ctx, name, left, y, width, ink) {
  const room = Math.floor((width - 6) / 6);
  ctx.fillStyle = ink;
  ctx.fillText(name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name, left + 4, y, width - 6);
}

/** What a finding points at: the rest is veiled, its edges are marked. */
function paintMark(ctx, marked, plot, { colours, height }) {
  const a = plot.x + (marked.from - plot.from) * plot.scale;
  const b = plot.x + (marked.to - plot.from) * plot.scale;
  ctx.globalAlpha = 0.55;
  ctx.fillStyle = colours.paper;
  if (a > plot.x) ctx.fillRect(plot.x, AXIS, a - plot.x, height);
  if (b < plot.x + plot.width) ctx.fillRect(b, AXIS, plot.x + plot.width - b, height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colours.mark;
  ctx.fillRect(a - 2, AXIS, 2, height);
  ctx.fillRect(b, AXIS, 2, height);
}

function paintLabel(ctx, box, y, { colours, gutter, width }) {
  ctx.textBaseline = "middle";
  if (box.kind === "heading") {
    ctx.fillStyle = colours.sheet;
    ctx.fillRect(0, y, width, box.height - 4);
    ctx.fillStyle = colours.text;
    ctx.font = `600 12px ${colours.sans}`;
    ctx.fillText(box.label, 10, y + box.height / 2 - 1);
    return;
  }
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, y, gutter, box.height + 1);
  ctx.fillStyle = colours.dim;
  ctx.font = `12px ${colours.sans}`;
  ctx.fillText(box.label, 10, y + box.height / 2 + 0.5, gutter - 14);
}

/** Ticks at round times, at least 110 px apart (64 on a narrow screen). */
function axisTicks({ from, to, scale, width }) {
  const least = (width < 500 ? 64 : 110) / scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least));
  const at = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) at.push(tick);
  return { step, at };
}

function paintAxis(ctx, ticks, plot, { colours, width }) {
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, AXIS);
  ctx.fillStyle = colours.rule;
  ctx.fillRect(0, AXIS - 1, width, 1);
  ctx.font = `11px ${colours.sans}`;
  ctx.textBaseline = "middle";
  for (const tick of ticks.at) {
    const x = Math.round(plot.x + (tick - plot.from) * plot.scale);
    ctx.fillStyle = colours.rule;
    ctx.fillRect(x, 6, 1, AXIS - 6);
    ctx.fillStyle = colours.dim;
    const label = formatTick(tick, ticks.step);
    if (x + 4 + ctx.measureText(label).width < width) ctx.fillText(label, x + 4, AXIS / 2);
  }
}
