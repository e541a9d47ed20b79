import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { treeOfParts, invertedTree } = load("format.js", "trees-data.js");

// root ─ a ─ b ─ a, and root ─ b; frames: 0 root, 1 a, 2 b
const decoded = { n: 5, parent: [-1, 0, 0, 1, 3], frame: [0, 1, 2, 2, 1] };
const part = (self) => ({ n: self.length, node: self.map((_, at) => at), self });
const first = part([0, 10, 5, 20, 40]);
const second = part([0, 1, 0, 0, 0]);

test("totals are sums of what is within, over the parts chosen", () => {
  const tree = treeOfParts(decoded, [first, second]);
  assert.deepEqual([...tree.total], [76, 71, 5, 60, 40]);
  assert.deepEqual(tree.levels, [0, 1, 3, 4, 5]);
});

test("a node without time is not in the tree", () => {
  const tree = treeOfParts(decoded, [second]);
  assert.deepEqual([...tree.frame], [0, 1]);
  assert.deepEqual([...treeOfParts(decoded, []).total], [0]);
});

test("children lie side by side within their parent, and are found by their place", () => {
  const tree = treeOfParts(decoded, [first]);
  for (let i = 1; i < tree.n; i++) assert.ok(tree.start[i] >= tree.start[tree.parent[i]] && tree.end(i) <= tree.end(tree.parent[i]));
  assert.equal(tree.at(1, 0), 1);
  assert.equal(tree.at(1, 70), 2);
  assert.equal(tree.at(1, 75), -1);
  assert.equal(tree.at(9, 0), -1);
  assert.deepEqual(tree.path(4), [0, 1, 3, 4]);
});

test("what is nested in itself counts once", () => {
  const { count, time } = treeOfParts(decoded, [first]).find([0, 1, 0]);
  assert.equal(count, 2);
  assert.equal(time, 70);
});

test("turned over, the same time is under what spent it itself", () => {
  const tree = treeOfParts(decoded, [first]);
  const turned = invertedTree(tree, 3);
  assert.equal(turned.total[0], tree.total[0]);
  const leaves = [...turned.frame].map((frame, i) => [turned.level[i], frame, turned.total[i]]).filter(([level]) => level === 1);
  assert.deepEqual(leaves, [[1, 1, 50], [1, 2, 25]]);
  assert.equal([...turned.self].reduce((sum, self) => sum + self), 75);
  assert.equal(turned.isCut, false);
});
