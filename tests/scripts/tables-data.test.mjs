import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { TableData, csvCell, fixed, signed } = load("format.js", "tables-data.js");

const table = () =>
  new TableData({
    order: 1,
    columns: [
      { title: "name", kind: "text", values: ["b10", "b9", "=cmd()", "a,\"x\""] },
      { title: "time", kind: "duration", unit: "ms", raw: "ns", values: [5, null, 7_000_000, 3_000_000], atLeast: [2] },
      { title: "change", kind: "change", unit: "us", raw: "ns", values: [-9000, 4000, null, 0] },
    ],
  });

test("figures begin with the largest, and what is not known comes last both ways", () => {
  const data = table();
  data.arrange();
  assert.deepEqual(data.rows, [2, 3, 0, 1]);
  data.sortBy(1);
  assert.deepEqual(data.rows, [0, 3, 2, 1]);
});

test("names sort as people count, changes by their size", () => {
  const data = table();
  data.sortBy(0);
  assert.ok(data.rows.indexOf(1) < data.rows.indexOf(0));
  data.sortBy(2);
  assert.deepEqual(data.rows, [0, 1, 3, 2]);
});

test("a filter looks into texts in whatever case", () => {
  const data = table();
  data.filter(" B1 ");
  assert.deepEqual(data.rows, [0]);
  data.filter("");
  assert.equal(data.rows.length, 4);
});

test("cells say what is tiny, unknown or a lower bound", () => {
  const [, time, change] = table().columns;
  const data = table();
  assert.equal(data.text(time, 0), "<0.001");
  assert.equal(data.text(time, 1), "–");
  assert.equal(data.text(time, 2), "≥ 7.000");
  assert.equal(data.exact(time, 2), "7,000,000 ns");
  assert.equal(data.text(change, 0), "−9.00");
  assert.equal(data.text(change, 1), "+4.00");
  assert.equal(fixed(1, 2)(0), "0");
  assert.equal(signed(String)(0), "0");
});

test("a file for spreadsheets has raw values, quotes and no formula", () => {
  const data = table();
  data.arrange();
  assert.equal(
    data.csv(),
    "name,time (ns),time is,change (ns)\r\n'=cmd(),7000000,at least,\r\n\"a,\"\"x\"\"\",3000000,exact,0\r\nb10,5,exact,-9000\r\nb9,,,4000\r\n",
  );
  for (const text of ["=1", " +1", "-1", "@x", "'=1", "＝1", "\t=1"]) assert.ok(csvCell(text).replace(/^"/, "").startsWith("'"));
  assert.equal(csvCell(-1), "-1");
});
