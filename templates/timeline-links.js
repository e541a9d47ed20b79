"use strict";
// Launch calls and what they started: a call and its operations on a GPU carry the same number, their link.

const MOST_ARROWS = 100;

/** Which call launched which operations. A place is {row, i}. Built in two passes over the linked rows. */
class Links {
  constructor(rows) {
    const linked = rows.filter((row) => row.link);
    let most = 0;
    for (const { link, n } of linked) for (let i = 0; i < n; i++) if (link[i] > most) most = link[i];
    this.rows = rows;
    this.callRow = new Int32Array(most + 1).fill(-1);
    this.callSlice = new Int32Array(most + 1);
    this.first = new Uint32Array(most + 2); // of the operations of a link in the two arrays after this
    const onGpu = linked.filter((row) => row.group.device);
    for (const { link, n } of onGpu) for (let i = 0; i < n; i++) if (link[i]) this.first[link[i] + 1]++;
    for (let k = 1; k < this.first.length; k++) this.first[k] += this.first[k - 1];
    const free = this.first.slice();
    this.operationRow = new Int32Array(free[most + 1]);
    this.operationSlice = new Int32Array(free[most + 1]);
    for (const row of linked) {
      const { link, n, number } = row;
      for (let i = 0; i < n; i++) {
        if (!link[i]) continue;
        if (row.group.device) {
          this.operationRow[free[link[i]]] = number;
          this.operationSlice[free[link[i]]++] = i;
        } else {
          this.callRow[link[i]] = number;
          this.callSlice[link[i]] = i;
        }
      }
    }
  }

  /** The call that launched an operation, or null. */
  callOf({ row, i }) {
    const link = row.group.device ? row.link?.[i] : 0;
    return link && this.callRow[link] >= 0 ? { row: this.rows[this.callRow[link]], i: this.callSlice[link] } : null;
  }

  /** The operations that a call launched, by start: how many, and at most `most` of them, evenly chosen. */
  operationsOf({ row, i }, most) {
    const link = row.group.device ? 0 : row.link?.[i];
    if (!link) return { count: 0, places: [] };
    const first = this.first[link];
    const count = this.first[link + 1] - first;
    const shown = Math.min(count, most);
    const places = Array.from({ length: count }, (_, k) => ({ row: this.rows[this.operationRow[first + k]], i: this.operationSlice[first + k] }));
    places.sort((a, b) => a.row.start[a.i] - b.row.start[b.i]);
    return { count, places: Array.from({ length: shown }, (_, k) => places[Math.floor((k * count) / shown)]) };
  }

  /** The arrows of a slice, from call to operation, as pairs of places. */
  arrowsOf(place) {
    if (!place) return [];
    const call = this.callOf(place);
    return call ? [[call, place]] : this.operationsOf(place, MOST_ARROWS).places.map((operation) => [place, operation]);
  }
}

/** Curves from where a call is to where its operations start. */
function paintArrows(ctx, { arrows, layout, window: shown, colours, scroll }) {
  const far = (x) => Math.min(Math.max(x, -1e4), 1e5);
  ctx.strokeStyle = ctx.fillStyle = colours.text;
  ctx.lineWidth = 1;
  for (const [call, operation] of arrows) {
    const [top, bottom] = [layout.boxOf(call.row), layout.boxOf(operation.row)];
    const a = far(shown.xOf(Math.min(call.row.end[call.i], operation.row.start[operation.i])));
    const b = far(shown.xOf(operation.row.start[operation.i]));
    const y = top.y + top.height / 2 - scroll;
    const z = bottom.y + bottom.height / 2 - scroll;
    if (Math.max(a, b) < shown.gutter || Math.min(a, b) > shown.width) continue;
    const bend = Math.min(60, Math.max(14, (b - a) / 2));
    ctx.beginPath();
    ctx.moveTo(a, y);
    ctx.bezierCurveTo(a + bend, y, b - bend, z, b, z);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(b, z);
    ctx.lineTo(b - 6, z - 3.5);
    ctx.lineTo(b - 6, z + 3.5);
    ctx.fill();
  }
}
