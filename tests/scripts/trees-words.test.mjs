import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { shareText } = load("format.js", "trees-words.js");

test("what is tiny is never nothing, nor nearly all of it all", () => {
  const texts = [[0, "0.0%"], [1e-9, "<0.1%"], [0.0005, "0.1%"], [0.5, "50.0%"], [0.9994, "99.9%"], [0.9999, ">99.9%"], [1, "100.0%"]];
  for (const [share, text] of texts) assert.equal(shareText(share), text);
});
