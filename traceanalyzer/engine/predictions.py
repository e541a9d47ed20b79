"""Beside the ledger's ceiling: how long a step takes without what a finding claimed, from the replayed timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.culprits import Culprits
from traceanalyzer.derive.whatif import MOST_WRONG, WhatIf
from traceanalyzer.intervals import Spans, total, union
from traceanalyzer.result.document import Finding, PlaceSaving, Saving
from traceanalyzer.units import format_share

WITHHELD = f"No prediction: the timeline cannot be replayed within {format_share(MOST_WRONG)} of itself"
SHARED = "No prediction: the rule has several findings on this GPU, and what each of them claimed is not told apart"
Claimed = dict[str, Spans]


def with_predictions(
    findings: Sequence[Finding], claims: pa.Table, what_if: WhatIf, culprits: Culprits
) -> list[Finding]:
    """The findings with a prediction for each that claimed time on one GPU; `claims` as in CLAIMS_SCHEMA."""
    claimed = _by_rule(claims)
    count = Counter((finding.rule, finding.scope) for finding in findings)
    result = []
    for finding in findings:
        rank, device, saving = finding.scope.rank, finding.scope.device, finding.saving
        if rank is not None and device is not None and (own := claimed.get((finding.rule, (rank, device)))):
            if count[finding.rule, finding.scope] > 1:
                saving = replace(saving, prediction_note=saving.prediction_note or SHARED)
            else:
                saving = _predicted(saving, (rank, device), own, what_if)
                saving = _with_place(saving, (rank, device), own, what_if, culprits)
        result.append(replace(finding, saving=saving))
    return result


def _predicted(saving: Saving, key: frames.Key, claimed: Claimed, what_if: WhatIf) -> Saving:
    if not saving.recoverable_ns or saving.prediction_note:
        return saving
    # A rule that estimates takes a share of what it claimed; the rest of that GPU time stays.
    keep = 1 - saving.recoverable_ns / sum(total(spans) for spans in claimed.values())
    found = what_if.without(key, claimed, keep)
    if found is None:
        return replace(saving, prediction_note=WITHHELD)
    speedup = round(found.now / found.then, 6) if found.then else None
    if not found.per_step:
        return replace(saving, predicted_speedup=speedup)
    return replace(saving, step_ns=found.now, predicted_step_ns=found.then, predicted_speedup=speedup)


def _with_place(saving: Saving, key: frames.Key, claimed: Claimed, what_if: WhatIf, culprits: Culprits) -> Saving:
    """With the one place that causes most of the time, and what its own share of the claim gives."""
    if not saving.recoverable_ns or (culprit := culprits.of(key, claimed)) is None:
        return saving
    per_step = culprit.ns * saving.per_step_ns // saving.recoverable_ns if saving.per_step_ns else None
    place = PlaceSaving(culprit.name, culprit.ns, per_step, None, None)
    found = what_if.without(key, culprit.claimed, 0.0) if saving.predicted_speedup is not None else None
    if found is not None and found.then:
        then = found.then if found.per_step else None
        place = replace(place, predicted_step_ns=then, predicted_speedup=round(found.now / found.then, 6))
    return replace(saving, place=place)


def _by_rule(claims: pa.Table) -> dict[tuple[str, frames.Key], Claimed]:
    """What each rule claimed on each GPU, by ledger line."""
    texts = pa.table({c: claims[c].combine_chunks().dictionary_encode() for c in ("rule", "line")})
    (rule, rules), (line, lines) = (frames.codes(texts, c) for c in ("rule", "line"))
    rank, device, start, end = (frames.ints(claims, c) for c in ("rank", "device", "start_ns", "end_ns"))
    result: dict[tuple[str, frames.Key], Claimed] = {}
    for (one, on, number, other), rows in frames.together(rule, line, rank, device):
        own = result.setdefault((str(rules[one]), (number, other)), {})
        own[str(lines[on])] = union(start[rows], end[rows])
    return result
