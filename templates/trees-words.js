"use strict";
// What is said of a node of a tree of calls: figures as text.

/** A share as text: what is tiny but there is never nothing, nor nearly all of it all. */
function shareText(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share < 1 && share >= 0.9995) return ">99.9%";
  return `${(share * 100).toFixed(1)}%`;
}

/**
 * The figures of a node, each a text: its kind, its time, and what share of the whole and of the GPUs' windows that is. `view`: {tree, data,
 * whole (what the root is called), parts (those chosen), isInverted}.
 */
function nodeFigures(i, { tree, data, whole, parts, isInverted }) {
  const total = tree.total[i];
  const figures = [data.kinds[data.frames.kind[tree.frame[i]]]];
  const path = tree.path(i);
  const isOuter = isInverted && path.length > 2;
  figures.push(isOuter ? `${formatDuration(total)} of ${cutAt(nodeName(path[1], tree, data), 60)}` : isInverted && i ? `${formatDuration(total)} in itself` : formatDuration(total));
  if (i) figures.push(`${shareText(total / tree.total[0])} of ${whole}`);
  const window_ = parts.reduce((sum, part) => sum + part.window, 0);
  if (window_) figures.push(`${shareText(total / window_)} of the window${parts.length > 1 ? "s" : ""}`);
  if (!isInverted && i) figures.push(tree.self[i] ? `${formatDuration(tree.self[i])} in itself` : "nothing in itself");
  const steps = parts.every((part) => part.steps) ? parts.reduce((sum, part) => sum + part.steps, 0) : 0;
  if (steps) figures.push(`${formatDuration(total / steps)} a step on average`);
  return figures;
}

function nodeName(i, tree, data) {
  return data.names[data.frames.name[tree.frame[i]]];
}
