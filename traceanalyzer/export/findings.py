"""The findings as a process of their own at the top of the trace: a track a rule, on it each piece of evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from traceanalyzer.export.text import micros
from traceanalyzer.export.tracks import Numbers, layers
from traceanalyzer.result.advice import plain
from traceanalyzer.result.document import Evidence, Finding, Result
from traceanalyzer.result.words.speedups import times_range

PROCESS = "traceanalyzer findings"


def write_findings(result: Result, zero_of: Callable[[Evidence], int | None], numbers: Numbers, out: IO[bytes]) -> None:
    """Write the evidence for which `zero_of` tells the time on its own clock, in ns, that is 0 in the trace."""
    process = numbers.process(PROCESS)
    for rule in dict.fromkeys(finding.rule for finding in result.findings):
        own = [finding for finding in result.findings if finding.rule == rule]
        every = [(finding, one, zero_of(one)) for finding in own for one in finding.evidence if one.has_time]
        items = [(finding, one, zero) for finding, one, zero in every if zero is not None]
        starts = np.array([one.start_ns - zero for _, one, zero in items], np.int64)
        ends = np.maximum(np.array([one.end_ns - zero for _, one, zero in items], np.int64), starts)
        order = np.lexsort((-ends, starts))
        order = order[starts[order] >= 0]
        layer = layers(starts[order], ends[order])
        title = f"{rule} {own[0].title}"
        tracks = [numbers.track(process, title) for _ in range(int(layer.max(initial=-1)) + 1)]
        times = zip(micros(starts[order]).to_pylist(), micros((ends - starts)[order]).to_pylist(), strict=True)
        for at, track, (start, duration) in zip(order.tolist(), layer.tolist(), times, strict=True):
            finding, one, _ = items[at]
            about = json.dumps(
                {"cat": "traceanalyzer.finding", "name": one.label, "args": _args(finding, one)}, ensure_ascii=False
            )
            place = f'"ph":"X","pid":{process},"tid":{tracks[track]},"ts":{start},"dur":{duration}'
            out.write(f"{{{place},{about[1:]},\n".encode())


def _args(finding: Finding, evidence: Evidence) -> dict[str, Any]:
    saving = finding.saving
    facts = {
        "severity": finding.severity,
        "confidence": finding.confidence,
        "message": finding.message,
        "rank": evidence.rank,
        "GPU": evidence.device,
        "recoverable ms": None if saving.recoverable_ns is None else saving.recoverable_ns / 1e6,
        "predicted speedup": times_range(saving.predicted_speedup_range)
        if saving.predicted_speedup_range
        else saving.predicted_speedup,
        "condition": saving.prediction_note,
        "speedup at most": saving.speedup_ceiling,
        "what to change": "\n".join(plain(text) for advice in finding.recommend for text in advice.values()) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}
