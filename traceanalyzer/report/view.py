"""What the page shows, as plain values for the template: words, figures and positions, nothing to be computed there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import pyarrow as pa

from traceanalyzer.names import readable_name
from traceanalyzer.report.charts import Segment, StepBar, ledger_segments, step_bars
from traceanalyzer.report.lanes import TimelineTables, table_or_none
from traceanalyzer.report.palette import BOUND_BY_KEYS, BY_KEY, SWATCHES, Swatch
from traceanalyzer.report.timeline import Place, Timeline
from traceanalyzer.result.document import Device, Evidence, Finding, Metric, Result, RuleOutcome, Steps
from traceanalyzer.result.ranks import rank_list, share_range
from traceanalyzer.units import NS, UNITS, format_count, format_share, format_value
from traceanalyzer.units import format_duration as plain_duration

KERNEL_ROWS = 50
OTHERS = 16
"""Findings like the first of their rule that are shown in full."""
FRAMEWORKS = {"pytorch": "PyTorch", "cuda": "CUDA", "jax": "JAX", "any": "Any framework", "nsys": "Nsight Systems"}
OUTCOME_TITLES = {
    "clean": "Looked, and found nothing",
    "not_applicable": "Not applicable to this trace",
    "could_not_judge": "Could not judge",
    "error": "Failed: a fault in the rule",
}


@dataclass(frozen=True)
class EvidenceView:
    """One item of evidence; `place` is where the timeline shows it, None when it does not."""

    label: str
    duration: str
    place: Place | None


@dataclass(frozen=True)
class FindingView:
    number: int
    finding: Finding
    scope: str
    saving: str | None
    share: str | None
    metrics: list[tuple[str, str]]
    evidence: list[EvidenceView]
    links: list[tuple[str, str | None]]

    @property
    def first_place(self) -> int | None:
        """The first item of evidence that the timeline shows."""
        return next((number for number, item in enumerate(self.evidence) if item.place), None)


@dataclass(frozen=True)
class FindingGroup:
    """What one rule found on one GPU or many: the largest finding, its like on other GPUs, and the advice for all of them.

    Of many others the first are in `others`, and `left` says how many more there are.
    """

    first: FindingView
    others: list[FindingView]
    recommend: list[tuple[str, list[str]]]
    others_title: str
    left: str | None

    @property
    def shown(self) -> list[FindingView]:
        return [self.first, *self.others]


@dataclass(frozen=True)
class DeviceView:
    label: str
    device: Device
    busy: str
    segments: list[Segment]
    facts: list[tuple[str, str]]


@dataclass(frozen=True)
class StepsView:
    label: str
    steps: Steps
    bars: list[StepBar]
    tallest: str


@dataclass(frozen=True)
class KernelView:
    """One row of the kernel table, over all GPUs; durations in ns, `share` of the sum of all windows."""

    name: str
    short: str
    gpus: int
    communication: bool
    count: int
    total: int
    mean: int
    longest: int
    share: float


def format_duration(ns: float) -> str:
    """A duration as people read it on a page, with the micro sign."""
    return plain_duration(ns).replace(" us", " µs")


def readable(text: str) -> str:
    """A text of the result document with the page's micro sign."""
    return re.sub(r"(?<=\d) us\b", " µs", text)


def input_names(result: Result) -> list[str]:
    """File names only: a path can name a person or a host."""
    return [PureWindowsPath(PurePosixPath(item.path).name).name for item in result.inputs]


def rank_namer(result: Result) -> Callable[[int], str]:
    """What to say before "GPU n" for a rank of the tables, which is the file's ordinal when the job's rank is not known."""
    known = {device.rank for device in result.devices if device.rank is not None}
    otherwise = "file {} · " if len(result.inputs) > 1 else ""
    return lambda rank: f"rank {rank} · " if rank in known else otherwise.format(rank)


def clock_offsets(result: Result) -> dict[int, int]:
    """How far the clock of each rank is ahead, in ns, for ranks that the result knows; two files of one rank keep their own clocks."""
    clocks = result.job.clocks if result.job else []
    count = Counter(clock.rank for clock in clocks)
    return {
        clock.rank: clock.offset_ns
        for clock in clocks
        if clock.rank is not None and clock.offset_ns is not None and count[clock.rank] == 1
    }


