"""What the result says of a job, in short clauses that text and HTML share. Durations are written as in all texts of the result."""

from __future__ import annotations

from typing import Literal

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import late_ranks
from traceanalyzer.result.job import Clock, CollectiveStats, Job, LateRank, Parallelism
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.result.words.job_shape import (
    axes_sentence,
    hosts_sentence,
    jitter_words,
    persistence,
    pipeline_sentence,
)
from traceanalyzer.units import format_bytes, format_count, format_duration, format_share
from traceanalyzer.vocabulary.lines import cause_of_line, cause_words, is_idle, line_words

MOST_PARALLELISMS = 4
LEAST_MATCHED = 0.5
"""Below this share matched nobody is said to be late; as where that is decided."""
HARDLY_WAITING = 0.01
"""Below this share of all GPUs' time nobody need be named: ranks always wait a little for one another."""
WELL_MATCHED = 0.95
"""Above this share matched of the communication time that all ranks recorded, the rest is not worth a word."""
WORTH_SAYING, MOST_CHANGES = 0.03, 4
"""What shortens a step by less than this share is not worth a word, and of the rest so many are said."""
MUCH = 0.05
"""From this share of all communication time on it is said that nothing can be told of it."""


def summary(result: Result, job: Job) -> list[str]:
    """Clauses: how many ranks, how they work together, how well their clocks agree, and what of their communication was matched."""
    clauses = [_size(job, len(_without_gpu_work(result, job))), *map(_parallelism, job.parallelism[:MOST_PARALLELISMS])]
    if len(result.inputs) > 1:
        clauses += _clocks(job.clocks)
    return clauses + _matching(job)


@dataclass(frozen=True)
class Absence:
    """What is not there of a job, or not once: its `kind` in a word, and a sentence."""

    kind: Literal["missing", "no GPU work", "doubled"]
    sentence: str


def absent(result: Result, job: Job) -> list[Absence]:
    """Ranks that are missing, without GPU work or recorded twice."""
    said = []
    if job.missing_ranks:
        they = "it" if len(job.missing_ranks) == 1 else "they"
        said.append(Absence("missing", f"No recording of {_ranks(job.missing_ranks)}: what {they} did is not known."))
    if silent := _without_gpu_work(result, job):
        sentence = f"No GPU work was recorded of {_ranks(silent)}: who waited for whom is not known there."
        said.append(Absence("no GPU work", sentence))
    if job.doubled_ranks:
        said.append(Absence("doubled", f"Recorded more than once: {_ranks(job.doubled_ranks)}."))
    return said


def waiting(result: Result, job: Job) -> str | None:
    """One sentence on how long ranks wait for late ones, None where there is nothing to tell it from."""
    windows = sum(device.window_ns for device in result.devices)
    if job.gpu_count < 2 or not windows or not job.matched_share:
        return None
    share = sum(late.waited_ns for late in job.late_ranks) / windows
    if job.matched_share < LEAST_MATCHED:
        return "Which rank waits for which is not told: too little of their communication could be matched."
    if share < HARDLY_WAITING and not job.at_least:
        return f"Ranks hardly wait for one another: {format_share(share)} of the GPUs' time."
    if share < HARDLY_WAITING:
        hardly = f"{format_share(share)} of the GPUs' time"
        return f"The recorded ranks hardly wait for one another, {hardly}; for the others they may."
    least = "at least " if job.at_least else ""
    sentence = f"Ranks wait for late ones {least}{format_share(share)} of the GPUs' time"
    if job.at_least:
        sentence += " (waiting for ranks that were not recorded is not in it)"
    in_turn = "" if late_ranks(result) else f"; none stands out: {len(job.late_ranks)} GPUs are late in turn"
    return f"{sentence}{jitter_words(job.lateness) or in_turn}."


def shape(result: Result, job: Job) -> list[str]:
    """Sentences on where time is lost and whether that is anyone's doing, as far as there is something to say."""
    late = persistence(result, job) if worth_naming(result) else []
    return [*late, *filter(None, (axes_sentence(job), pipeline_sentence(result, job), hosts_sentence(job)))]


def replayed(result: Result, job: Job) -> str | None:
    """One sentence on what a step of the job would take, played again; None where nothing would make it much shorter."""
    played = job.replay
    if played is None:
        return None
    name = gpu_namer(result.devices)
    # Where ranks are late by chance, none of them is a cause.
    alone = [] if job.lateness and job.lateness.is_jitter else played.without
    would = [(one.step_ns, f"had nobody waited for {name(one.rank, one.device)}") for one in alone]
    would += [
        (step, words)
        for step, words in (
            (played.balanced_step_ns, "with equal work on all ranks"),
            (played.overlapped_step_ns, "had no GPU waited for a transfer"),
            (played.half_volume_step_ns, "with half the volume to transfer"),
        )
        if step is not None
    ]
    shorter = sorted((step, words) for step, words in would if step <= (1 - WORTH_SAYING) * played.step_ns)
    if not shorter:
        return None
    what = "a step" if played.per_step else "what was recorded"
    changes = [f"{format_duration(step)} {words}" for step, words in shorter[:MOST_CHANGES]]
    return f"Played again as one timeline, {what} takes {format_duration(played.step_ns)}; it would take {', '.join(changes)}."


