"""The result as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter

from traceanalyzer.result.document import Device, Evidence, Finding, Result, Saving, Steps
from traceanalyzer.units import format_count, format_duration, format_share

WIDTH = 100
EVIDENCE_ROWS = 3
SIDE_BY_SIDE = 2
"""With more GPUs than this the ledgers stand beside each other."""
COLUMNS = 7
MOST_GPUS = 21
MOST_INPUTS = 4


def render_text(result: Result) -> str:
    """Headline, health, ledger, findings and the rules that stayed silent. Ends in a newline."""
    lines = wrap(result.verdict.headline, "", "")
    if result.devices:
        lines.append(f"bound by: {result.verdict.bound_by.replace('_', ' ')}")
    lines += ["", *_inputs(result)]
    for note in result.health:
        count = f" ({format_count(note.count)}×)" if note.count > 1 else ""
        rank = "" if note.rank is None else f" [rank {note.rank}]"
        lines += wrap(f"{note.code} {note.message}{count}{rank}", "health  ", "        ")
    steps = {(s.rank, s.device): s for s in result.steps}
    if len(result.devices) > SIDE_BY_SIDE:
        lines += _ledgers(result.devices, steps)
    else:
        for device in result.devices:
            lines += ["", *_ledger(device, steps.get((device.rank, device.device)))]
    groups = _grouped(result.findings)
    lines += ["", *(["FINDINGS"] if groups else _calm(result))]
    for number, group in enumerate(groups, 1):
        lines += ["", *_finding(number, group)]
    lines += ["", *_silent(result)]
    return "\n".join(lines) + "\n"


def _inputs(result: Result) -> list[str]:
    lines = []
    for item in result.inputs[:MOST_INPUTS]:
        rank = (
            "" if item.rank is None else f", rank {item.rank}" + (f" of {item.world_size}" if item.world_size else "")
        )
        lines.append(f"input   {item.path} ({item.producer}{rank})")
    left = len(result.inputs) - MOST_INPUTS
    return [*lines, f"        and {left} more"] if left > 0 else lines


def _gpu(rank: int | None, device: int | None) -> str:
    words = [] if rank is None else [f"rank {rank}"]
    words += [] if device is None else [f"GPU {device}"]
    return ", ".join(words)


def _rows(device: Device) -> list[tuple[str, int]]:
    return [
        ("compute", device.compute_ns),
        ("exposed communication", device.exposed_communication_ns),
        ("exposed memcpy", device.exposed_memcpy_ns),
        ("exposed memset", device.exposed_memset_ns),
        *((f"idle: {cause.replace('_', ' ')}", ns) for cause, ns in device.idle_by_cause_ns.items()),
    ]


def _ledger(device: Device, steps: Steps | None) -> list[str]:
    """One GPU: time, share and a bar a line."""
    name = f" ({device.name})" if device.name else ""
    work = f"{format_count(device.gpu_op_count)} operations, {format_count(device.kernel_count)} kernels"
    lines = [f"{_gpu(device.rank, device.device)}{name}: window {format_duration(device.window_ns)}, {work}"]
    for label, ns in _rows(device):
        if ns:
            share = ns / device.window_ns if device.window_ns else 0
            line = f"  {label:<24}{format_duration(ns):>10}  {format_share(share):>6}  {'█' * round(share * 40)}"
            lines.append(line.rstrip())
    if steps:
        median, p95 = format_duration(steps.median_ns), format_duration(steps.p95_ns)
        count = f"{steps.count} step{'s' if steps.count != 1 else ''}"
        lines.append(f"  {count} ({steps.method}): median {median}, 95th percentile {p95}")
    return lines


def _ledgers(devices: list[Device], steps: dict[tuple[int | None, int], Steps]) -> list[str]:
    """Many GPUs beside each other, as shares of their windows."""
    lines = []
    shown = devices[:MOST_GPUS]
    for first in range(0, len(shown), COLUMNS):
        block = shown[first : first + COLUMNS]
        rows = [dict(_rows(device)) for device in block]
        ranks = {d.rank for d in devices if d.rank is not None}
        short = len(ranks) == len(devices) or not ranks
        head = [_gpu(d.rank, None if ranks else d.device) if short else f"r{d.rank}/GPU{d.device}" for d in block]
        table = [("share of the window", head)]
        table += [
            (label, [format_share(row[label] / device.window_ns) for row, device in zip(rows, block, strict=True)])
            for label in rows[0]
            if any(row[label] for row in rows)
        ]
        table.append(("window", [format_duration(d.window_ns) for d in block]))
        table.append(("kernels", [format_count(d.kernel_count) for d in block]))
        timed = [steps.get((d.rank, d.device)) for d in block]
        if any(timed):
            table.append(("steps", [format_count(s.count) if s else "-" for s in timed]))
            table.append(("median step", [format_duration(s.median_ns) if s else "-" for s in timed]))
        lines += ["", *(f"  {label:<24}" + "".join(f"{cell:>10}" for cell in cells) for label, cells in table)]
    left = len(devices) - len(shown)
    return [*lines, f"  and {left} more GPUs: see --format json"] if left else lines


def _calm(result: Result) -> list[str]:
    if not result.devices:
        text = (
            "No findings, because there is no GPU work to look at. Record the GPU too: torch.profiler with "
            "ProfilerActivity.CUDA, or nsys profile --trace cuda,nvtx."
        )
        return wrap(text, "", "")
    return ["No findings: nothing worth fixing was seen."]


def _grouped(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one rule together, where the first of them stands: on many GPUs they say the same."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return list(groups.values())


def _finding(number: int, group: list[Finding]) -> list[str]:
    first = group[0]
    indent = " " * (len(str(number)) + 2)
    lines = [
        *wrap(f"{first.title} [{first.rule}, {first.severity}]", f"{number}. ", indent),
        *wrap(_gain(first), indent, indent),
        *wrap(first.message, indent, indent),
    ]
    if len(group) > 1:
        lines += wrap("The same on " + "; ".join(_brief(finding) for finding in group[1:]) + ".", indent, indent)
    if all(finding.severity == "info" and finding.saving.recoverable_ns == 0 for finding in group):
        # The findings that account for this time have said what to do.
        return lines
    for evidence in first.evidence[:EVIDENCE_ROWS]:
        lines += wrap(_proof(evidence), f"{indent}· ", f"{indent}  ")
    left = len(first.evidence) - EVIDENCE_ROWS
    if left > 0:
        lines.append(f"{indent}· and {left} more in the report")
    said: set[tuple[str, str]] = set()
    for finding in group:
        for advice in finding.recommend:
            for item in advice.items():
                if item not in said:
                    said.add(item)
                    lines += wrap(f"{item[0]}: {item[1]}", f"{indent}→ ", f"{indent}  ")
    return lines


def _gain(finding: Finding) -> str:
    saving = finding.saving
    if not saving.recoverable_ns:
        return f"No saving of its own. Confidence {finding.confidence}."
    text = (
        f"Up to {format_duration(saving.recoverable_ns)} ({format_share(saving.recoverable_share or 0)} of the window)"
    )
    if saving.per_step_ns:
        text += f", {format_duration(saving.per_step_ns)} a step"
    if saving.predicted_speedup is None and saving.speedup_ceiling:
        text += f": at most {saving.speedup_ceiling:.2f}× faster"
    text += "".join(f". {said}" for said in (_predicted(saving), saving.prediction_note) if said)
    return f"{text}. Confidence {finding.confidence}."


def _predicted(saving: Saving) -> str | None:
    """What the replayed timeline says of a cause, in words; None when there is no prediction."""
    if saving.predicted_speedup is None:
        return None
    if not saving.pays:
        return "Replayed without it alone, the same work takes as long: something else sets the pace"
    faster = f"{saving.predicted_speedup:.2f}×"
    if saving.step_ns is None or saving.predicted_step_ns is None:
        return f"Replayed without it, the same work is done {faster} as fast"
    now, then = format_duration(saving.step_ns), format_duration(saving.predicted_step_ns)
    return f"Replayed without it, a step takes {then} instead of {now} ({faster})"


def _brief(finding: Finding) -> str:
    where = _gpu(finding.scope.rank, finding.scope.device) or "the whole job"
    share = finding.saving.recoverable_share
    return f"{where} ({format_share(share)})" if share else where


def _proof(evidence: Evidence) -> str:
    length = format_duration(evidence.end_ns - evidence.start_ns)
    return evidence.label if length in evidence.label else f"{evidence.label} ({length})"


def _silent(result: Result) -> list[str]:
    counts = Counter(rule.outcome for rule in result.rules)
    summary = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(counts.items()))
    lines = [f"Rules: {summary}"]
    for rule in result.rules:
        if rule.outcome in ("could_not_judge", "error"):
            lines += wrap(f"{rule.rule} {rule.outcome.replace('_', ' ')}: {rule.reason}", "  ", "    ")
    return lines


def wrap(text: str, first: str, rest: str) -> list[str]:
    """Lines of at most WIDTH characters, cut between words only: a command with hyphens must survive copying."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first]
