import assert from "node:assert/strict";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { load, standInPage } from "./load.mjs";

const { bytesOfBase64, unpack, unpackText } = load("data.js");

test("base64 is read with every length of padding", () => {
  for (let length = 0; length < 300; length++) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 89 + length) % 256);
    assert.deepEqual(bytesOfBase64(Buffer.from(bytes).toString("base64")), bytes);
  }
});

test("a packed block is what was packed", async () => {
  const text = "kernel µs 数 \u2028".repeat(20_000);
  standInPage({ block: gzipSync(text).toString("base64") });
  assert.equal(await unpackText("block"), text);
  assert.equal((await unpack("block")).byteLength, Buffer.byteLength(text));
});

test("a block that the page has not is null", async () => {
  standInPage({});
  assert.equal(await unpack("block"), null);
  assert.equal(await unpackText("block"), null);
});
