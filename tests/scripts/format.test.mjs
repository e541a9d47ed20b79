import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { formatDuration, formatExact, withCommas, formatTick, formatAmount, formatCount, cutAt } = load("format.js");

test("durations have three digits in the unit that fits", () => {
  const texts = { 0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 12_345: "12.3 µs", 999_499: "999 µs", 999_700: "1.00 ms", 61_000_000_000: "61.0 s" };
  for (const [ns, text] of Object.entries(texts)) assert.equal(formatDuration(Number(ns)), text);
  assert.equal(formatDuration(-2_500_000), "-2.50 ms");
});

test("whole nanoseconds are exact", () => {
  assert.equal(formatExact(2 ** 53 - 1), "9,007,199,254,740,991 ns");
});

test("commas are between thousands of the whole part only", () => {
  assert.equal(withCommas(1234567.1234567, 5), "1,234,567.12346");
  assert.equal(withCommas(-1234, 0), "-1,234");
  assert.equal(withCommas(999, 1), "999.0");
});

test("ticks have the decimals that tell neighbours apart", () => {
  for (const step of [1, 20, 500, 1e3, 2e4, 5e5, 1e6, 1e8, 1e9]) {
    const texts = Array.from({ length: 8 }, (_, k) => formatTick(1e9 + k * step, step, 2e9));
    assert.equal(new Set(texts).size, 8);
    assert.ok(texts.every((text) => text.endsWith(" s")));
  }
});

test("amounts are in the multiple that fits, and percent is one sign", () => {
  assert.equal(formatAmount(3 * 2 ** 30, "bytes"), "3.00 GiB");
  assert.equal(formatAmount(1500, "ns"), "1.50 µs");
  assert.equal(formatAmount(97.25, "Throughput %"), "97.25%");
  assert.equal(formatAmount(1234567, "W"), "1,234,567 W");
  assert.equal(formatAmount(5, ""), "5");
});

test("one is no plural, and a cut text has its mark", () => {
  assert.equal(formatCount(1, "slice"), "1 slice");
  assert.equal(formatCount(52_310, "slice"), "52,310 slices");
  assert.equal(cutAt("abcdef", 6), "abcdef");
  assert.equal(cutAt("abcdefg", 6), "abcde…");
});
