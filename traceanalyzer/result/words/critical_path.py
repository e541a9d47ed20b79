"""What sets the length of a step, in short pieces that text, Markdown and HTML share."""

from __future__ import annotations

import re

from traceanalyzer.names import comparable_name, readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.result.critical_path import CriticalPath, PathLink
from traceanalyzer.result.document import Result
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary import lines
from traceanalyzer.vocabulary.lines import cause_words

LONGEST = 60
_LINE = re.compile(r"(\.\w+):\d+ \(")
"""What names a line in "train.py:12 (step)"."""
LEAST = 0.02
"""A link below this share of the step sets little of it."""
KIND_WORDS = {
    lines.EXPOSED_COMMUNICATION.cause: "communication, waiting included",
    lines.EXPOSED_MEMCPY.cause: "copy",
    lines.EXPOSED_MEMSET.cause: "memset",
    lines.LAUNCH_LATENCY.cause: "launching",
    lines.TURNAROUND.cause: "the hardware's pauses between operations",
    lines.DEPENDENCY.cause: "waiting for another stream or device",
    lines.QUEUED.cause: "launched, but not running, for reasons not recorded",
    lines.UNATTRIBUTED.cause: "idle without a launch record",
    lines.HOST_UNTRACED.cause: "host time in no recorded call or range",
    lines.MEMORY_MANAGEMENT.cause: "allocating and freeing memory",
    lines.SYNCHRONIZATION.cause: "after waiting for the GPU",
    lines.INPUT.cause: "waiting for input",
    lines.PROFILER.cause: "the profiler itself",
}
"""What a link is, where the words of its line in the ledger do not say it."""
IN = {
    line.cause
    for line in (
        *(lines.HOST_WORK, lines.LAUNCH_LATENCY, lines.SYNCHRONIZATION, lines.MEMORY_MANAGEMENT),
        *(lines.INPUT, lines.OS, lines.MPI),
    )
}
"""Kinds of what happens in the place that the name is."""


@dataclass(frozen=True)
class PathRow:
    """A link in words, per step (or in all, without steps). `gain_ns` is what shortening it gives, None where nobody knows; `full` is
    the whole name where `what` cuts it."""

    link: PathLink
    what: str
    ns: int
    share: float
    gain_ns: int | None
    full: str


def path_title(path: CriticalPath) -> str:
    """ "What sets the length of a step"."""
    return f"What sets the length of {'a step' if path.step_count else 'the window'}"


def path_length(path: CriticalPath) -> str:
    """ "3.2 ms a step, the mean of 12"."""
    length = format_duration(per_step(path, path.ns))
    return f"{length} a step, the mean of {format_count(path.step_count)}" if path.step_count > 1 else length


def per_step(path: CriticalPath, ns: int) -> int:
    """The mean over the steps, rounded; all of it without steps."""
    return round(ns / max(path.step_count, 1))


def path_rows(result: Result, most: int) -> list[PathRow]:
    """The links with most time that are worth a word, at most so many."""
    path = result.critical_path
    if path is None or not path.ns:
        return []
    rows = []
    for link in [link for link in path.links if link.ns >= LEAST * path.ns][:most]:
        rows.append(
            PathRow(
                link,
                f"{_whose(result, link)}{link_words(link.kind, link.name)}",
                per_step(path, link.ns),
                link.ns / path.ns,
                None if link.gain_ns is None else per_step(path, link.gain_ns),
                link.name if link.name and readable_name(link.name, LONGEST) != link.name else "",
            )
        )
    return rows


def comparable_link(result: Result, link: PathLink) -> str:
    """What a link is in any run of a program: names without what changes from build to build, and no numbers of lines."""
    name = None if link.name is None else _LINE.sub(r"\1 (", comparable_name(link.name))
    return f"{_whose(result, link)}{link_words(link.kind, name)}"


def _whose(result: Result, link: PathLink) -> str:
    """ "rank 3: " where there are several GPUs."""
    if link.device is None or len(result.devices) < 2:
        return ""
    return f"{gpu_namer(result.devices)(link.rank, link.device)}: "


def link_words(kind: str, name: str | None) -> str:
    """ "host work in train.py:12 (step)", "compute: ampere_sgemm"."""
    words = KIND_WORDS.get(kind) or cause_words(kind)
    if name is None:
        return words
    return f"{words}{' in ' if kind in IN else ': '}{readable_name(name, LONGEST)}"


def left_words(path: CriticalPath, rows: list[PathRow]) -> str | None:
    """What the rows leave out: "and 12 more: 9% of a step"."""
    left = path.ns - sum(row.link.ns for row in rows)
    count = len(path.links) + path.left - len(rows)
    if not count or not left:
        return None
    return f"and {format_count(count)} more: {format_share(left / path.ns)}"
