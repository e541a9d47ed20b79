"use strict";
// The rest of the page: light and dark, copying, sorting and filtering of tables.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const announceTheme = () => document.dispatchEvent(new Event("themechange"));

document.getElementById("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  root.dataset.theme = isDark ? "light" : "dark";
  announceTheme();
});
prefersDark.addEventListener("change", announceTheme);

// Paper is always light, and what is folded on the screen is open on it.
let beforePrint = null;
window.addEventListener("beforeprint", () => {
  beforePrint = { theme: root.dataset.theme, folded: [...document.querySelectorAll("details:not([open])")] };
  root.dataset.theme = "light";
  for (const details of beforePrint.folded) details.open = true;
  announceTheme();
});
window.addEventListener("afterprint", () => {
  if (!beforePrint) return;
  if (beforePrint.theme) root.dataset.theme = beforePrint.theme;
  else delete root.dataset.theme;
  for (const details of beforePrint.folded) details.open = false;
  announceTheme();
});

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    } catch {
      getSelection().selectAllChildren(code); // no clipboard here: ready for Ctrl+C
    }
  });
}

/** Sort a table's rows by a column: numbers by `data-value`, the largest first; words alphabetically. */
function sortTable(table, column) {
  const header = table.tHead.rows[0].cells[column];
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows];
  const numeric = rows.length > 0 && rows[0].cells[column].dataset.value !== undefined;
  const current = header.getAttribute("aria-sort");
  const order = current ? (current === "descending" ? "ascending" : "descending") : numeric ? "descending" : "ascending";
  const sign = order === "ascending" ? 1 : -1;
  rows.sort((a, b) => sign * (numeric ? value(a) - value(b) : value(a).localeCompare(value(b), "en")));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    cell.querySelector("button").addEventListener("click", () => sortTable(table, column));
  });
}

for (const input of document.querySelectorAll("input[data-filter]")) {
  const rows = [...document.getElementById(input.dataset.filter).tBodies[0].rows];
  const output = document.querySelector(`[data-filtered="${input.dataset.filter}"]`);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.cells[0].title.toLowerCase().includes(wanted);
    output.textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
}
