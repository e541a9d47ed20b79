"use strict";
// Painting of a tree of calls as an icicle: the root on top, below each node what it is made of, as wide as its time. Work is bounded by
// pixels, not by nodes: what is narrower than a pixel is one column, and the next one is found by searching.

const TREE_ROW = 20; // px
const NAMED_FROM = 30; // px of width that a name needs
const LEFT_OUT = 0.22; // how opaque what a search does not match is

const treeColumns = new Columns();

/**
 * How many levels of a tree are worth painting between two places (ns from its left edge), at so many px a ns: below a level whose nodes are
 * all narrower than a pixel nothing is any wider.
 */
function levelsWorthPainting(tree, from, to, scale) {
  const count = tree.levels.length - 1;
  for (let level = 0; level < count; level++) {
    let isWide = false;
    let isThere = false;
    for (let i = firstInView(tree, level, from); i < tree.levels[level + 1] && tree.start[i] < to; ) {
      isThere = true;
      if (tree.total[i] * scale >= 1) {
        isWide = true;
        break;
      }
      i = nextColumn(tree, level, i, from, scale).next;
    }
    if (!isThere) return level;
    if (!isWide) return level + 1;
  }
  return count;
}

function firstInView(tree, level, from) {
  const i = tree.firstFrom(level, from, true) - 1;
  return i >= tree.levels[level] && tree.end(i) > from ? i : i + 1;
}

/** The column of px that a narrow node starts in, and the first node that is not part of it: a later one, or a wide one. */
function nextColumn(tree, level, i, from, scale) {
  const column = Math.max(0, Math.floor((tree.start[i] - from) * scale));
  let next = Math.max(i + 1, tree.firstFrom(level, from + (column + 1) / scale, false, i + 1));
  if (next > i + 1 && tree.total[next - 1] * scale >= 1) next--;
  return { column, next };
}

/**
 * Paint what is in view. `scene`: {tree, frames, labels (a Labels), from and to (ns from the left edge), width, height and scroll (px), levels
 * (how many), colours, hits (running along with the nodes, or null), selected (a node, or -1)}.
 */
function paintTree(ctx, scene) {
  const { width, height, scroll, colours, levels } = scene;
  ctx.fillStyle = colours.paper;
  ctx.fillRect(0, 0, width, height);
  ctx.font = `12px ${colours.sans}`;
  ctx.textBaseline = "middle";
  const last = Math.min(levels, Math.ceil((scroll + height) / TREE_ROW));
  for (let level = Math.floor(scroll / TREE_ROW); level < last; level++) paintLevel(ctx, level, level * TREE_ROW - scroll, scene);
  if (scene.selected >= 0) paintSelected(ctx, scene);
}

function paintLevel(ctx, level, y, scene) {
  const { tree, frames, from, to, width, colours, hits, labels } = scene;
  const scale = width / (to - from);
  const high = TREE_ROW - 1;
  treeColumns.start(Math.ceil(width) + 1, 1, colours.tints, 0, y);
  for (let i = firstInView(tree, level, from); i < tree.levels[level + 1] && tree.start[i] < to; ) {
    const frame = tree.frame[i];
    const colour = frames.colour[frame];
    const wide = tree.total[i] * scale;
    if (wide < 1) {
      const { column, next } = nextColumn(tree, level, i, from, scale);
      const isHit = !hits || hits[next] > hits[i];
      const share = (tree.end(next - 1) - tree.start[i]) * scale;
      treeColumns.set(column, colour, isHit ? Math.min(SHADES, Math.max(1, Math.ceil(share * SHADES))) : 0);
      i = next;
      continue;
    }
    const left = Math.max(0, (tree.start[i] - from) * scale);
    const room = Math.min((tree.end(i) - from) * scale, width) - left;
    const box = room > 3 ? room - 1 : room; // a hairline between neighbours
    const isHit = !hits || hits[i + 1] > hits[i];
    ctx.globalAlpha = isHit ? 1 : LEFT_OUT;
    ctx.fillStyle = colours.fill[colour];
    ctx.fillRect(left, y, box, high);
    const hatching = room >= HATCHED_FROM ? colours.hatch[colour] : null;
    if (hatching) {
      ctx.fillStyle = hatching;
      ctx.fillRect(left, y, box, high);
    }
    ctx.globalAlpha = 1;
    if (room >= NAMED_FROM) paintName(ctx, labels, frames.name[frame], left, y + high / 2 + 0.5, room, isHit ? colours.ink[colour] : colours.text, isHit && hatching && colours.fill[colour]);
    i++;
  }
  treeColumns.paint(ctx, 0, y, high, 1);
  ctx.globalAlpha = 1;
}

function paintSelected(ctx, { tree, selected, from, to, width, scroll, colours }) {
  const scale = width / (to - from);
  const left = Math.max(1, Math.min((tree.start[selected] - from) * scale, width - 3));
  const right = Math.min(width - 1, Math.max((tree.end(selected) - from) * scale, left + 3));
  ctx.strokeStyle = colours.text;
  ctx.lineWidth = 2;
  ctx.strokeRect(left, tree.level[selected] * TREE_ROW - scroll + 0.5, right - left, TREE_ROW - 2);
}
