"use strict";
// Keys of the timeline. Some work wherever the reader is, most while one of its controls or its lanes has the focus; none while a text is
// typed, with Ctrl, Alt or Meta, or under a dialog.

/** What the keys do, by where they do it; letters without regard to case. */
function keyActions(timeline) {
  const zoomAtPointer = (factor) => timeline.zoom(factor, timeline.pointedTime());
  const everywhere = {
    "/": () => focusField(document.getElementById("find")),
    "?": () => timeline.toggleHelp(),
    Escape: () => timeline.letGo(),
  };
  const inSection = {
    w: () => zoomAtPointer(0.7), s: () => zoomAtPointer(1 / 0.7),
    "+": () => timeline.zoom(0.7), "=": () => timeline.zoom(0.7), "-": () => timeline.zoom(1 / 0.7),
    a: () => timeline.move(-0.15), d: () => timeline.move(0.15),
    0: () => timeline.home(),
    f: () => timeline.zoomToPinned(), m: () => timeline.selectView(),
    "[": () => timeline.goToSameName(-1), "]": () => timeline.goToSameName(1),
  };
  const onLanes = {
    ArrowLeft: () => timeline.move(-0.15), ArrowRight: () => timeline.move(0.15),
    ArrowUp: () => (timeline.lanes.scrollTop -= 40), ArrowDown: () => (timeline.lanes.scrollTop += 40),
    Home: () => timeline.home(),
  };
  return { everywhere, inSection, onLanes };
}

function listenToKeys(timeline) {
  const { everywhere, inSection, onLanes } = keyActions(timeline);
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.defaultPrevented || isTyping(event) || isCommand(event) || document.querySelector("dialog[open]")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = everywhere[key] || (timeline.section.contains(target) && inSection[key]) || (target === timeline.lanes && onLanes[key]);
    if (!act || (key === "Escape" && isDefinitionShown())) return;
    event.preventDefault();
    const panel = target.closest?.("#pinned, #selection");
    act();
    if (panel?.hidden) timeline.lanes.focus({ preventScroll: true }); // what had the focus is gone
  });
}

/** Whether a key becomes a letter somewhere. */
function isTyping({ target, isComposing }) {
  return isComposing || Boolean(target.closest?.("input, textarea, [contenteditable]"));
}

/** Whether a key is one of the browser's or the system's. AltGr, which some keyboards need for [ and /, looks like Ctrl and Alt. */
function isCommand(event) {
  return event.metaKey || ((event.ctrlKey || event.altKey) && !event.getModifierState("AltGraph"));
}

/** Escape takes a definition away first (page.js). */
function isDefinitionShown() {
  return !document.documentElement.classList.contains("tips-off") && Boolean(document.querySelector(".term:is(:hover, :focus-visible)"));
}

function focusField(field) {
  field.focus();
  field.select();
}

// Escape empties a search field, and leaves it when it is empty.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (event.key !== "Escape" || event.isComposing || !field.matches?.('input[type="search"]')) return;
  event.preventDefault();
  if (field.value) {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (field.id === "find") document.getElementById("lanes").focus({ preventScroll: true });
  else field.blur();
});
