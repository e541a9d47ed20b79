"""What trees of calls, and the kinds of their nodes, are called, and which colours they have."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import BY_KEY, CODES, Swatch
from traceanalyzer.vocabulary.lines import (
    EXPOSED_COMMUNICATION,
    HOST_UNTRACED,
    IDLE,
    UNATTRIBUTED,
    cause_words,
    idle_line,
)


@dataclass(frozen=True)
class TreeWords:
    """What a tree is called, and what it is made of as a sentence."""

    label: str
    about: str


TREES = {
    "idle": TreeWords(
        "Idle time",
        "Time in which the GPU had nothing to run: by its cause, below that by what stood on the launching thread's stack.",
    ),
    "gpu": TreeWords("GPU time", "Time in which the GPU computed, by the stack that launched the kernels."),
    "communication": TreeWords(
        "Communication", "Communication that no computation hid, by the stack that launched its kernels."
    ),
    "copies": TreeWords("Copies", "Copies and memsets that nothing else hid, by the stack that started them."),
    "host": TreeWords(
        "Host time", "Time of the host's threads, by what stood on their stacks. It runs beside the GPU's time."
    ),
}
"""In the order of the page; a tree that only a later version knows comes last, under its own name."""
OTHER = "(other)"
"""What stands for nodes that are too light for the page."""
KINDS: dict[str, tuple[str, str, str]] = {
    "root": ("tree", "whole", "all of the tree"),
    "cause": (UNATTRIBUTED.name, "cause", "why the GPU was idle"),
    "thread": ("tree", "thread", "a thread of the host"),
    "python": ("python", "Python frame", "a function of the program, in Python"),
    "annotation": ("annotation", "annotation", "a range that the program marked"),
    "operator": ("operator", "operator", "an operator on the host"),
    "call": ("api", "call", "a call of the GPU runtime"),
    "mpi": ("call.mpi", "MPI call", "a call of MPI"),
    "os": ("call.os", "system call", "a call of the operating system"),
    "sample": ("sample", "sampled frame", "a function that samples of the CPU found on the stack"),
    "kernel": ("compute", "kernel", "a function that ran on the GPU"),
    "copy": ("memcpy", "copy", "a copy or memset"),
    "unrecorded": (HOST_UNTRACED.name, "not recorded", "no call or range was recorded then"),
    "other": ("tree", "other", "nodes that are too light to be on the page"),
}
"""For each kind of node the swatch that it has, what it is called, and what that means."""
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
KIND_LABELS = [label for _, label, _ in KINDS.values()]
_CAUSES = {words: cause for cause, line in IDLE.items() for words in (cause, line.words, line.share)}


def tree_words(tree: str) -> TreeWords:
    words = tree.replace("_", " ")
    return TREES.get(tree) or TreeWords(words[:1].upper() + words[1:], "")


def shown_name(name: str, kind: str) -> str:
    """What a node's name is on the page: a cause in words."""
    return cause_words(_CAUSES[name]) if kind == "cause" and name in _CAUSES else name


def colour_of(name: str, kind: str, tree: str) -> int:
    """The code of the swatch of a node: that of the cause, else that of its kind."""
    key = KINDS.get(kind, KINDS["other"])[0]
    if kind == "cause" and idle_line(_CAUSES.get(name)) in BY_KEY:
        key = idle_line(_CAUSES[name])
    elif kind == "kernel" and tree == "communication":
        key = EXPOSED_COMMUNICATION.name
    return CODES[key]


def legend_entry(colour: int, kind: str) -> tuple[str, str, str]:
    """The entry of a legend for nodes of a colour and kind: its colour's CSS name, its label and its meaning."""
    swatch: Swatch = list(BY_KEY.values())[colour]
    _, label, meaning = KINDS[kind]
    if kind == "cause":
        label, meaning = swatch.label, swatch.meaning
    return swatch.css, label[:1].upper() + label[1:], meaning