def timeline_ranks(result: Result, timeline: Timeline | None) -> str | None:
    """Which ranks the timeline shows, for example "8 of 512 ranks: 0-6, 300"; None when it shows all of them."""
    if timeline is None:
        return None
    known = {device.rank for device in result.devices if device.rank is not None}
    every, shown = len(result.inputs), {group.rank for group in timeline.groups}
    if known:
        every, shown = len(known), shown & known
    what = "ranks" if known else "files"
    return (
        f"{format_count(len(shown))} of {format_count(every)} {what}: {rank_list(shown, 16)}"
        if len(shown) < every
        else None
    )


def gpu_label(rank: int | None, device: int | None) -> str:
    words = [] if rank is None else [f"rank {rank}"]
    words += [] if device is None else [f"GPU {device}"]
    return " · ".join(words)


def bound_swatch(result: Result) -> Swatch | None:
    return BY_KEY.get(BOUND_BY_KEYS.get(result.verdict.bound_by, ""))


def device_views(devices: Sequence[Device]) -> list[DeviceView]:
    views = []
    for device in devices:
        window = max(device.window_ns, 1)
        facts = [
            ("window", format_duration(device.window_ns)),
            ("longest gap", format_duration(device.max_gap_ns)),
            ("GPU operations", format_count(device.gpu_op_count)),
            ("kernels", format_count(device.kernel_count)),
        ]
        busy, segments = format_share(device.busy_ns / window), ledger_segments(device)
        views.append(DeviceView(gpu_label(device.rank, device.device), device, busy, segments, facts))
    return views


def ledger_legend(devices: list[DeviceView]) -> list[Swatch]:
    """The lines that any of the ledgers has, in the palette's order."""
    used = {segment.swatch.key for device in devices for segment in device.segments}
    return [swatch for swatch in SWATCHES if swatch.key in used]


