"""What took each GPU's window, for the verdict: every ns by the category of the rule that claimed it, else by its ledger line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.engine.causes import LINE_CAUSE, cause_of
from traceanalyzer.engine.claims import ClaimBook, Gpu
from traceanalyzer.engine.culprits import WHOLE
from traceanalyzer.engine.finding import Describe
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding
from traceanalyzer.result.verdict import Culprit, Pace, Split
from traceanalyzer.units import format_bytes, format_count, format_duration
from traceanalyzer.vocabulary.levels import INFO
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_COMMUNICATION, MPI, column
from traceanalyzer.vocabulary.losses import CAUSES, LAUNCH, LAUNCH_COPIES

# Rules that say of a loss what its cause says already.
GENERAL = ("INP001", "HST001", "HST005", "LCH001", "SYN001", "MEM001", "GAP001", "CPY001", "COM001")
WHOLES = {LAUNCH_COPIES.name: LAUNCH.name}
"""Causes that the ledger does not tell apart from another."""
LEAK = "MEM005"
SMALL_ONES, MOST_CALLS = "COM003", 0.5
"""The rule about many small collectives, and from which share of its time on it is the calls for them that cost it."""
STEADY = 0.3
"""Steps of which nearly all are at most this much longer than their median are alike."""
SAME = 0.05
"""A place of a finding that holds as much, to this share, is the same one."""
TOGETHER = (EXPOSED_COMMUNICATION.name, MPI.name)
"""Lines in which ranks meet."""
MOSTLY_STEPS = 0.5
"""Where steps cover less than this of the window, what takes its time is not told by the step."""
Row = dict[str, Any]
CLAIM_SUMS = pa.schema(
    [
        ("rank", pa.int32()),
        ("device", pa.int32()),
        ("line", pa.string()),
        ("category", pa.string()),
        ("rule", pa.string()),
        ("ns_sum", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Told:
    """What is known of all GPUs: the tables `ledger` and `step_ledger`, `claim_sums` (see `claim_sums`), `culprits` as in CULPRITS, the
    `findings` about one GPU and those about the whole `job`, the largest gain first, and their `first_sentences` by message; `apart` is
    how long each GPU only communicates while not all ranks record, in ns."""

    ledger: pa.Table
    step_ledger: pa.Table
    claimed: pa.Table
    culprits: pa.Table
    findings: Sequence[Finding]
    job: Sequence[Finding]
    first_sentences: Mapping[str, str]
    apart: Mapping[Gpu, int] = field(default_factory=dict)


def splits(told: Told, describe: Describe) -> list[Split]:
    """The windows in the order of the ledger."""
    claims, guilty = _rows_by_gpu(told.claimed), _rows_by_gpu(told.culprits)
    steps = frames.by_device(told.step_ledger)
    found: dict[tuple[int | None, int | None], list[Finding]] = defaultdict(list)
    for finding in told.findings:
        found[finding.scope.rank, finding.scope.device].append(finding)
    titles = {finding.rule: finding.title for finding in told.findings}
    # Of several findings of one rule the largest speaks.
    said = {finding.rule: told.first_sentences[finding.message] for finding in reversed(told.job)}
    result = []
    for row in told.ledger.to_pylist():
        gpu = (row["rank"], row["device"])
        mine = claims[gpu]
        result.append(
            Split(
                describe(*gpu),
                row["duration"],
                row["idle"],
                _by_cause(row, mine, guilty[gpu]),
                waste=_waste(mine, found[gpu]),
                sharper=_sharper(mine, titles),
                waited=_waited(mine, said),
                explained=sum(claim["ns_sum"] for claim in mine if claim["line"] in TOGETHER),
                culprits=tuple(_culprit(one, found[gpu]) for one in guilty[gpu] if one["level"] > WHOLE),
                pace=_pace(steps[gpu], row["duration"]),
                beside=_beside(found[gpu], told.first_sentences),
                calls=_calls(mine, found[gpu]),
                apart=told.apart.get(gpu, 0),
                unseen=row.get("earlier_work", 0),
            )
        )
    return result


def _culprit(row: Row, findings: Sequence[Finding]) -> Culprit:
    """With the time a step of the finding whose place it is: nothing is told twice with two figures."""
    savings = (finding.saving for finding in findings if finding.saving.place and finding.saving.step_ns)
    step = next(
        (
            (one.place.per_step_ns, one.step_ns)
            for one in savings
            if one.place and one.step_ns and one.place.per_step_ns and abs(one.place.ns - row["ns"]) <= SAME * row["ns"]
        ),
        None,
    )
    return Culprit(CAUSES[row["cause"]].bound_by, row["level"], row["subject"], row["ns"], step)


def _rows_by_gpu(table: pa.Table) -> dict[Gpu, list[Row]]:
    rows: dict[Gpu, list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row["rank"], row["device"]].append(row)
    return rows


def _pace(steps: pa.Table, window: int) -> Pace | None:
    """The steps of one GPU that were recorded whole; None where they are not what its window consists of."""
    length = frames.duration(steps.filter(steps["complete"]))
    if len(length) < 2 or length.sum() < MOSTLY_STEPS * window:
        return None
    median, late = np.quantile(length, (0.5, 0.95))
    return Pace(round(float(length.mean())), bool(late <= (1 + STEADY) * median))


def _beside(findings: Sequence[Finding], first_sentences: Mapping[str, str]) -> str | None:
    """What a finding says that no time can be given for, a leak before all else."""
    mattering = [one for one in findings if one.saving.recoverable_ns is None and one.severity != INFO]
    first = min(mattering, key=lambda one: one.rule != LEAK, default=None)
    if first is None:
        return None
    said = first_sentences[first.message]
    return said[:1].lower() + said[1:]


def claim_sums(book: ClaimBook) -> pa.Table:
    """All claims added up, as in CLAIM_SUMS."""
    sums: dict[tuple[int, int, str, str, str], int] = defaultdict(int)
    for claim in book.all():
        sums[claim.rank, claim.device, claim.line, claim.category, claim.rule] += claim.ns
    columns = zip(*((*key, ns) for key, ns in sums.items()), strict=True) if sums else [()] * len(CLAIM_SUMS)
    return pa.table([*columns], schema=CLAIM_SUMS)


def _by_cause(row: Row, claimed: list[Row], culprits: list[Row]) -> dict[str, int]:
    lines = {line: row[column(line)] for line in LINE_CAUSE}
    by_cause: dict[str, int] = dict.fromkeys((COMPUTE.name, *CAUSES), 0)
    for claim in claimed:
        lines[claim["line"]] -= claim["ns_sum"]
        by_cause[cause_of(claim["category"], claim["line"])] += claim["ns_sum"]
    for line, ns in lines.items():
        by_cause[LINE_CAUSE[line]] += ns
    for one in culprits:
        if one["level"] == WHOLE:
            by_cause[one["cause"]] += one["ns"]
            by_cause[WHOLES[one["cause"]]] -= one["ns"]
    return by_cause


def _waste(claimed: list[Row], findings: list[Finding]) -> tuple[int, str] | None:
    """The largest saving on the GPU that lies in how it computes, and the title of its finding."""
    computing = {claim["rule"]: claim["ns_sum"] for claim in claimed if claim["line"] == COMPUTE.name}
    here = [
        (min(round(finding.saving.gain_ns), computing[finding.rule]), finding.title)
        for finding in findings
        if finding.rule in computing and finding.saving.pays
    ]
    return max(here, key=lambda one: one[0], default=None)


def _waited(claimed: list[Row], said: dict[str, str]) -> tuple[int, str] | None:
    """How long the GPU waits for others, by the rule about the job that explains most of it, and what that says first."""
    ns = {claim["rule"]: claim["ns_sum"] for claim in claimed if claim["rule"] in said}
    if not ns:
        return None
    rule = max(sorted(ns), key=lambda name: ns[name])
    return ns[rule], said[rule]


def _calls(claimed: list[Row], findings: Sequence[Finding]) -> tuple[int, str] | None:
    """How long the GPU waits and sends in many small collectives, where most of that is for the calls, and that in words."""
    one = next((one for one in findings if one.rule == SMALL_ONES), None)
    if one is None or not one.saving.pays:
        return None
    count, size, kind, called = (one.metrics[name].value for name in ("per_step", "size", "kind", "called"))
    own = sum(claim["ns_sum"] for claim in claimed if claim["rule"] == SMALL_ONES)
    if not isinstance(called, int | float) or called < MOST_CALLS * own:
        return None
    part, step = one.saving.per_step_ns, one.saving.step_ns
    much = f"{format_duration(part)} of each {format_duration(step)} step" if part and step else format_duration(own)
    what = f"mostly {kind or 'unnamed'}, typically {format_bytes(round(float(size or 0)))}"
    said = f"{format_count(round(float(count or 0)))} small collectives a step ({what}) are called for one by one"
    return own, f"{said}, which costs {much} that a few large ones (buckets) would save"


def _sharper(claimed: list[Row], titles: dict[str, str]) -> tuple[tuple[str, int, str], ...]:
    """What rules on the GPU say of a loss beyond its cause: (cause, ns, title of the finding), the largest first."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for claim in claimed:
        cause = cause_of(claim["category"], claim["line"])
        if cause != COMPUTE.name and claim["rule"] in titles and claim["rule"] not in GENERAL:
            found[cause, titles[claim["rule"]]] += claim["ns_sum"]
    return tuple(
        (cause, ns, title) for (cause, title), ns in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    )