def worth_naming(result: Result) -> list[LateRank]:
    """The late ranks that stand out, as long as there is waiting to speak of that is not jitter."""
    if result.job and result.job.lateness and result.job.lateness.is_jitter:
        return []
    windows = sum(device.window_ns for device in result.devices)
    waited = sum(late.waited_ns for late in result.job.late_ranks) if result.job else 0
    return late_ranks(result) if windows and waited >= HARDLY_WAITING * windows else []


def late_sentence(result: Result, late: LateRank) -> str:
    """Who is late, how often, how much that costs, and why."""
    name = gpu_namer(result.devices)(late.rank, late.device)
    count = "collective" if late.collective_count == 1 else "collectives"
    often = f"last to {format_count(late.late_count)} of {format_count(late.collective_count)} {count}"
    typical, most = format_duration(late.median_late_ns), format_duration(late.max_late_ns)
    how_late = f"{most} late" if typical == most else f"typically {typical} late, at most {most}"
    cost = f"others wait {format_duration(late.waited_ns)} for it, {format_share(late.waited_share)} of all waiting"
    return f"{name} comes {often}, {how_late}; {cost}. It {why_late(late)}."


def why_late(late: LateRank) -> str:
    """Why a rank is late, after "it": what it does more than others, or else what it does meanwhile."""
    if late.why:
        return late.why
    if late.line is None:
        return "is meanwhile in no call or range that was recorded"
    if is_idle(late.line):
        return f"stands idle meanwhile ({cause_words(cause_of_line(late.line))})"
    return f"is busy meanwhile ({line_words(late.line)})"


def collective_words(one: CollectiveStats) -> str:
    """For example "all-reduce, data parallel"."""
    return one.kind if one.parallelism is None else f"{one.kind}, {one.parallelism}"


def bandwidth_words(one: CollectiveStats, value: float | None) -> str | None:
    """One of its bandwidths in GB/s, to three digits; where waiting could not be told from transfer it is a lower bound."""
    if value is None:
        return None
    return ("≥ " if one.wait_ns is None or one.at_least else "") + (f"{value:,.0f}" if value >= 100 else f"{value:.3g}")


def _matching(job: Job) -> list[str]:
    """What was matched of what all ranks recorded, and of what more nothing can be told."""
    said = []
    if job.matched_share is None:
        said += ["none of the communication time could be matched between ranks"] if job.collectives else []
    elif job.matched_share < WELL_MATCHED:
        share = format_share(job.matched_share) if job.matched_share else "none"
        said.append(f"{share} of the communication time could be matched between ranks")
    if job.matched_share is not None and job.outside_share >= MUCH:
        said.append(f"{format_share(job.outside_share)} of it lies outside what all ranks of its groups recorded")
    if job.matched_share and job.matched_share >= LEAST_MATCHED and job.untold_share >= MUCH:
        share = format_share(job.untold_share)
        said.append(f"{share} of it is the first that ranks did together, of which no waiting is told")
    return said


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {rank_list(ranks)}"


def _without_gpu_work(result: Result, job: Job) -> list[int]:
    return sorted(
        {one.rank for one in result.inputs if one.rank is not None}
        - {rank for one in result.devices for rank in one.used_by}
    )


def _size(job: Job, silent: int) -> str:
    gpus = f"{format_count(job.gpu_count)} GPU{'s' if job.gpu_count != 1 else ''}"
    if not job.ranks:
        size = f" of a job of {format_count(job.world_size)} ranks" if job.world_size else ""
        return f"{gpus}{size}, ranks not recorded"
    known = job.world_size is not None and job.world_size >= len(job.ranks)
    of = f" of {format_count(job.world_size)}" if known and job.world_size else ""
    ranks = f"{format_count(len(job.ranks))}{of} rank{'s' if (job.world_size or len(job.ranks)) != 1 else ''}"
    if job.world_size and not known:
        ranks += f", though the job is said to have {format_count(job.world_size)}"
    return ranks if job.gpu_count + silent == len(job.ranks) else f"{ranks} on {gpus}"


def _parallelism(one: Parallelism) -> str:
    what = [" and ".join(one.collectives)] if one.collectives else []
    what += [f"{format_bytes(one.bytes_per_step)} a step"] if one.bytes_per_step else []
    name = "communication of unknown purpose" if one.kind == "unknown" else one.kind
    if one.group_size and one.group_count > 1:
        name += f" in {format_count(one.group_count)} groups of {format_count(one.group_size)}"
    elif one.group_size:
        name += f" over {format_count(one.group_size)}"
    return f"{name} ({', '.join(what)})" if what else name


def _clocks(clocks: list[Clock]) -> list[str]:
    """How far clocks are apart, and how well that is known; for the worst of them."""
    residuals = [clock.residual_ns for clock in clocks if clock.residual_ns is not None]
    offsets = [clock.offset_ns for clock in clocks if clock.offset_ns is not None]
    said = []
    if len(residuals) > 1 and offsets:
        apart, known = max(offsets) - min(offsets), format_duration(max(residuals))
        said.append(
            f"clocks {format_duration(apart)} apart, known within {known}"
            if apart > max(residuals)
            else f"clocks agree within {known}"
        )
    unknown = len(clocks) - len(offsets)
    if unknown and len(clocks) > 1:
        said.append(f"{format_count(unknown)} clock{'s' if unknown > 1 else ''} could not be compared")
    return said
