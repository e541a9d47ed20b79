"use strict";
// Hatchings: what tells kinds of time apart without colour. The page declares them once, as SVG patterns.

const HATCH_TILE = 8; // px; all tiles repeat within it
const FINER = 2; // a tile is painted larger than it is shown, for screens with more pixels

/** The hatching of a kind of time: {path, size}, or null without one. */
function hatchOf(css) {
  const pattern = document.getElementById(`hatch-${css}`);
  return pattern && { path: pattern.firstElementChild.getAttribute("d"), size: Number(pattern.getAttribute("width")) };
}

function paintTile({ path, size }, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = HATCH_TILE * scale;
  const ctx = canvas.getContext("2d", { willReadFrequently: true });
  const shape = new Path2D(path);
  for (let x = 0; x < HATCH_TILE; x += size) {
    for (let y = 0; y < HATCH_TILE; y += size) {
      ctx.setTransform(scale, 0, 0, scale, x * scale, y * scale);
      ctx.fill(shape);
    }
  }
  return { canvas, ctx };
}

/** A hatching in a colour as what a canvas fills with. */
function hatchFill(hatch, ink, strength) {
  const { canvas, ctx } = paintTile(hatch, FINER);
  ctx.globalCompositeOperation = "source-in";
  ctx.globalAlpha = strength;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = ink;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  const fill = ctx.createPattern(canvas, "repeat");
  fill.setTransform(new DOMMatrix().scale(1 / FINER));
  return fill;
}

/** The pixels of a tile, line by line: 1 where the hatching is. */
function hatchPixels(hatch) {
  const { data } = paintTile(hatch, 1).ctx.getImageData(0, 0, HATCH_TILE, HATCH_TILE);
  return Uint8Array.from({ length: HATCH_TILE ** 2 }, (_, at) => Number(data[at * 4 + 3] >= 128));
}
