"""The figures of a capture that budgets are held against, by name, and why one of them is not there.

All are of the whole capture: a share is of the windows of all GPUs together, a step is that of the slowest GPU. A figure that the
result cannot tell is left out rather than taken for zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from traceanalyzer.extensions import EVIDENCE, kinds
from traceanalyzer.result.captures.capture import Capture, Value
from traceanalyzer.result.captures.figure import Figure
from traceanalyzer.result.document import Device, Finding, Result
from traceanalyzer.result.verdict import reason_of
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.units import COUNT, NS, SHARE
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE, ERROR, INFO, JUDGED, NOT_APPLICABLE, SEVERITIES
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_COMMUNICATION, EXPOSED_MEMCPY, EXPOSED_MEMSET, IDLE

_OF_WINDOW = {
    "idle_share": "nothing runs on the GPU",
    "busy_share": "anything runs on the GPU",
    f"{COMPUTE.column}_share": COMPUTE.share,
    "communication_share": "communication kernels run",
    f"{EXPOSED_COMMUNICATION.column}_share": EXPOSED_COMMUNICATION.share,
    "memcpy_share": "copies run",
    f"{EXPOSED_MEMCPY.column}_share": EXPOSED_MEMCPY.share,
    f"{EXPOSED_MEMSET.column}_share": EXPOSED_MEMSET.share,
}
FIGURES: dict[str, Figure] = {
    **{name: Figure(SHARE, f"share of the time in which {about}") for name, about in _OF_WINDOW.items()},
    **{f"{line.name}_share": Figure(SHARE, f"idle time caused by {line.share}") for line in IDLE.values()},
    "waiting_share": Figure(
        SHARE, "time that ranks wait for late ones with nothing else to do, in collectives that match"
    ),
    "recoverable_share": Figure(SHARE, "what all findings together could give back at most"),
    "max_gap": Figure(NS, "longest single stretch in which a GPU is idle"),
    "window": Figure(NS, "from a GPU's first operation to its last and over all marked steps, the longest of all GPUs"),
    "mfu": Figure(SHARE, "share of the GPUs' peak that steps use (MFU), by the shapes of their operators"),
    "tflops": Figure(COUNT, "TFLOP/s over a step on one GPU, by the shapes of its operators"),
    "step.median": Figure(NS, "median time of a step on the GPU, of the slowest one"),
    "step.p95": Figure(NS, "95th percentile of it"),
    "step.mean": Figure(NS, "mean time of a step on the GPU, over all GPUs"),
    "step.spread": Figure(SHARE, "(p95 - median) / median"),
    "step.count": Figure(COUNT, "steps seen"),
    "kernels_per_step": Figure(COUNT, "kernels of a step on one GPU"),
    **{f"findings.{severity}": Figure(COUNT, f"findings of severity {severity}") for severity in reversed(SEVERITIES)},
}
SHOWN = ("mfu", "tflops")
"""Figures of traces that are compared by themselves, beside those of evidence."""
RULE_FIGURES: dict[str, Figure] = {
    "share": Figure(SHARE, "time that its findings account for"),
    "per_step": Figure(NS, "the same for one step of one GPU"),
    "findings": Figure(COUNT, "its findings that gain something"),
}
"""Figures of every rule, by what follows its id and a dot."""
MOSTLY = 0.5
"""At least this share of communication time must be of collectives that match. Ends of a capture are cut off: of three steps a tenth or
a quarter has no counterpart."""
_TIMED = {"step.median": 1, "step.p95": 1, "step.spread": 2}
"""How many whole steps it takes to tell a figure."""
OTHER_VERSION = "it does not hold this figure; it may be of another version"
_UNTOLD = {
    **dict.fromkeys(SHOWN, "the shapes of its operators and the names of its kernels and GPUs do not tell it"),
    "waiting_share": "who waits for whom is only known where the traces of a job's ranks are read together and most collectives match",
}
"""Why a figure is not there, by its name."""
_MORE_IS_BETTER = ("busy_share", f"{COMPUTE.column}_share")


@cache
def evidence_figures() -> Mapping[str, Figure]:
    """The figures of kinds of evidence, by name: the kind's, a dot, and the figure's."""
    return {
        f"{kind.name}.{name}": one for _, kind in kinds(EVIDENCE) for name, one in getattr(kind, "figures", {}).items()
    }


def figure(name: str, rules: Collection[str]) -> Figure | None:
    """What the figure `name` is, given the ids of all rules; None for an unknown name."""
    rule, dot, of_rule = name.partition(".")
    return RULE_FIGURES.get(of_rule) if dot and rule in rules else FIGURES.get(name) or evidence_figures().get(name)


def figure_names(rules: Iterable[str]) -> list[str]:
    """The names of all figures."""
    return [*FIGURES, *evidence_figures(), *(f"{rule}.{name}" for rule in rules for name in RULE_FIGURES)]


def is_of_a_step(name: str) -> bool:
    """Whether the figure depends on what a step is."""
    return name.startswith("step.") or name == "kernels_per_step" or name.endswith(".per_step")


def gains(finding: Finding) -> bool:
    """Whether there is something to gain from a finding. Where a rule claims no time, anything above info counts."""
    return finding.saving.pays if finding.saving.recoverable_ns else finding.severity != INFO


def metrics_of(result: Result) -> dict[str, Value]:
    """The figures that the result tells, by name; none where there is no GPU work. Shares to six decimals, times in whole ns.

    Those of rules that found nothing, which are all zero, are left out: `figures_of` knows them.
    """
    devices = [device for device in result.devices if device.window_ns]
    if not devices:
        return {}
    return {
        **dict(_of_windows(devices)),
        **dict(_of_steps(result)),
        **dict(_of_the_job(result)),
        **dict(_of_the_roofline(result)),
        **dict(_of_findings(result)),
    }


def figures_of(capture: Capture) -> dict[str, Value]:
    """All figures of a capture by name: its metrics, and what its unit of work tells. Step times need whole steps to be told from."""
    timed = _timed_steps(capture)
    own = {**_of_silent_rules(capture), **capture.metrics}
    own = {name: value for name, value in own.items() if timed >= _TIMED.get(name, 0)}
    if not timed or capture.unit is None:
        return own
    mean, kernels = capture.unit.time.mean_ns, round(capture.unit.kernels, 3)
    return {**own, "step.mean": Value(mean, NS), "kernels_per_step": Value(kernels, COUNT)}


def _of_silent_rules(capture: Capture) -> dict[str, Value]:
    """Zeros for the rules that were judged."""
    names = [name for name in RULE_FIGURES if name != "per_step" or "step.count" in capture.metrics]
    judged = [rule for rule, outcome in capture.outcomes.items() if outcome in JUDGED]
    return {f"{rule}.{name}": Value(0, RULE_FIGURES[name].unit) for rule in judged for name in names}


def why_missing(capture: Capture, name: str) -> str:
    """Why the capture has no figure `name`, which is the name of one, in words that follow the capture's name and a colon."""
    rule, dot, of_rule = name.partition(".")
    if capture.unjudged:
        return why_unjudged(capture.unjudged)
    if dot and of_rule in RULE_FIGURES:
        return _why_rule(capture, rule)
    if name in evidence_figures():
        return f"it was made without a file that tells it ({rule})"
    if is_of_a_step(name):
        return _no_steps(capture)
    return _UNTOLD.get(name, OTHER_VERSION)


