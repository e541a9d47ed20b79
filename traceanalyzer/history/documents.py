"""From a result document, without the trace that it is of, to what can be compared of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import fmean

import msgspec

from traceanalyzer.analysis.captures import Run
from traceanalyzer.analysis.capturing import damage_of, versions_of
from traceanalyzer.errors import InputError
from traceanalyzer.files import open_regular
from traceanalyzer.model.trace import EPOCH_NS
from traceanalyzer.redaction.data import redact_result
from traceanalyzer.redaction.people import file_name
from traceanalyzer.result.captures.capture import Capture, Problem, Samples, Unit
from traceanalyzer.result.captures.metrics import metrics_of
from traceanalyzer.result.document import Device, Finding, Result
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.vocabulary.levels import SEVERITIES
from traceanalyzer.vocabulary.lines import LINES, Line

OF_DOCUMENT = "the median of a result document"
"""What the method of a unit ends with: a median is no mean, so a capture that was read itself is no measure for it."""
_HEAD_BYTES = 4096
_MOST_BYTES = 1 << 30
_BEGINS = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*"[^"]*"\s*,\s*"tool"\s*:\s*\{[^{}]*\}\s*,\s*"inputs"\s*:')


def is_document(path: Path) -> bool:
    """Whether a file begins as a result document does. False for what is no file or cannot be read."""
    try:
        with open_regular(path) as file:
            return _BEGINS.match(file.read(_HEAD_BYTES)) is not None
    except (OSError, ValueError):
        return False


def run_of_document(path: Path) -> Run:
    """The run that a result document is of, without its samples, kernels and operators. Raises InputError."""
    again = "write it again with `traceanalyzer analyze TRACE --format json`"
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path}: is too large for a result document; {again}")
        result = Result.from_json(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: a result document with a field that does not fit ({error}); {again}") from error
    start_ns = next((one.start_ns for one in result.recordings), 0)
    name = file_name(result.inputs[0].path) if len(result.inputs) == 1 else file_name(str(path))
    recorded_ns = start_ns if start_ns >= EPOCH_NS else None
    return Run(path, [capture_of_result(name or path.name, result)], result, recorded_ns)


def capture_of_result(name: str, result: Result) -> Capture:
    """What a result says of a capture: the median step, with the ledgers of whole windows and the findings scaled to it."""
    result, _ = redact_result(result, None)
    steps = {(one.rank, one.device): one for one in result.steps if one.count and one.median_ns}
    gpus = [one for one in result.devices if (one.rank, one.device) in steps and one.window_ns]
    medians = [steps[one.rank, one.device].median_ns for one in gpus]
    unit_ns = round(fmean(medians)) if medians else 0
    lines = _lines(gpus, unit_ns)
    kernels = [one.kernel_count * ns / one.window_ns for one, ns in zip(gpus, medians, strict=True)]
    methods = sorted({steps[one.rank, one.device].method for one in gpus})
    unit = Unit(
        kind="step",
        method=f"{', '.join(methods)}, {OF_DOCUMENT}",
        count=min((steps[one.rank, one.device].count for one in gpus), default=1),
        time=Samples(unit_ns, [unit_ns]),
        first_ns=None,
        kernels=round(fmean(kernels), 3) if kernels else 0.0,
    )
    return Capture(
        name=name,
        format=", ".join(sorted({one.format for one in result.inputs})),
        gpus=[device.name for device in result.devices],
        world_size=max((one.world_size for one in result.inputs if one.world_size is not None), default=None),
        ranks=sorted({one.rank for one in result.inputs if one.rank is not None}),
        versions=versions_of(result),
        damage=damage_of(result),
        unjudged=None if result.judged else result.verdict.headline,
        headline=result.verdict.headline,
        metrics=metrics_of(result),
        unit=unit if gpus else None,
        no_unit=None if gpus else "the result document tells no steps",
        lines={line: Samples(ns, [ns]) for line, ns in lines.items() if ns},
        families=[],
        kernels=[],
        operators=[],
        collectives=[],
        shapes=[],
        problems=_problems(result, unit_ns),
        outcomes={rule.rule: rule.outcome for rule in result.rules},
        reasons={rule.rule: rule.reason for rule in result.rules if rule.reason},
        settings=result.settings,
    )


def _lines(gpus: Sequence[Device], unit_ns: int) -> dict[str, int]:
    """The ledgers of the windows, scaled to a unit, which the lines add up to."""
    sums = [sum(_on_line(line, gpu) for gpu in gpus) for line in LINES.values()]
    whole = sum(sums)
    # Rounded as running sums, so that what one line loses the next one gains.
    ends = [end * unit_ns // whole for end in accumulate(sums, initial=0)] if whole else []
    return dict(zip(LINES, (end - start for start, end in pairwise(ends)), strict=False))


def _on_line(line: Line, gpu: Device) -> int:
    if line.is_idle:
        return gpu.idle_by_cause_ns.get(line.cause, 0)
    return int(getattr(gpu, f"{line.column}_ns"))


def _problems(result: Result, unit_ns: int) -> list[Problem]:
    """One a rule with findings, in the order of the findings."""
    rules = {rule.rule: rule for rule in result.rules}
    windows = sum(device.window_ns for device in result.devices)
    name = gpu_namer(result.devices)
    groups: dict[str, list[Finding]] = {}
    for finding in result.findings:
        groups.setdefault(finding.rule, []).append(finding)
    found = []
    for rule, group in groups.items():
        first, claims = group[0], rules[rule].claims if rule in rules else []
        recoverable = [one.saving.recoverable_ns for one in group if one.saving.recoverable_ns is not None]
        found.append(
            Problem(
                rule=rule,
                title=first.title,
                severity=max((finding.severity for finding in group), key=SEVERITIES.index),
                confidence=first.confidence,
                ns=sum(recoverable) * unit_ns // windows if recoverable and claims and windows else None,
                lines=claims,
                where=name(first.scope.rank, first.scope.device) if first.scope.device is not None else "the job",
                message=first.message,
            )
        )
    return found
