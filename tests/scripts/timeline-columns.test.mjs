import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { tintsOf, SHADES, FADED } = load("timeline-columns.js");

test("a colour gets darker with its shade, and the last one is the colour itself", () => {
  const tints = tintsOf(["#306fba", "#ffffff"]);
  assert.equal(tints.length, 2 * (SHADES + 1));
  const alphas = Array.from(tints.slice(0, SHADES + 1), (tint) => tint >>> 24);
  assert.equal(alphas[0], Math.round(255 * FADED));
  for (let k = 1; k < alphas.length; k++) assert.ok(alphas[k] > alphas[k - 1]);
  assert.equal(tints[SHADES], 0xffba6f30);
  assert.equal(tints.at(-1), 0xffffffff);
});

test("ink goes over a colour as far as it is strong", () => {
  assert.equal(tintsOf(["#000000"], ["#ffffff"], 0.5)[SHADES], 0xff808080);
  assert.equal(tintsOf(["#ffffff"], ["#000000"], 1)[SHADES], 0xff000000);
});