def finding_groups(result: Result, place: Callable[[Evidence], Place | None]) -> list[FindingGroup]:
    """Findings of one rule together, where the first of them stands; numbered by their place in the result."""
    groups: dict[str, list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(result.findings):
        groups.setdefault(finding.rule, []).append((number, finding))
    return [_finding_group(findings, place) for findings in groups.values()]


def _finding_group(findings: list[tuple[int, Finding]], place: Callable[[Evidence], Place | None]) -> FindingGroup:
    views = [_finding_view(number, finding, place) for number, finding in findings[: OTHERS + 1]]
    recommend: dict[str, list[str]] = {}
    for _, finding in findings:
        for framework, text in (item for entry in finding.recommend for item in entry.items()):
            known = recommend.setdefault(FRAMEWORKS.get(framework, framework), [])
            if text not in known:
                known.append(text)
    gpus = {(finding.scope.rank, finding.scope.device) for _, finding in findings[1:]}
    more = len(findings) - 1
    what = "GPU" if len(gpus) == more and (None, None) not in gpus else "place"
    title = f"The same on {format_count(more)} more {what}{'s' if more > 1 else ''}"
    left, rest = [finding for _, finding in findings[OTHERS + 1 :]], None
    if left:
        share = share_range(left)
        rest = f"and on {format_count(len(left))} more {what}s" + (f": {share} of the window" if share else "")
    return FindingGroup(views[0], views[1:], list(recommend.items()), title, rest)


def _finding_view(number: int, finding: Finding, place: Callable[[Evidence], Place | None]) -> FindingView:
    evidence = [
        _evidence_view(readable(item.label), format_duration(item.end_ns - item.start_ns), place(item))
        for item in finding.evidence
    ]
    share = finding.saving.recoverable_share
    return FindingView(
        number=number,
        finding=finding,
        scope=gpu_label(finding.scope.rank, finding.scope.device),
        saving=saving_words(finding),
        share=format_share(share) if share else None,
        metrics=[(name.replace("_", " "), metric_words(metric)) for name, metric in finding.metrics.items()],
        evidence=evidence,
        links=[(text, text if text.startswith("https://") else None) for text in finding.references],
    )


def _evidence_view(label: str, duration: str, place: Place | None) -> EvidenceView:
    """The duration is left out where the label says it already."""
    return EvidenceView(label, "" if duration in label else duration, place)


def saving_words(finding: Finding) -> str | None:
    """For example "1.52× faster without it; a step takes 13.2 ms instead of 20.1 ms" from the replayed timeline, else "at most 1.61×
    faster; 8.1 ms a step"; None when nothing was estimated or nothing is left to claim. Beside a prediction, the note of the saving is
    the condition under which it holds: "1.87× faster had the rank come in time; a step would take …"."""
    saving = finding.saving
    if not saving.recoverable_ns:
        return None
    condition = saving.prediction_note if saving.predicted_speedup is not None else None
    if condition:
        condition = condition[:1].lower() + condition[1:]
    if not saving.pays:
        return f"no faster {condition or 'without it alone'}: something else sets the pace"
    if saving.predicted_speedup is not None:
        words = [f"{saving.predicted_speedup:.2f}× faster {condition or 'without it'}"]
        if saving.predicted_step_ns is not None and saving.step_ns is not None:
            now, then = format_duration(saving.step_ns), format_duration(saving.predicted_step_ns)
            words.append(f"a step {'would take' if condition else 'takes'} {then} instead of {now}")
        return "; ".join(words)
    words = []
    if saving.speedup_ceiling is not None:
        words.append(f"at most {saving.speedup_ceiling:.2f}× faster")
    if saving.per_step_ns is not None:
        words.append(f"{format_duration(saving.per_step_ns)} a step")
    else:
        words.append(f"{format_duration(saving.recoverable_ns)} in all")
    return "; ".join(words)


def metric_words(metric: Metric) -> str:
    """A metric with its unit, as a person would write it."""
    value = metric.value
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    words = format_duration(value) if metric.unit == NS else format_value(value, metric.unit)
    return words if metric.unit in (None, *UNITS) else f"{words} {metric.unit}"


def steps_views(shown: Sequence[Steps], tables: TimelineTables | None) -> list[StepsView]:
    durations = _step_durations(None if tables is None else table_or_none(tables, "step_stats"))
    views = []
    for steps in shown:
        matches = [
            found
            for (rank, device), found in durations.items()
            if device == steps.device and steps.rank in (None, rank)
        ]
        found = matches[0] if matches else []
        tallest = format_duration(max(found)) if found else ""
        views.append(StepsView(gpu_label(steps.rank, steps.device), steps, step_bars(found), tallest))
    return views


def _step_durations(table: pa.Table | None) -> dict[tuple[int, int], list[int]]:
    durations: dict[tuple[int, int], list[int]] = {}
    if table is not None:
        columns: list[list[Any]] = [table[name].to_pylist() for name in ("rank", "device", "start_ns", "end_ns")]
        for rank, device, start, end in zip(*columns, strict=True):
            durations.setdefault((rank, device), []).append(end - start)
    return durations


def kernel_views(tables: TimelineTables | None, windows: int) -> tuple[list[KernelView], int]:
    """The kernels with the largest totals over all GPUs, and how many there are. `windows` is the sum of all windows in ns."""
    table = None if tables is None else table_or_none(tables, "kernel_stats")
    if table is None:
        return [], 0
    plain = table.select(["count", "total", "longest"])
    for name in ("name", "class"):
        plain = plain.append_column(name, table[name].cast(pa.string()))
    sums = [("count", "sum"), ("total", "sum"), ("longest", "max"), ("total", "count")]
    merged = plain.group_by(["name", "class"], use_threads=False).aggregate(sums)
    order = [("total_sum", "descending"), ("name", "ascending"), ("class", "ascending")]
    views = [
        KernelView(
            name=row["name"] or "(unnamed)",
            short=readable_name(row["name"] or "(unnamed)"),
            gpus=row["total_count"],
            communication=row["class"] == "communication",
            count=row["count_sum"],
            total=row["total_sum"],
            mean=row["total_sum"] // max(row["count_sum"], 1),
            longest=row["longest_max"],
            share=row["total_sum"] / max(windows, 1),
        )
        for row in merged.sort_by(order).slice(0, KERNEL_ROWS).to_pylist()
    ]
    return views, merged.num_rows


def silent_rules(result: Result) -> list[tuple[str, list[RuleOutcome]]]:
    """Rules that did not fire, by outcome, in a fixed order; the outcomes that ask for attention first."""
    groups = []
    for outcome in ("error", "could_not_judge", "not_applicable", "clean"):
        rules = [rule for rule in result.rules if rule.outcome == outcome]
        if rules:
            groups.append((OUTCOME_TITLES[outcome], rules))
    return groups
