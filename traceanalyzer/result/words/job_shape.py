"""The shape of a job in sentences that text, Markdown and HTML share."""

from __future__ import annotations

from traceanalyzer.names import capitalized
from traceanalyzer.result.document import Result
from traceanalyzer.result.job import Job
from traceanalyzer.result.job_shape import AxisTime, Lateness
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.units import format_count, format_duration, format_share

MOST_PERSISTENT = 2
WORTH_A_SENTENCE, MOSTLY = 0.01, 0.5
"""Below this share of all GPUs' time nothing is said of a kind of parallelism; below this of all waiting, nothing of persistence."""


def jitter_words(lateness: Lateness | None) -> str:
    """What is to be added to a sentence about waiting that is mostly jitter; nothing about any other."""
    if lateness is None or not lateness.is_jitter:
        return ""
    said = "; now one is late and now another, as chance has it: none of them is to blame"
    if lateness.noise_ns is None:
        return said
    noise, waited = format_duration(lateness.noise_ns), format_duration(lateness.waited_ns)
    return f"{said}. The noise of their own step times makes about {noise} of waiting, and they wait {waited}"


def persistence(result: Result, job: Job) -> list[str]:
    """A sentence on each rank that is late in step after step."""
    everything = sum(late.waited_ns for late in job.late_ranks)
    if job.lateness is None or job.lateness.waited_ns < MOSTLY * everything:
        return []  # in a pipeline the last stage comes last to what follows
    namer, said = gpu_namer(result.devices), []
    for one in job.lateness.ranks[:MOST_PERSISTENT]:
        often = f"causes most waiting in {format_count(one.led_count)} of {format_count(one.step_count)} steps"
        share = format_share(one.waited_ns / max(job.lateness.waited_ns, 1))
        said.append(
            f"{capitalized(namer(one.rank, one.device))} {often}, {share} of it all; chance alone does so in "
            f"{format_share(one.chance)} of cases."
        )
    return said


def axes_sentence(job: Job) -> str | None:
    """Time lost by kind of parallelism; None where there is one kind, or hardly any time is lost."""
    lost = [one for one in job.axes if one.exposed_share >= WORTH_A_SENTENCE]
    if len(job.axes) < 2 or not lost:
        return None
    return f"Exposed communication: {'; '.join(map(_axis, lost))}."


def _axis(one: AxisTime) -> str:
    name = "of unknown purpose" if one.parallelism == "unknown" else one.parallelism
    share = format_share(one.exposed_share)
    each = "" if one.exposed_per_step_ns is None else f", {format_duration(one.exposed_per_step_ns)} a step"
    if one.wait_share is None or one.transfer_share is None:
        return f"{name} {share} of the GPUs' time{each}"
    parts = f"{format_share(one.wait_share)} waiting and {format_share(one.transfer_share)} transfer"
    return f"{name} {share} of the GPUs' time{each} ({parts})"


def pipeline_sentence(result: Result, job: Job) -> str | None:
    """How stages of a pipeline compare; None without one."""
    found = job.pipeline
    if found is None:
        return None
    namer = gpu_namer(result.devices)
    slow, fast = (end(found.gpus, key=lambda one: one.compute_ns) for end in (max, min))
    said = (
        f"Stages of the pipeline wait {format_share(found.wait_share)} of a step; they compute from "
        f"{format_duration(fast.compute_ns)} ({namer(fast.rank, fast.device)}) to {format_duration(slow.compute_ns)} "
        f"({namer(slow.rank, slow.device)}) of it"
    )
    if found.uneven:
        return (
            f"{said}: {format_share(found.uneven_share)} of the waiting is for what the slowest computes more. Equal ones would take "
            f"about {format_duration(found.balanced_step_ns)} a step."
        )
    if found.schedule_share is None or found.interleaved:
        return f"{said}."
    schedule = f"GPipe and 1F1B schedules leave {format_share(found.schedule_share)} empty"
    return f"{said}. {schedule}, with {found.micro_batches} micro-batches in {found.stages} stages."


def hosts_sentence(job: Job) -> str | None:
    """For which host others wait most; None where hosts are not known."""
    caused = sum(one.caused_wait_ns for one in job.hosts)
    if not job.hosts:
        return None
    said = f"They ran on {len(job.hosts)} hosts"
    if not caused:
        return f"{said}."
    most = max(job.hosts, key=lambda one: one.caused_wait_ns)
    share = format_share(most.caused_wait_ns / caused)
    return f"{said}; {share} of all waiting is for host {most.number} (ranks {rank_list(most.ranks)})."