def why_unjudged(headline: str) -> str:
    """The reason in a verdict that says that nothing could be judged."""
    return reason_of(headline)


_UNJUDGED = {
    COULD_NOT_JUDGE: "could not judge",
    NOT_APPLICABLE: "does not apply",
    ERROR: "failed",
}


def _why_rule(capture: Capture, rule: str) -> str:
    outcome = capture.outcomes.get(rule)
    if outcome is None:
        return f"it was made without the rule {rule}"
    if outcome in JUDGED:
        return _no_steps(capture)
    return f"{rule} {_UNJUDGED.get(outcome, outcome)}: {capture.reasons.get(rule, 'it does not say why')}"


def _timed_steps(capture: Capture) -> int:
    return capture.unit.count if capture.unit and capture.unit.kind == "step" else 0


def _no_steps(capture: Capture) -> str:
    if "step.count" not in capture.metrics:
        return capture.no_unit or "no steps were found"
    return OTHER_VERSION if _timed_steps(capture) > 1 else "too few whole steps were recorded"


def _of_windows(devices: list[Device]) -> Iterator[tuple[str, Value]]:
    name = gpu_namer(devices)
    total = sum(device.window_ns for device in devices)

    def value(parts: list[int], figure_name: str) -> Value:
        shares = [part / device.window_ns for part, device in zip(parts, devices, strict=True)]
        worst = devices[shares.index(min(shares) if figure_name in _MORE_IS_BETTER else max(shares))]
        where = _where(devices, name(worst.rank, worst.device)) if any(parts) else None
        return Value(_share(sum(parts), total), SHARE, where)

    for figure_name in _OF_WINDOW:
        field = figure_name.removesuffix("_share") + "_ns"
        yield figure_name, value([getattr(device, field) for device in devices], figure_name)
    for cause, line in IDLE.items():
        parts = [device.idle_by_cause_ns.get(cause, 0) for device in devices]
        yield f"{line.name}_share", value(parts, cause)
    for figure_name, field in (("max_gap", "max_gap_ns"), ("window", "window_ns")):
        most = max(devices, key=lambda device: int(getattr(device, field)))
        yield figure_name, Value(getattr(most, field), NS, _where(devices, name(most.rank, most.device)))


