"use strict";
// Making elements. What comes from a trace is only ever text.

/** An element with properties and children: other elements, or texts. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
