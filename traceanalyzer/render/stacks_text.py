"""The heaviest paths of calls as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.names import readable_name
from traceanalyzer.render.lines import WIDTH, page, wrap
from traceanalyzer.result.stacks import HeavyPath, HeavyPaths
from traceanalyzer.result.words.gpu_names import gpu_name
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.lines import cause_words

TITLES = {
    "idle": "idle, by cause and by what the launching thread did",
    "gpu": "compute, by what launched it",
    "communication": "exposed communication, by what launched it",
    "copies": "exposed copies, by what launched them",
    "host": "launching threads, by what they did",
}
LONGEST_NAME, LONGEST_PATH = 60, 2 * WIDTH - 40
_INDENT = " " * 12


def render_stacks(trees: Sequence[HeavyPaths]) -> str:
    """A block a tree. Ends in a newline; says so where there is nothing to show."""
    lines = ["", "HEAVIEST PATHS OF CALLS"]
    for tree in trees:
        lines += ["", *_tree(tree)]
    if not trees:
        lines += ["", "None: there is no GPU work to look at."]
    return page(lines)


def _tree(tree: HeavyPaths) -> list[str]:
    who = gpu_name(tree.rank, tree.device)
    title = f"{who}: {TITLES[tree.tree]}" if who else TITLES[tree.tree]
    lines = wrap(f"{title}: {_time(tree, tree.total_ns)}", "", "  ")
    for path in tree.paths:
        lines += wrap(f"{_time(tree, path.ns)}", f"  {format_share(path.ns / tree.total_ns):>7}  ", _INDENT)
        lines += wrap(_path(tree, path), _INDENT, _INDENT + "  ")
    if tree.rest_ns and tree.paths:
        lines.append(
            f"  {format_share(tree.rest_ns / tree.total_ns):>7}  {format_duration(tree.rest_ns)} in smaller paths"
        )
    elif tree.rest_ns:
        lines.append("  in many small paths")
    return lines


def _time(tree: HeavyPaths, ns: int) -> str:
    """How long, of what, and in each step."""
    window = "the window" if tree.device is not None else "a thread's time"
    share = f", {format_share(ns / tree.window_ns)} of {window}" if tree.window_ns and ns <= tree.window_ns else ""
    step = f", {format_duration(ns * tree.step_ns / tree.window_ns)} a step" if tree.step_ns and tree.window_ns else ""
    return f"{format_duration(ns)}{share}{step}"


def _path(tree: HeavyPaths, path: HeavyPath) -> str:
    """The calls from the outermost to the innermost; of a long path the first and the last ones."""
    names = [_shown(name) for name in path.names]
    if tree.tree == "idle":
        names[0] = cause_words(path.names[0])
    first, rest = names[:1], names[1:]
    kept: list[str] = []
    room = LONGEST_PATH - len(first[0])
    while rest and (len(rest[-1]) + 3 <= room or not kept):
        room -= len(rest[-1]) + 3
        kept.insert(0, rest.pop())
    return " > ".join([*first, *(["…"] if rest else []), *kept])


def _shown(name: str) -> str:
    """A name that fits: of a kernel what a person reads of it."""
    short = readable_name(name, LONGEST_NAME)
    return short if len(short) <= LONGEST_NAME else short[: LONGEST_NAME - 1] + "…"
