"""What took each GPU's window, for the verdict: every ns by the category of the rule that claimed it, else by its ledger line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.derive.tables.ledger import IDLE_CAUSES
from traceanalyzer.engine.finding import Describe
from traceanalyzer.result.document import Finding
from traceanalyzer.result.verdict import CAUSES, Split

# What takes the time of each ledger line, as long as no rule knows better (keys of the verdict's CAUSES, or "compute").
LINE_CAUSE = {
    "compute": "compute",
    "exposed_communication": "communication",
    "exposed_memcpy": "memcpy",
    "exposed_memset": "memset",
    "idle.launch_latency": "launch",
    "idle.host_work": "host",
    **{f"idle.{cause}": cause for cause in IDLE_CAUSES if cause not in ("launch_latency", "host_work")},
}
# Rules that say of idle time what its cause says already.
GENERAL = ("INP001", "HST001", "LCH001", "SYN001", "MEM001", "GAP001")
Row = dict[str, Any]


def splits(
    ledger: pa.Table, claimed: pa.Table, findings: Sequence[Finding], job: Sequence[Finding], describe: Describe
) -> list[Split]:
    """The windows in the order of `ledger`. `claimed` as below, `findings` about one GPU and `job` about all, largest saving first."""
    by_gpu: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in claimed.to_pylist():
        by_gpu[row["rank"], row["device"]].append(row)
    found: dict[tuple[int | None, int | None], list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.scope.rank, finding.scope.device].append(finding)
    titles = {finding.rule: finding.title for finding in findings}
    # Of several findings of one rule the largest speaks.
    said = {finding.rule: finding.message.partition(". ")[0].removesuffix(".") for finding in reversed(job)}
    result = []
    for row in ledger.to_pylist():
        gpu = (row["rank"], row["device"])
        waste, sharper = _waste(by_gpu[gpu], found[gpu]), _sharper(by_gpu[gpu], titles)
        causes, waited = _by_cause(row, by_gpu[gpu]), _waited(by_gpu[gpu], said)
        explained = sum(claim["ns_sum"] for claim in by_gpu[gpu] if claim["line"] == "exposed_communication")
        unseen = row["earlier_work"]
        result.append(
            Split(describe(*gpu), row["duration"], row["idle"], causes, waste, sharper, waited, explained, unseen)
        )
    return result


def claimed(claims: pa.Table) -> pa.Table:
    """Claims, as in CLAIMS_SCHEMA, added up: `ns_sum` by rank, device, line, category and rule."""
    keys = ["rank", "device", "line", "category", "rule"]
    table = pa.table({**{k: claims[k] for k in keys}, "ns": pc.subtract(claims["end_ns"], claims["start_ns"])})
    sums = table.group_by(keys, use_threads=False).aggregate([("ns", "sum")])
    return sums.cast(
        pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in sums.schema])
    )


def _by_cause(row: Row, claimed: list[Row]) -> dict[str, int]:
    lines = {line: row[line.replace("idle.", "idle_")] for line in LINE_CAUSE}
    by_cause: dict[str, int] = dict.fromkeys(("compute", *CAUSES), 0)
    for claim in claimed:
        lines[claim["line"]] -= claim["ns_sum"]
        by_cause[_cause(claim["category"], claim["line"])] += claim["ns_sum"]
    for line, ns in lines.items():
        by_cause[LINE_CAUSE[line]] += ns
    return by_cause


def _cause(category: str, line: str) -> str:
    """What a claimed part of a line was lost to. The sentence counts idle time by cause, so idle and busy never mix."""
    cause = CAUSES.get(category)
    # This category only gathers what lies on its lines; the lines say more, but for a launch that the host held up by loading code.
    if (
        cause is None
        or line == "compute"
        or cause.idle != line.startswith("idle.")
        or (category == "host" and line != "idle.launch_latency")
    ):
        return LINE_CAUSE[line]
    return category


def _waste(claimed: list[Row], findings: list[Finding]) -> tuple[int, str] | None:
    """The largest saving on the GPU that lies in how it computes, and the title of its finding."""
    computing = {claim["rule"]: claim["ns_sum"] for claim in claimed if claim["line"] == "compute"}
    here = [
        (min(finding.saving.recoverable_ns or 0, computing[finding.rule]), finding.title)
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


def _sharper(claimed: list[Row], titles: dict[str, str]) -> tuple[tuple[str, int, str], ...]:
    """What rules on the GPU say of idle time beyond its cause: (cause, ns, title of the finding), the largest first."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for claim in claimed:
        cause = CAUSES.get(claim["category"])
        told = claim["rule"] in titles and claim["rule"] not in GENERAL
        if told and claim["line"].startswith("idle.") and cause is not None and cause.idle:
            found[claim["category"], titles[claim["rule"]]] += claim["ns_sum"]
    return tuple(
        (cause, ns, title) for (cause, title), ns in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    )
