"""The ranks of a job as plain text: who is there, who is late, and what their collectives cost."""

from __future__ import annotations

from traceanalyzer.render.lines import wrap
from traceanalyzer.result.document import Result
from traceanalyzer.result.job import CollectiveStats, Job
from traceanalyzer.result.words.job import (
    absent,
    bandwidth_words,
    collective_words,
    late_sentence,
    replayed,
    shape,
    summary,
    waiting,
    worth_naming,
)
from traceanalyzer.units import format_bytes, format_count, format_duration, format_share

LATE = 2
COLLECTIVES = 5
HEADINGS = ("ranks", "size", "count", "transfer", "bus GB/s", "waiting in all")
WIDTHS = (6, 9, 7, 10, 10, 17)
LABEL = 39


def job_section(result: Result) -> list[str]:
    """The section after an empty line; nothing for a single GPU."""
    if result.job is None:
        return []
    lines = ["", "JOB", *_wrapped("; ".join(summary(result, result.job)))]
    for sentence in (*(one.sentence for one in absent(result, result.job)), waiting(result, result.job)):
        lines += _wrapped(sentence) if sentence else []
    lines += _late(result)
    for sentence in shape(result, result.job):
        lines += _wrapped(sentence)
    sentence = replayed(result, result.job)
    lines += _wrapped(sentence) if sentence else []
    return [*lines, *_collectives(result.job)]


def _wrapped(text: str) -> list[str]:
    return wrap(text, "  ", "  ")


def _late(result: Result) -> list[str]:
    late = worth_naming(result)
    lines = [line for one in late[:LATE] for line in wrap(late_sentence(result, one), "  · ", "    ")]
    left = late[LATE:]
    if left:
        share = format_share(sum(one.waited_share for one in left))
        lines.append(f"  · and {len(left)} more: {share} of all waiting")
    return lines


def _collectives(job: Job) -> list[str]:
    if not job.collectives:
        return []
    shown = job.collectives if len(job.collectives) <= COLLECTIVES else job.collectives[: COLLECTIVES - 1]
    lines = [_row("most exposed collectives", HEADINGS)]
    lines += [_row(collective_words(one), _cells(one)) for one in shown]
    left = len(job.collectives) - len(shown)
    unlisted = f"; {format_count(job.collectives_left)} others are not listed" if job.collectives_left else ""
    return [*lines, f"  and {left} more in --format json{unlisted}"] if left else lines


def _cells(one: CollectiveStats) -> tuple[str, ...]:
    return (
        "-" if one.group_size is None else format_count(one.group_size),
        "-" if not one.bytes else format_bytes(one.bytes),
        format_count(one.count),
        "-" if one.median_transfer_ns is None else format_duration(one.median_transfer_ns),
        bandwidth_words(one, one.bus_bandwidth) or "-",
        "-" if one.wait_ns is None else ("≥ " if one.at_least else "") + format_duration(one.wait_ns),
    )


def _row(label: str, cells: tuple[str, ...]) -> str:
    short = label if len(label) < LABEL else label[: LABEL - 2] + "…"
    return f"  {short:<{LABEL}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
