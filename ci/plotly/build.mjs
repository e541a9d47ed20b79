// Writes templates/vendored/plotly.min.js: the parts of plotly.js that the charts use, with the notices of all that is in it, and its
// version and checksum beside it. `make plotly` installs what package-lock.json names and runs this.

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "acorn";
import { build } from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const FOLDER = path.join(HERE, "..", "..", "templates", "vendored");

/** The nodes of a syntax tree, parents first. */
function* nodesOf(node) {
  if (!node || typeof node.type !== "string") return;
  yield node;
  for (const child of Object.values(node)) {
    for (const one of Array.isArray(child) ? child : [child]) yield* nodesOf(one);
  }
}

/** A string that is written out: literals, sums of them, and lists of them that are joined. */
function isText(node) {
  if (node.type === "Literal") return typeof node.value === "string";
  if (node.type === "BinaryExpression") return isText(node.left) && isText(node.right);
  if (node.type !== "CallExpression" || node.callee.property?.name !== "join") return false;
  return node.callee.object.type === "ArrayExpression" && node.callee.object.elements.every(isText);
}

/** The source with every attribute's description, which only documentation reads, made empty. */
function withoutDescriptions(code) {
  let rest = code;
  const found = [...nodesOf(parse(code, { ecmaVersion: "latest", sourceType: "script", allowHashBang: true, allowReturnOutsideFunction: true }))];
  const texts = found.filter((node) => node.type === "Property" && node.key.name === "description" && isText(node.value));
  for (const { value } of texts.reverse()) rest = `${rest.slice(0, value.start)}""${rest.slice(value.end)}`;
  return rest;
}

const shortened = {
  name: "without-descriptions",
  setup: ({ onLoad }) =>
    onLoad({ filter: /plotly\.js\/src\/.*\.js$/ }, async ({ path: file }) => ({ contents: withoutDescriptions(await readFile(file, "utf8")), loader: "js" })),
};

/** The notice of one package: its name, version and the text of its licence. */
async function notice(folder) {
  const about = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const name = (await readdir(folder)).find((one) => /^(licen[cs]e|copying)/i.test(one));
  const said = `Licence: ${about.license ?? about.licenses?.[0].type}\nAuthor: ${about.author?.name ?? about.author ?? "not named"}`;
  const text = name ? await readFile(path.join(folder, name), "utf8") : said;
  return `${about.name} ${about.version}\n\n${text.trim().replaceAll("\r\n", "\n").replaceAll("*/", "* /")}`;
}

const { outputFiles, metafile } = await build({
  absWorkingDir: HERE,
  entryPoints: ["entry.cjs"],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  outfile: "plotly.min.js",
  format: "iife",
  globalName: "Plotly",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  lineLimit: 500,
  define: { global: "window", "define.amd": "false" },
  loader: { ".css": "empty" },
  plugins: [shortened],
});
const inside = Object.entries(metafile.outputs["plotly.min.js"].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const folders = new Set(inside.map(([file]) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean));
const notices = await Promise.all([...folders].sort().map((folder) => notice(path.join(HERE, folder))));
const code = `/*!\n${notices.join("\n\n--------\n\n")}\n*/\n${outputFiles.find(({ path: name }) => name.endsWith(".js")).text}`;
const { devDependencies } = JSON.parse(await readFile(path.join(HERE, "package.json"), "utf8"));
const facts = { version: devDependencies["plotly.js"], sha256: createHash("sha256").update(code).digest("hex") };
await mkdir(FOLDER, { recursive: true });
await writeFile(path.join(FOLDER, "plotly.min.js"), code);
await writeFile(path.join(FOLDER, "plotly.json"), `${JSON.stringify(facts, null, 2)}\n`);
if (process.argv.includes("--sizes")) {
  const sizes = inside.map(([file, { bytesInOutput }]) => [bytesInOutput, file]).sort(([a], [b]) => b - a);
  for (const [bytes, file] of sizes.slice(0, 60)) console.log(bytes, file);
}
console.log(`templates/vendored/plotly.min.js: ${code.length} bytes, of ${folders.size} packages`);
