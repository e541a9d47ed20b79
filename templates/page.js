"use strict";
// The rest of the page: light and dark, paper, copying, where the reader is, and definitions.

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

/** Tell readers of the screen what a click did. */
const say = (words) => (document.getElementById("said").textContent = words);

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    say("");
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "copied";
      say("Copied");
      setTimeout(() => (button.textContent = "copy"), 1500);
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling); // no clipboard here: ready for Ctrl+C
      say("Not copied: this browser does not allow it. The text is selected.");
    }
  });
}

/** Mark in the navigation where the reader is: the last section that begins above the upper third of the window. */
function markPlace() {
  const links = [...document.querySelectorAll(".bar nav a")];
  const atEnd = scrollY > 0 && scrollY + innerHeight >= root.scrollHeight - 2;
  const begun = (link) => document.querySelector(link.hash)?.getBoundingClientRect().top <= innerHeight / 3;
  const current = (atEnd ? links : links.filter(begun)).at(-1) ?? links[0];
  for (const link of links) {
    if (link === current) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".bar").classList.toggle("away", scrollY > 60);
}
let marking = 0;
addEventListener("scroll", () => (marking ||= requestAnimationFrame(() => ((marking = 0), markPlace()))), { passive: true });
markPlace();

// Escape hides a definition; the next one that is pointed at or focused shows again.
addEventListener("keydown", (event) => root.classList.toggle("tips-off", event.key === "Escape"));
for (const kind of ["pointerover", "focusin"]) {
  addEventListener(kind, (event) => event.target.closest?.(".term") && root.classList.remove("tips-off"));
}
