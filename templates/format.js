"use strict";
// Figures as text: durations, points in time, amounts in their unit.

const TIME_UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const BYTE_UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];

/** A value with three significant digits, in the unit that fits; the smallest unit has no decimals. */
function inUnit(value, units) {
  const [unit, size] = units.find(([, u]) => Math.abs(value) >= u * 0.9995) ?? units.at(-1);
  const scaled = value / size;
  return `${scaled.toFixed(size === 1 ? 0 : Math.max(0, 3 - String(Math.trunc(Math.abs(scaled))).length))} ${unit}`;
}

/** Nanoseconds in the unit that fits. */
function formatDuration(ns) {
  return inUnit(ns, TIME_UNITS);
}

/** Whole nanoseconds with separators. */
function formatExact(ns) {
  return `${BigInt(Math.round(ns)).toLocaleString("en-US")} ns`;
}

/** A number with so many decimals, and commas between thousands. Plain code: on a page's first call, Intl costs what a paint does. */
function withCommas(value, decimals) {
  const [whole, fraction] = value.toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${grouped}.${fraction}` : grouped;
}

/** A point in time in the unit that fits `scale`, with as many decimals as a step of the axis needs. */
function formatTick(ns, step, scale = step) {
  const [unit, size] = TIME_UNITS.find(([, u]) => Math.abs(scale) >= u) ?? TIME_UNITS[3];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${withCommas(ns / size, decimals)} ${unit}`;
}

/** The value of a counter with its unit: bytes and nanoseconds in the multiple that fits, others as recorded; all sorts of percent are %. */
function formatAmount(value, unit) {
  if (unit === "bytes" || unit === "B") return inUnit(value, BYTE_UNITS);
  if (unit === "ns") return formatDuration(value);
  const figure = value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(4, String(Math.trunc(value)).length) });
  if (unit.endsWith("%")) return `${figure}%`;
  return unit ? `${figure} ${unit}` : figure;
}

/** A count with its noun: "1 slice", "52,310 slices". */
function formatCount(n, one) {
  return `${n.toLocaleString("en-US")} ${one}${n === 1 ? "" : "s"}`;
}

/** A text of at most `most` letters. */
function cutAt(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
