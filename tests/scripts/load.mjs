// The page's scripts are classic and share one scope: here they share that of this process, in the page's order.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

/** Run scripts of the page; the answer looks up what they declare. */
export function load(...names) {
  for (const name of names) {
    const file = fileURLToPath(new URL(`../../templates/${name}`, import.meta.url));
    vm.runInThisContext(readFileSync(file, "utf8"), { filename: file });
  }
  return new Proxy({}, { get: (_, name) => vm.runInThisContext(name) });
}

/** A page with these texts by the ids of their elements, of which scripts that only read need no more. */
export function standInPage(texts) {
  globalThis.document = { getElementById: (id) => (id in texts ? { textContent: texts[id] } : null) };
}
