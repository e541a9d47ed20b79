// The page's scripts are classic and share one scope: what one of them declares, the others may use.

import { readFileSync, readdirSync } from "node:fs";
import js from "@eslint/js";
import * as espree from "espree";
import globals from "globals";

const FOLDER = new URL("../../templates/", import.meta.url);

/** The names that a script declares for all. */
function declared(code) {
  const namesIn = (node) => (node.type === "VariableDeclaration" ? node.declarations.map(({ id }) => id.name) : node.id ? [node.id.name] : []);
  return espree.parse(code, { ecmaVersion: "latest" }).body.flatMap(namesIn);
}

const scripts = readdirSync(FOLDER).filter((name) => name.endsWith(".js"));
const names = new Map(scripts.map((name) => [name, declared(readFileSync(new URL(name, FOLDER), "utf8"))]));

/** What a script may use but not assign: what the others declare. */
function ofOthers(script) {
  const others = scripts.filter((name) => name !== script);
  return Object.fromEntries(others.flatMap((name) => names.get(name)).map((name) => [name, "readonly"]));
}

const rules = {
  "eqeqeq": "error",
  "no-implicit-globals": "off", // that is how they meet
  "no-redeclare": ["error", { builtinGlobals: false }],
  "no-shadow": "off",
  "no-unused-vars": ["error", { vars: "local", args: "after-used", caughtErrors: "none" }],
  "no-var": "error",
  "prefer-const": ["error", { destructuring: "all" }],
};

export default [
  js.configs.recommended,
  ...scripts.map((name) => ({
    files: [`templates/${name}`],
    languageOptions: { ecmaVersion: "latest", sourceType: "script", globals: { ...globals.browser, ...ofOthers(name) } },
    rules,
  })),
  { files: ["ci/**/*.mjs", "tests/scripts/*.mjs"], languageOptions: { ecmaVersion: "latest", sourceType: "module", globals: globals.node } },
  { files: ["ci/**/*.cjs"], languageOptions: { ecmaVersion: "latest", sourceType: "commonjs", globals: globals.node } },
];