def _of_steps(result: Result) -> Iterator[tuple[str, Value]]:
    """Step times of the slowest GPU."""
    if not result.steps:
        return
    name = gpu_namer(result.devices)
    yield "step.count", Value(min(steps.count for steps in result.steps), COUNT)
    for figure_name, field in (("step.median", "median_ns"), ("step.p95", "p95_ns"), ("step.spread", "spread")):
        slowest = max(result.steps, key=lambda steps: float(getattr(steps, field)))
        where = _where(result.devices, name(slowest.rank, slowest.device))
        yield figure_name, Value(getattr(slowest, field), FIGURES[figure_name].unit, where)


def _of_the_job(result: Result) -> Iterator[tuple[str, Value]]:
    job = result.job
    if job is None:
        # A single GPU that does not communicate waits for no other.
        yield "waiting_share", Value(0.0, SHARE)
    elif job.gpu_count > 1 and (job.matched_share or 0.0) >= MOSTLY:
        late = max(job.late_ranks, key=lambda late: late.waited_ns, default=None)
        where = f"most for {gpu_namer(result.devices)(late.rank, late.device)}" if late else None
        waited = sum(late.waited_ns for late in job.late_ranks)
        yield "waiting_share", Value(_share(waited, _windows(result)), SHARE, where)


def _of_the_roofline(result: Result) -> Iterator[tuple[str, Value]]:
    """The mean of all GPUs, each of which must tell it."""
    gpus = [device for device in result.devices if device.kernel_count]
    for figure_name, field in (("mfu", "mfu"), ("tflops", "step_tflops")):
        values = [value for one in result.roofline if (value := getattr(one, field)) is not None]
        if values and len(values) == len(gpus):
            name = gpu_namer(result.devices)
            least = min(result.roofline, key=lambda one: float(getattr(one, field)))
            where = _where(result.devices, name(least.rank, least.device))
            yield figure_name, Value(round(sum(values) / len(values), 6), FIGURES[figure_name].unit, where)


def _of_findings(result: Result) -> Iterator[tuple[str, Value]]:
    name, windows = gpu_namer(result.devices), _windows(result)
    yield "recoverable_share", Value(_share(_recoverable(result.findings), windows), SHARE)
    for severity in reversed(SEVERITIES):
        yield f"findings.{severity}", Value(sum(one.severity == severity for one in result.findings), COUNT)
    steps = sum(steps.count for steps in result.steps)
    for rule in dict.fromkeys(finding.rule for finding in result.findings):
        mine = [finding for finding in result.findings if finding.rule == rule]
        # Findings come by what a fix gives, the largest first.
        where = _where(result.devices, name(mine[0].scope.rank, mine[0].scope.device))
        yield f"{rule}.share", Value(_share(_recoverable(mine), windows), SHARE, where)
        if steps:
            yield f"{rule}.per_step", Value(round(_recoverable(mine) / steps), NS, where)
        yield f"{rule}.findings", Value(sum(map(gains, mine)), COUNT, where)


def _windows(result: Result) -> int:
    return sum(device.window_ns for device in result.devices)


def _recoverable(findings: Iterable[Finding]) -> int:
    return sum(finding.saving.recoverable_ns or 0 for finding in findings)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _where(devices: Collection[Device], gpu: str) -> str | None:
    return gpu if len(devices) > 1 else None
