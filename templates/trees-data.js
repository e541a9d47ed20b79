"use strict";
// Trees of calls: decoding of the inline block (its layout is described in traceanalyzer/report/trees/encoding.py), one tree from the
// times of some parts, the same tree from its leaves, and what is asked of a tree.

const MOST_INVERTED = 250_000; // nodes of a tree from its leaves: what is further out is left off

/** Decode the bytes of the block: its header, with the numbers of `frames` and, in `trees`, structure and times as typed arrays. */
function decodeTrees(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let offset = 4 + size;
  const read = (Type, n) => {
    offset += (8 - (offset % 8)) % 8;
    const array = new Type(buffer, offset, n);
    offset += array.byteLength;
    return array;
  };
  data.frames = { name: read(Uint32Array, data.frames), kind: read(Uint8Array, data.frames), colour: read(Uint8Array, data.frames) };
  for (const tree of data.trees) {
    tree.parent = Int32Array.from(runningTotal(read(Uint32Array, tree.n)));
    tree.parent[0] = -1;
    tree.frame = read(Uint32Array, tree.n);
    for (const part of tree.parts) Object.assign(part, { node: runningTotal(read(Uint32Array, part.n)), self: read(part.wide ? Float64Array : Uint32Array, part.n) });
  }
  return data;
}

function runningTotal(deltas) {
  const totals = new Uint32Array(deltas.length);
  let sum = 0;
  for (let i = 0; i < deltas.length; i++) totals[i] = sum += deltas[i];
  return totals;
}

/**
 * A tree to draw, all of whose nodes have time. Nodes are in level order: `parent` (-1 for the root), `frame`, `self` and `total` (ns),
 * `start` (ns from the left edge), `level`, `first` (each one's first child, 0 where it has none) and `levels` (where each level begins,
 * and the end).
 */
class CallTree {
  constructor(parent, frame, self, total) {
    const n = parent.length;
    Object.assign(this, { n, parent, frame, self, total, start: new Float64Array(n), level: new Uint16Array(n), first: new Uint32Array(n) });
    const free = new Float64Array(n); // where the next child of each begins
    this.levels = [0];
    for (let i = 1; i < n; i++) {
      const p = parent[i];
      this.level[i] = this.level[p] + 1;
      if (this.level[i] === this.levels.length) this.levels.push(i);
      this.first[p] ||= i;
      this.start[i] = free[i] = free[p];
      free[p] += total[i];
    }
    this.levels.push(n);
  }

  end(i) {
    return this.start[i] + this.total[i];
  }

  /** The nodes around one, the root first, and itself last. */
  path(i) {
    const nodes = [];
    for (; i >= 0; i = this.parent[i]) nodes.unshift(i);
    return nodes;
  }

  /** The node of a level at a place (ns from the left edge); -1 where there is none. */
  at(level, place) {
    if (level < 0 || level >= this.levels.length - 1) return -1;
    const i = this.firstFrom(level, place, true) - 1;
    return i >= this.levels[level] && place < this.end(i) ? i : -1;
  }

