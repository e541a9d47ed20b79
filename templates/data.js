"use strict";
// What lies packed in the page: blocks of base64 over gzip, read when they are needed.

const SIXES = new Uint8Array(128);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((c, i) => (SIXES[c.charCodeAt(0)] = i));

/** Bytes of a base64 text. A plain loop: several times faster than atob, and pages hold megabytes. */
function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  for (let from = 0, to = 0; from < text.length; from += 4) {
    const word =
      (SIXES[text.charCodeAt(from)] << 18) | (SIXES[text.charCodeAt(from + 1)] << 12) | (SIXES[text.charCodeAt(from + 2)] << 6) | SIXES[text.charCodeAt(from + 3)];
    bytes[to++] = word >> 16;
    bytes[to++] = word >> 8; // beyond the end nothing is written
    bytes[to++] = word;
  }
  return bytes;
}

/** The bytes of a packed block, as an ArrayBuffer; null when the page has no such block. */
async function unpack(id) {
  const block = document.getElementById(id);
  if (!block) return null;
  const unzip = new DecompressionStream("gzip");
  const writer = unzip.writable.getWriter();
  writer.write(bytesOfBase64(block.textContent));
  writer.close();
  return new Response(unzip.readable).arrayBuffer();
}

/** The same as text. */
async function unpackText(id) {
  const bytes = await unpack(id);
  return bytes && new TextDecoder().decode(bytes);
}
