"""The result as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter

from traceanalyzer.result.document import Device, Finding, Result
from traceanalyzer.units import format_count, format_duration, format_share

WIDTH = 110
EVIDENCE_ROWS = 3


def render_text(result: Result) -> str:
    """Headline, health, ledger, findings and the rules that stayed silent. Ends in a newline."""
    lines = [result.verdict.headline, f"bound by: {result.verdict.bound_by}", ""]
    for item in result.inputs:
        rank = "" if item.rank is None else f", rank {item.rank} of {item.world_size}"
        lines.append(f"input  {item.path} ({item.producer}{rank})")
    for note in result.health:
        lines += _wrap(f"{note.code} {note.message} ({format_count(note.count)}×)", "health ", "       ")
    for device in result.devices:
        lines += ["", *_ledger(device)]
    for steps in result.steps:
        where = _gpu(steps.rank, steps.device)
        median, p95 = format_duration(steps.median_ns), format_duration(steps.p95_ns)
        lines.append(f"{where}: {steps.count} steps ({steps.method}), median {median}, 95th percentile {p95}")
    lines += ["", "Findings" if result.findings else "No findings."]
    for number, finding in enumerate(result.findings, 1):
        lines += ["", *_finding(number, finding)]
    lines += ["", *_silent(result)]
    return "\n".join(lines) + "\n"


def _gpu(rank: int | None, device: int | None) -> str:
    return f"GPU {device}" if rank is None else f"rank {rank}, GPU {device}"


def _ledger(device: Device) -> list[str]:
    rows = [
        ("compute", device.compute_ns),
        ("exposed communication", device.exposed_communication_ns),
        ("exposed memcpy", device.exposed_memcpy_ns),
        ("exposed memset", device.exposed_memset_ns),
        *((f"idle: {cause.replace('_', ' ')}", ns) for cause, ns in device.idle_by_cause_ns.items()),
    ]
    name = f" ({device.name})" if device.name else ""
    work = f"{format_count(device.gpu_op_count)} operations, {format_count(device.kernel_count)} kernels"
    title = f"{_gpu(device.rank, device.device)}{name}: window {format_duration(device.window_ns)}, {work}"
    return [
        title,
        *(
            f"  {label:<24}{format_duration(ns):>10}  {format_share(ns / device.window_ns if device.window_ns else 0):>6}"
            for label, ns in rows
            if ns
        ),
    ]


def _finding(number: int, finding: Finding) -> list[str]:
    saving = finding.saving
    gain = ""
    if saving.recoverable_ns:
        gain = f", up to {format_duration(saving.recoverable_ns)} ({format_share(saving.recoverable_share or 0)} of the window)"
        if saving.per_step_ns:
            gain += f", {format_duration(saving.per_step_ns)} a step"
        if saving.speedup_ceiling:
            gain += f", at most {saving.speedup_ceiling:.2f}× faster"
    lines = [
        f"{number}. {finding.rule} {finding.title} [{finding.severity}, confidence {finding.confidence}{gain}]",
        *_wrap(finding.message, "   ", "   "),
    ]
    for evidence in finding.evidence[:EVIDENCE_ROWS]:
        lines += _wrap(evidence.label, "   · ", "     ")
    for advice in finding.recommend:
        for framework, text in advice.items():
            lines += _wrap(f"{framework}: {text}", "   → ", "     ")
    return lines


def _silent(result: Result) -> list[str]:
    counts = Counter(rule.outcome for rule in result.rules)
    summary = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(counts.items()))
    lines = [f"Rules: {summary}"]
    for rule in result.rules:
        if rule.outcome in ("could_not_judge", "error"):
            lines += _wrap(f"{rule.rule} {rule.outcome.replace('_', ' ')}: {rule.reason}", "  ", "    ")
    return lines


def _wrap(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False) or [first]