  /** The first node of a level that begins at a place or later; with `after`, later only. Searched from `low` on. */
  firstFrom(level, place, after = false, low = this.levels[level]) {
    let high = this.levels[level + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle] < place || (after && this.start[middle] === place)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** How many nodes of these frames there are, and how much time is within them; nested ones count once. `hits` runs along with the nodes. */
  find(isFrame) {
    const inside = new Uint8Array(this.n);
    const hits = new Uint32Array(this.n + 1);
    let time = 0;
    for (let i = 0; i < this.n; i++) {
      const isHit = isFrame[this.frame[i]];
      const isWithin = i > 0 && inside[this.parent[i]];
      if (isHit && !isWithin) time += this.total[i];
      inside[i] = isHit || isWithin;
      hits[i + 1] = hits[i] + isHit;
    }
    return { hits, count: hits[this.n], time };
  }
}

/** The tree of some of a decoded tree's parts; a node without time in them is not in it. */
function treeOfParts({ n, parent, frame }, parts) {
  const self = new Float64Array(n);
  for (const part of parts) for (let k = 0; k < part.n; k++) self[part.node[k]] += part.self[k];
  const total = self.slice();
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  const number = new Int32Array(n);
  let left = 0;
  for (let i = 0; i < n; i++) number[i] = total[i] > 0 || i === 0 ? left++ : -1;
  const pick = (Type, value) => {
    const made = new Type(left);
    for (let i = 0; i < n; i++) if (number[i] >= 0) made[number[i]] = value(i);
    return made;
  };
  return new CallTree(
    pick(Int32Array, (i) => (i ? number[parent[i]] : -1)), pick(Uint32Array, (i) => frame[i]), pick(Float64Array, (i) => self[i]), pick(Float64Array, (i) => total[i]),
  );
}

/**
 * The same time from the leaves: below the root what it was spent in itself, below that what was around it, and so on outwards. A level is
 * made from the one before: each of its nodes holds a run of the first tree's nodes, which all move on to their parents and are sorted by
 * what these are.
 */
function invertedTree(tree, frames) {
  const whole = tree.total[0];
  let cursor = new Uint32Array(tree.n); // the node that each leaf has come to
  let leaf = new Uint32Array(tree.n);
  let n = 0;
  for (let i = 0; i < tree.n; i++) {
    if (tree.self[i] > 0) {
      cursor[n] = leaf[n] = i;
      n++;
    }
  }
  const made = { parent: [-1], frame: [tree.frame[0]], self: [0], total: [whole] };
  const slot = new Uint32Array(frames); // of a frame: where it is among those of this node
  const seen = new Int32Array(frames).fill(-1);
  let runs = [[0, 0, n]]; // [node, from, to]
  for (let isLeaf = true; runs.length && made.parent.length < MOST_INVERTED; isLeaf = false) {
    const nextCursor = new Uint32Array(n);
    const nextLeaf = new Uint32Array(n);
    const nextRuns = [];
    let filled = 0;
    for (const [node, from, to] of runs) {
      const groups = []; // {frame, time, count}
      let over = 0; // time of what has nothing more around it
      for (let k = from; k < to; k++) {
        const at = isLeaf ? cursor[k] : tree.parent[cursor[k]];
        const time = tree.self[leaf[k]];
        if (at <= 0 && !(isLeaf && at === 0)) {
          over += time;
          cursor[k] = 0;
          continue;
        }
        cursor[k] = at;
        const frame = tree.frame[at];
        if (seen[frame] !== node) {
          seen[frame] = node;
          slot[frame] = groups.length;
          groups.push({ frame, time: 0, count: 0 });
        }
        const group = groups[slot[frame]];
        group.time += time;
        group.count++;
      }
      made.self[node] = over;
      const inOrder = [...groups].sort((a, b) => b.time - a.time || a.frame - b.frame);
      for (const group of inOrder) {
        nextRuns.push([made.parent.length, filled, filled + group.count]);
        group.free = filled;
        filled += group.count;
        made.parent.push(node);
        made.frame.push(group.frame);
        made.self.push(0);
        made.total.push(group.time);
      }
      for (let k = from; k < to; k++) {
        const at = cursor[k];
        if (at === 0 && !isLeaf) continue;
        const place = groups[slot[tree.frame[at]]].free++;
        nextCursor[place] = at;
        nextLeaf[place] = leaf[k];
      }
    }
    [cursor, leaf, n, runs] = [nextCursor, nextLeaf, filled, nextRuns];
  }
  for (const [node] of runs) made.self[node] = made.total[node]; // what is further out is left off
  const found = new CallTree(Int32Array.from(made.parent), Uint32Array.from(made.frame), Float64Array.from(made.self), Float64Array.from(made.total));
  found.isCut = runs.length > 0;
  return found;
}
