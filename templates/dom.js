"use strict";
// Making elements, and how wide they are on paper. What comes from a trace is only ever text.

const PAPER_WIDTH = 660; // of a figure in print, in CSS pixels

/** An element with properties and children: other elements, or texts. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
