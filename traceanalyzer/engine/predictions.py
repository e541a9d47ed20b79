"""Beside the ledger's ceiling: how long a step takes without what a finding claimed, from the replayed timeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.whatif import MOST_WRONG, WhatIf
from traceanalyzer.intervals import Spans, total, union
from traceanalyzer.result.document import Finding, Saving
from traceanalyzer.units import format_share

WITHHELD = f"No prediction: the timeline cannot be replayed within {format_share(MOST_WRONG)} of itself"
Claimed = dict[str, Spans]


def with_predictions(findings: Iterable[Finding], claims: pa.Table, what_if: WhatIf) -> list[Finding]:
    """The findings with a prediction for each that claimed time on one GPU; `claims` as in CLAIMS_SCHEMA."""
    claimed = _by_finding(claims)
    result = []
    for finding in findings:
        rank, device = finding.scope.rank, finding.scope.device
        if rank is not None and device is not None and (own := claimed.get((finding.rule, (rank, device)))):
            result.append(replace(finding, saving=_predicted(finding.saving, (rank, device), own, what_if)))
        else:
            result.append(finding)
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


def _by_finding(claims: pa.Table) -> dict[tuple[str, frames.Key], Claimed]:
    """What each rule claimed on each GPU, by ledger line."""
    texts = pa.table({c: claims[c].combine_chunks().dictionary_encode() for c in ("rule", "line")})
    (rule, rules), (line, lines) = (frames.codes(texts, c) for c in ("rule", "line"))
    rank, device = frames.ints(claims, "rank"), frames.ints(claims, "device")
    start, end = frames.ints(claims, "start_ns"), frames.ints(claims, "end_ns")
    code = frames.dense(rule, rank, device, line) if len(rule) else rule
    order = np.argsort(code, kind="stable")
    result: dict[tuple[str, frames.Key], Claimed] = {}
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(order) else []:
        first = rows[0]
        own = result.setdefault((str(rules[rule[first]]), (int(rank[first]), int(device[first]))), {})
        own[str(lines[line[first]])] = union(start[rows], end[rows])
    return result
