"use strict";
// What is narrower than a pixel: the columns of a row as an image.

const SHADES = 8; // of a column, by how busy it is
const FADED = 0.12; // what a search does not match
const colourTimes = new Float64Array(256);

/**
 * Columns of one row, one pixel wide each, collected as an image of the row and painted at once: thousands of rectangles would take longer.
 * A row of slices has one line of pixels, which is stretched; a ledger has as many as it is high.
 */
class Columns {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.ctx = this.canvas.getContext("2d", { willReadFrequently: true }); // the image stays where it is written
  }

  /** `left` and `top`: where the image will be painted; hatchings go on from one to the next. */
  start(width, height, tints, left, top) {
    this.tints = tints;
    this.left = left;
    this.top = Math.round(top) & (HATCH_TILE - 1);
    this.isUsed = false;
    if (this.image?.width !== width || this.image.height < height) {
      Object.assign(this.canvas, { width, height });
      this.image = this.ctx.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0, 0, width * height);
  }

  /** `shade` from 0 (faded) to SHADES (busy all the time). */
  set(column, colour, shade) {
    this.isUsed = true;
    this.pixels[column] = this.tints.plain[colour * (SHADES + 1) + shade];
  }

  /** The colours of [from, to), which is the column's own time, one above the other, each as high as its share of it. */
  stack(column, height, row, from, to, shade) {
    this.isUsed = true;
    const times = timesWithin(row, from, to, colourTimes);
    let total = 0;
    for (let k = 0; k < row.colours.length; k++) total += times[k];
    const scale = height / total;
    let done = 0;
    let line = height - 1;
    for (const colour of (row.inOrder ??= [...row.colours].sort((a, b) => a - b))) {
      done += times[row.slot[colour]] * scale;
      const pixels = this.tints.pixels[colour];
      const tint = this.tints.plain[colour * (SHADES + 1) + shade];
      const inked = this.tints.inked[colour * (SHADES + 1) + shade];
      const x = (this.left + column) & (HATCH_TILE - 1);
      for (const end = height - Math.round(done); line >= end; line--) {
        const isInked = pixels && pixels[((this.top + line) & (HATCH_TILE - 1)) * HATCH_TILE + x];
        this.pixels[line * this.image.width + column] = isInked ? inked : tint;
      }
    }
  }

  paint(ctx, x, y, height, lines) {
    if (!this.isUsed) return;
    const { width } = this.image;
    this.ctx.putImageData(this.image, 0, 0, 0, 0, width, lines);
    ctx.imageSmoothingEnabled = false;
    ctx.globalAlpha = 1;
    ctx.drawImage(this.canvas, 0, 0, width, lines, x, y, width, height);
  }
}

/**
 * Each colour in each shade as pixels of an image: alpha and colour in one number, as a little-endian machine has them. With `ink` and
 * `strength` the colours of hatchings over them.
 */
function tintsOf(fill, ink, strength = 0) {
  const tints = new Uint32Array(fill.length * (SHADES + 1));
  fill.forEach((css, colour) => {
    const over = ink?.[colour] === "#ffffff" ? 255 : 0;
    const [r, g, b] = [1, 3, 5].map((at) => Math.round(parseInt(css.slice(at, at + 2), 16) * (1 - strength) + over * strength));
    for (let shade = 0; shade <= SHADES; shade++) {
      const alpha = Math.round(255 * (shade ? 0.3 + (0.7 * shade) / SHADES : FADED));
      tints[colour * (SHADES + 1) + shade] = ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
    }
  });
  return tints;
}
