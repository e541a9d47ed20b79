"""From what was found in a capture to what is compared of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis import Analysis
from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.redaction.data import redact_result
from traceanalyzer.result.captures.capture import (
    MOST_NAMES,
    MOST_SAMPLES,
    MOST_SHAPES,
    UNITS,
    Capture,
    Problem,
    Samples,
    Shape,
    Unit,
    Work,
)
from traceanalyzer.result.captures.metrics import metrics_of
from traceanalyzer.result.document import Finding, Result
from traceanalyzer.result.words.critical_path import comparable_link
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.vocabulary.levels import HIGH, MEDIUM, SEVERITIES
from traceanalyzer.vocabulary.lines import LEDGER_LINES, column

WORK_TABLES = ("work_units", "work_names", "work_shapes")
"""What `capture_of` needs of `analyze_parts` besides the usual tables."""


def capture_of(name: str, found: Analysis) -> Capture:
    """What is compared of the capture that the user called `name`, without what tells of people and machines; `found` holds the
    WORK_TABLES."""
    result, tables = redact_result(found.result, found.tables)
    assert tables is not None
    gpus = _gpus(tables)
    time = _samples(_mean([gpu.time for gpu in gpus])) if gpus else None
    return Capture(
        name=PurePath(name).name or name,
        format=", ".join(sorted({one.format for one in result.inputs})),
        gpus=[device.name for device in result.devices],
        world_size=max((one.world_size for one in result.inputs if one.world_size is not None), default=None),
        ranks=sorted({one.rank for one in result.inputs if one.rank is not None}),
        versions=versions_of(result),
        damage=damage_of(result),
        unjudged=None if result.judged else result.verdict.headline,
        headline=result.verdict.headline,
        metrics={**metrics_of(result), **found.figures},
        unit=_unit(gpus, time) if time else None,
        no_unit=None if time else "the trace holds no GPU operations that take time",
        lines=_lines(gpus),
        families=_work(tables, gpus, "family"),
        kernels=_work(tables, gpus, "kernel"),
        operators=_work(tables, gpus, "operator"),
        collectives=_work(tables, gpus, "collective"),
        shapes=_shapes(tables),
        problems=_problems(result, found.unit_claims, gpus),
        outcomes={rule.rule: rule.outcome for rule in result.rules},
        reasons={rule.rule: rule.reason for rule in result.rules if rule.reason},
        settings=result.settings,
        path=_path(result),
    )


@dataclass(frozen=True)
class _Gpu:
    """The timed units of one GPU, of which there are `units` in all; `lines` by (unit, ledger line), all in ns."""

    key: frames.Key
    units: int
    kind: str
    method: str | None
    names: list[str | None]
    time: Array
    lines: Array
    kernels: float
    first: int | None


def _gpus(tables: Tables) -> list[_Gpu]:
    """The GPUs with the surest kind of unit, each with those of its units that all of them have."""
    found = [_gpu(key, units) for key, units in frames.split(tables.table("work_units"))]
    timed = [gpu for gpu in found if gpu.time.sum()]
    kind = min((gpu.kind for gpu in timed), key=UNITS.index, default=None)
    return _side_by_side([gpu for gpu in timed if gpu.kind == kind])


def _gpu(key: frames.Key, units: pa.Table) -> _Gpu:
    timed, first = units.filter(units["timed"]), units.filter(pc.invert(units["timed"]))
    return _Gpu(
        key,
        timed.num_rows,
        timed["kind"][0].as_py(),
        timed["method"][0].as_py(),
        timed["name"].to_pylist(),
        frames.duration(timed),
        np.column_stack([frames.ints(timed, column(line)) for line in LEDGER_LINES]),
        float(frames.ints(timed, "kernels").mean()),
        int(frames.duration(first)[0]) if first.num_rows else None,
    )


def _side_by_side(gpus: list[_Gpu]) -> list[_Gpu]:
    """The same units of each: those of the same names or, where names do not tell them apart, the last ones."""
    names = [set(gpu.names) for gpu in gpus]
    shared = set.intersection(*names) if names else set()
    if shared and None not in shared and all(len(own) == len(gpu.names) for own, gpu in zip(names, gpus, strict=True)):
        return [_only(gpu, [at for at, name in enumerate(gpu.names) if name in shared]) for gpu in gpus]
    least = min((len(gpu.time) for gpu in gpus), default=0)
    return [_only(gpu, range(len(gpu.time) - least, len(gpu.time))) for gpu in gpus]


def _only(gpu: _Gpu, units: Sequence[int]) -> _Gpu:
    at = np.array(units, np.int64)
    return replace(gpu, names=[gpu.names[i] for i in units], time=gpu.time[at], lines=gpu.lines[at])


def _unit(gpus: list[_Gpu], time: Samples) -> Unit:
    firsts = [gpu.first for gpu in gpus if gpu.first is not None]
    return Unit(
        kind=gpus[0].kind,
        method=gpus[0].method,
        count=len(gpus[0].time),
        time=time,
        first_ns=sum(firsts) // len(firsts) if len(firsts) == len(gpus) else None,
        kernels=round(sum(gpu.kernels for gpu in gpus) / len(gpus), 3),
    )


def _mean(columns: Sequence[Array]) -> Array:
    """The mean of equally long columns, rounded down."""
    mean: Array = np.sum(columns, axis=0) // len(columns)
    return mean


def _lines(gpus: list[_Gpu]) -> dict[str, Samples]:
    """The ledger lines that take time. They add up to the unit, in the mean and in each sample."""
    if not gpus:
        return {}
    # Rounded as running sums, so that what one line loses the next one gains.
    lines = np.diff(_mean([np.cumsum(gpu.lines, axis=1) for gpu in gpus]), axis=1, prepend=0)
    means = np.diff(np.cumsum(lines.sum(axis=0)) // len(lines), prepend=0)
    return {
        line: Samples(int(means[at]), _thinned(lines[:, at]))
        for at, line in enumerate(LEDGER_LINES)
        if lines[:, at].any()
    }


def _samples(values: Array) -> Samples:
    return Samples(int(values.sum()) // len(values), _thinned(values))


def _thinned(values: Array) -> list[int]:
    chosen = np.unique(np.linspace(0, len(values) - 1, MOST_SAMPLES).astype(np.int64))
    return values[chosen].tolist()  # type: ignore[no-any-return]


def _work(tables: Tables, gpus: list[_Gpu], group: str) -> list[Work]:
    """By name over all GPUs, the largest first."""
    names = tables.table("work_names")
    names = names.filter(frames.equals(names, "group", group)).combine_chunks()
    own = frames.by_device(names)
    sums: dict[str, tuple[float, int, list[int]]] = {}
    for gpu in gpus:
        for row in own[gpu.key].select(["name", "count", "time", "deviation"]).to_pylist():
            count, time, deviations = sums.get(row["name"], (0.0, 0, []))
            varies = [] if row["deviation"] is None else [row["deviation"]]
            sums[row["name"]] = (count + row["count"], time + row["time"], deviations + varies)
    work = [
        Work(name, round(count / len(gpus), 3), time // len(gpus), sum(varies) // len(gpus) if varies else None)
        for name, (count, time, varies) in sums.items()
    ]
    return sorted(work, key=lambda one: (-one.ns, one.name))[:MOST_NAMES]


def _path(result: Result) -> list[Work]:
    """The links of the critical path by name, those with most time first."""
    path = result.critical_path
    if path is None or not path.step_count:
        return []
    sums: dict[str, tuple[int, int | None]] = {}
    for link in path.links:
        name = comparable_link(result, link)
        ns, deviation = sums.get(name, (0, None))
        # Of several the deviation is at most the sum of theirs.
        varies = None if link.deviation_ns is None else (deviation or 0) + link.deviation_ns
        sums[name] = ns + link.ns, varies
    work = [Work(name, 1.0, ns // path.step_count, deviation) for name, (ns, deviation) in sums.items()]
    return sorted(work, key=lambda one: (-one.ns, one.name))


def _shapes(tables: Tables) -> list[Shape]:
    """Of all ranks, the mean."""
    shapes = tables.table("work_shapes")
    ranks = len(pc.unique(shapes["rank"]))
    shapes = shapes.set_column(1, "operator", shapes["operator"].cast(pa.string()))
    summed = shapes.group_by(["operator", "shapes"]).aggregate([("count", "sum")]).to_pylist()
    ordered = sorted(summed, key=lambda row: (-row["count_sum"], row["operator"], row["shapes"]))
    return [Shape(row["operator"], row["shapes"], round(row["count_sum"] / ranks, 3)) for row in ordered[:MOST_SHAPES]]


def _problems(result: Result, unit_claims: pa.Table, gpus: list[_Gpu]) -> list[Problem]:
    """One a rule with findings, in the order of the findings."""
    claims = {rule.rule: rule.claims for rule in result.rules}
    name = gpu_namer(result.devices)
    groups: dict[str, list[Finding]] = {}
    for finding in result.findings:
        groups.setdefault(finding.rule, []).append(finding)
    found = []
    for rule, group in groups.items():
        first = group[0]
        recoverable = [one.saving.recoverable_ns for one in group if one.saving.recoverable_ns is not None]
        found.append(
            Problem(
                rule=rule,
                title=first.title,
                severity=max((finding.severity for finding in group), key=SEVERITIES.index),
                confidence=first.confidence,
                ns=_per_unit(rule, sum(recoverable), unit_claims, gpus) if recoverable and claims[rule] else None,
                lines=claims[rule],
                where=name(first.scope.rank, first.scope.device) if first.scope.device is not None else "the job",
                message=first.message,
            )
        )
    return found


def _per_unit(rule: str, recoverable: int, unit_claims: pa.Table, gpus: list[_Gpu]) -> int:
    """What a rule recovers within the timed units, per unit and GPU: of what it claims there the same share as everywhere."""
    own = unit_claims.filter(pc.equal(unit_claims["rule"], rule))
    claimed = pc.sum(own["claimed"]).as_py() or 0
    counts = {gpu.key: gpu.units for gpu in gpus}
    keys = zip(own["rank"].to_pylist(), own["device"].to_pylist(), own["inside"].to_pylist(), strict=True)
    inside = sum(ns / counts[rank, device] for rank, device, ns in keys if (rank, device) in counts)
    return round(inside / len(gpus) * recoverable / claimed) if claimed and gpus else 0


def damage_of(result: Result) -> list[str]:
    """What hides part of the run."""
    return [f"{note.code}: {note.message}" for note in result.health if note.severity in (MEDIUM, HIGH)]


def versions_of(result: Result) -> dict[str, str]:
    """Of the profiler, the libraries and the drivers, where the traces say it."""
    found: dict[str, set[str]] = {}
    for one in result.inputs:
        for name, version in {"profiler": one.producer, **one.versions}.items():
            found.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}
