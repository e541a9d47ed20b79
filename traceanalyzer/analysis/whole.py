"""From what was found in each part to the result document of the whole job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis.critical_path import critical_path_of
from traceanalyzer.analysis.evidence import headlines, rules_about
from traceanalyzer.analysis.examine import Examination, about_the_job, part_tables
from traceanalyzer.analysis.job import job_of
from traceanalyzer.analysis.job_shape import hosts_of_job
from traceanalyzer.analysis.join import Join, gpu_names
from traceanalyzer.analysis.roofline import rates, rooflines
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.catalog.declarations import declared, event_tables
from traceanalyzer.columns import frames
from traceanalyzer.config import Config
from traceanalyzer.derive.ledger.shared import SharedGpu
from traceanalyzer.derive.recording.health import soften
from traceanalyzer.derive.recording.program import program_of
from traceanalyzer.derive.replay.unprofiled import job_unprofiled_steps
from traceanalyzer.engine.advice import fitting
from traceanalyzer.engine.finding import Describe
from traceanalyzer.engine.gain import by_gain, level_findings
from traceanalyzer.engine.outcomes import in_own_words, merge_outcomes
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.engine.run import EngineResult, run_rules
from traceanalyzer.engine.splits import Told, claim_sums, splits
from traceanalyzer.model.placed import PLACED
from traceanalyzer.model.schema import EVENT_TABLES
from traceanalyzer.model.trace import Trace
from traceanalyzer.result.document import (
    Device,
    Evidence,
    EvidenceInfo,
    Finding,
    Health,
    InputInfo,
    OutsideWork,
    Recording,
    Result,
    RuleOutcome,
    Scope,
    Steps,
)
from traceanalyzer.result.settings import Settings
from traceanalyzer.result.verdict import Split, judge, one_gpu, unjudged_headline, verdict_on_evidence, with_evidence
from traceanalyzer.result.words.gpu_names import shared_name
from traceanalyzer.result.words.outside import with_outside
from traceanalyzer.version import VERSION
from traceanalyzer.vocabulary.levels import CLEAN, HIGH, MEDIUM
from traceanalyzer.vocabulary.lines import BUSY_LINES, COMPUTE, EXPOSED_COMMUNICATION, IDLE, LINES, column

_SUMMED = (
    *(line.column for line in LINES.values() if line is not COMPUTE),
    *("idle", "gpu_op_count", "kernel_count"),
)
"""Columns of `ledger` that the portions of one GPU add up to its own."""
Unprofiled = dict[frames.Key, dict[str, int]]
"""Rows of `unprofiled_steps`."""


def run_job_rules(parts: Sequence[Examination], tables: Catalog, config: Config, rules: Sequence[Rule]) -> EngineResult:
    """Those of the rules that are about the whole job; `tables` as of `job_tables`."""
    about = [rule for rule in rules if about_the_job(rule)]
    return run_rules(about, tables, _describe(parts), config.disable, "stall_intervals", tables.value("job_replay"))


def _describe(parts: Sequence[Examination]) -> Describe:
    traces = [part.input for part in parts if part.input.witness is None]
    alone = [part.input for part in parts if part.input.witness is not None]
    names = gpu_names(traces) | gpu_names(alone, beside_others=bool(traces))
    return lambda rank, device: names[rank](device)


def job_result(
    parts: Sequence[Examination],
    join: Join,
    tables: Catalog,
    job: EngineResult,
    rules: Sequence[Rule],
    settings: Settings,
    evidence: Sequence[EvidenceInfo] = (),
) -> Result:
    """The result document of a job; `parts` in the order of their ordinals, `tables` as of `job_tables`, `job` what the rules about all
    of it came to, `evidence` what is said of files that are no traces."""
    inputs = tuple(part.input for part in parts)
    found = [finding for part in parts for finding in part.findings] + job.findings
    findings = by_gain(level_findings(found, {rule.id for rule in rules if rule.severity}))
    first_sentences = dict(job.first_sentences)
    for part in parts:
        first_sentences.update(part.first_sentences)
    told = Told(
        tables.table("ledger"),
        tables.table("step_ledger"),
        pa.concat_tables([*(part.claimed for part in parts), claim_sums(job.claims)]),
        pa.concat_tables([part.culprits for part in parts]),
        findings,
        [finding for finding in findings if finding.rule in {one.rule for one in job.findings}],
        first_sentences,
        _apart(tables),
    )
    traits = frozenset(tables.table("program")["name"].to_pylist())
    recorded = frozenset(kind for one in inputs for kind in one.traced)
    ranks = {one.ordinal: one.rank for one in inputs}
    # Evidence that is judged alone hides nothing of what traces tell.
    aside = {one.ordinal for one in inputs if one.witness is not None} if any(not one.witness for one in inputs) else ()
    health = [
        Health(
            row["code"],
            MEDIUM if row["rank"] in aside and row["severity"] == HIGH else row["severity"],
            row["message"],
            row["count"],
            ranks.get(row["rank"]),
        )
        for row in tables.table("health").to_pylist()
    ]
    ledger = tables.table("ledger").to_pylist()
    by_gpu, exposed = list(_by_gpu(ledger, join.shared)), _exposed_parts(tables)
    devices, keys = (
        [_device(ranks, exposed, *one) for one in by_gpu],
        [(row["rank"], row["device"]) for row, _ in by_gpu],
    )
    together = job_of(tables, join, ranks)
    unprofiled = {
        (row["rank"], row["device"]): row
        for row in job_unprofiled_steps(tables.table("unprofiled_steps"), tables.table("communication")).to_pylist()
    }
    findings = [_unprofiled(finding, unprofiled) for finding in findings]
    shared = {user for gpu in join.shared for user in gpu.users}
    reached = rates(tables, shared)
    found_splits = [
        replace(split, rate=reached.get((row["rank"], row["device"])))
        for split, row in zip(splits(told, _describe(parts)), ledger, strict=True)
    ]
    outcomes = [*merge_outcomes([part.outcomes for part in parts]), *job.outcomes]
    result = Result(
        tool={"name": "traceanalyzer", "version": VERSION},
        inputs=[
            InputInfo(i.path, i.sha256, i.bytes, i.format, i.producer, i.rank, i.world_size, i.rank_source, i.versions)
            for i in inputs
            if i.witness is None
        ],
        health=health,
        devices=devices,
        recordings=_recordings(ranks, tables),
        steps=_steps(ranks, tables.table("step_ledger"), ledger, unprofiled),
        findings=[_with_job_ranks(ranks, _in_words_of(traits, recorded, finding), aside) for finding in findings],
        rules=_in_order(outcomes, rules, settings),
        settings=settings,
        job=together and replace(together, hosts=hosts_of_job(tables, devices, keys, together)),
        program=program_of(tables.table("program")),
        verdict=judge(_once_each(found_splits, ledger, join, ranks), hidden=_hidden(health)),
        evidence=list(evidence),
        roofline=rooflines(tables, ranks, shared),
        critical_path=critical_path_of(tables, ranks, len(ledger)),
    )
    if evidence and not result.inputs:
        said = headlines((one.kind for one in evidence), rules, result.findings, tables)
        return replace(result, verdict=verdict_on_evidence(result, first_sentences, said))
    verdict = with_outside(result.verdict, result.recordings, result.findings)
    kinds = {one.kind for one in evidence if one.placed_by}
    about = {rule.id for rule in rules_about(rules, kinds, alone=True)}
    told_of = [finding for finding in result.findings if finding.rule in about]
    said = headlines(kinds, rules, result.findings, tables)
    return replace(result, verdict=with_evidence(verdict, told_of, first_sentences, said))


def job_tables(parts: Sequence[Examination], join: Join, health: pa.Table, also: Sequence[str] = ()) -> Catalog:
    """The small tables of all parts together and those that they were `also` asked for, and what is derived of those; `health` is of
    files that are no part."""
    stacked = {name: _stacked(parts, name) for name in part_tables(also)}
    stacked["health"] = pa.concat_tables([stacked["health"], join.health, health])
    if stacked["ledger"].num_rows:
        stacked["health"] = soften(stacked["health"], stacked["ledger"]["rank"].to_pylist())
    empty = Trace(tuple(part.input for part in parts), {name: spec.empty() for name, spec in EVENT_TABLES.items()})
    return Catalog(empty, given=stacked)


def _stacked(parts: Sequence[Examination], name: str) -> pa.Table:
    own = [part.tables[name] for part in parts if name in part.tables]
    if own:
        return frames.concatenated(own)
    made = declared().get(name)
    spec = event_tables().get(name, PLACED) if made is None or made.spec is None else made.spec
    return spec.empty()


def _apart(tables: Catalog) -> dict[frames.Key, int]:
    communication = tables.table("communication")
    if not communication.num_rows:
        return {}
    # Only jobs that communicate pay for what this imports.
    from traceanalyzer.ranks.collectives.recorded import untold

    return untold(communication)


def _in_order(outcomes: Iterable[RuleOutcome], rules: Sequence[Rule], settings: Settings) -> list[RuleOutcome]:
    by_rule = {outcome.rule: _with_thresholds(outcome, settings) for outcome in outcomes}
    return [in_own_words(by_rule[rule.id], rule) for rule in rules]


def _with_thresholds(outcome: RuleOutcome, settings: Settings) -> RuleOutcome:
    """A rule that found nothing by other thresholds than its own says so."""
    said = settings.of_rule(outcome.rule) if outcome.outcome == CLEAN else None
    return replace(outcome, reason="; ".join(filter(None, (outcome.reason, said)))) if said else outcome


def _hidden(health: list[Health]) -> str | None:
    """Why nothing can be judged: what grave health notes say. Figures of such a trace are shown, a verdict is not."""
    grave = [h for h in health if h.severity == HIGH]
    return unjudged_headline(grave[0].message) if grave else None


def _by_gpu(
    ledger: list[dict[str, Any]], shared: Sequence[SharedGpu]
) -> Iterator[tuple[dict[str, Any], Sequence[frames.Key]]]:
    """One row a GPU in the order of the ledger, and the (ordinal, device) of its users where several files have portions of it."""
    rows = {(row["rank"], row["device"]): row for row in ledger}
    first = {gpu.users[0]: gpu for gpu in shared}
    rest = {key for gpu in shared for key in gpu.users[1:]}
    for key, row in rows.items():
        if gpu := first.get(key):
            portions = [rows[user] for user in gpu.users]
            summed = {name: sum(portion[name] for portion in portions) for name in _SUMMED}
            figures = {name: getattr(gpu, name) for name in ("busy", "compute", "communication", "memcpy", "max_gap")}
            yield {**row, **summed, **figures, "duration": gpu.window}, gpu.users
        elif key not in rest:
            yield row, ()


def _once_each(
    found: Sequence[Split], ledger: list[dict[str, Any]], join: Join, ranks: dict[int, int | None]
) -> list[Split]:
    """The splits, which are in the order of the ledger, with one for each GPU that several files have portions of."""
    by_user = {(row["rank"], row["device"]): split for row, split in zip(ledger, found, strict=True)}
    result = []
    for row, users in _by_gpu(ledger, join.shared):
        own = by_user[row["rank"], row["device"]]
        if users:
            name = shared_name(row["device"], _ranks(ranks, users), len(users))
            own = one_gpu([by_user[user] for user in users], name, row["duration"])
        result.append(own)
    return result


def _ranks(ranks: dict[int, int | None], users: Sequence[frames.Key]) -> list[int]:
    return sorted({rank for ordinal, _ in users if (rank := ranks[ordinal]) is not None})


def _exposed_parts(tables: Catalog) -> Mapping[frames.Key, tuple[int, int]]:
    """Waiting and transfer of each GPU for which they are told."""
    found = tables.table("exposed_parts")
    if not found.num_rows:
        return {}
    # Only jobs that communicate pay for what this imports.
    from traceanalyzer.ranks.shape.axes import gpu_parts

    return gpu_parts(found)


def _device(
    ranks: dict[int, int | None],
    exposed: Mapping[frames.Key, tuple[int, int]],
    row: dict[str, Any],
    users: Sequence[frames.Key],
) -> Device:
    keys = users or [(row["rank"], row["device"])]
    told = [exposed[key] for key in keys if key in exposed]
    wait = sum(wait for wait, _ in told)
    transfer = sum(transfer for _, transfer in told)
    # Of a GPU that several files used, all of them must tell theirs.
    whole = bool(told) and wait + transfer == row[EXPOSED_COMMUNICATION.name]
    plain = ("busy", "communication", "memcpy", *map(column, BUSY_LINES), "idle", "max_gap")
    return Device(
        rank=ranks[row["rank"]],
        device=row["device"],
        name=row["name"],
        window_ns=row["duration"],
        idle_by_cause_ns={cause: row[line.column] for cause, line in IDLE.items()},
        gpu_op_count=row["gpu_op_count"],
        kernel_count=row["kernel_count"],
        users=max(len(users), 1),
        ranks=_ranks(ranks, users),
        exposed_wait_ns=wait if whole else None,
        exposed_transfer_ns=transfer if whole else None,
        **{f"{name}_ns": row[name] for name in plain},
    )


def _recordings(ranks: dict[int, int | None], tables: Catalog) -> list[Recording]:
    """In the order of the inputs."""
    did: dict[int, list[OutsideWork]] = {}
    for row in tables.table("outside_work").to_pylist():
        did.setdefault(row["rank"], []).append(OutsideWork(row["side"], row["name"], row["duration"]))
    return [
        Recording(
            rank=ranks[row["rank"]],
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            before_ns=row["before"],
            after_ns=row["after"],
            bounded=row["bounded"],
            did=did.get(row["rank"], []),
        )
        for row in tables.table("recordings").to_pylist()
    ]


def _steps(
    ranks: dict[int, int | None], table: pa.Table, ledger: list[dict[str, Any]], unprofiled: Unprofiled
) -> list[Steps]:
    """Step times per GPU, sorted by (rank, device), over the complete steps; without any, of the first as far as it was recorded."""
    ops = {(row["rank"], row["device"]): row["gpu_op_count"] for row in ledger}
    result = []
    for (rank, device), group in frames.split(table):
        whole = group.filter(group["complete"])
        timed = whole if whole.num_rows else group.slice(0, 1)
        median, p95 = (int(np.quantile(frames.duration(timed), share)) for share in (0.5, 0.95))
        spread = round((p95 - median) / median, 6) if median else 0.0
        outside = ops[rank, device] - pc.sum(group["gpu_op_count"]).as_py()
        counts = pc.sum(group["slow"]).as_py(), outside
        method = group["method"][0].as_py()
        without = [unprofiled.get((rank, device), {}).get(name) for name in ("unprofiled", "least", "most")]
        result.append(Steps(ranks[rank], device, group.num_rows, method, median, p95, spread, *counts, *without))
    return result


def _unprofiled(finding: Finding, unprofiled: Unprofiled) -> Finding:
    """With a step without the profiler beside the predicted one, which is never longer."""
    rank, device, saving = finding.scope.rank, finding.scope.device, finding.saving
    step = unprofiled.get((rank, device)) if rank is not None and device is not None else None
    if step is None or saving.predicted_unprofiled_step_ns is None:
        return finding
    now = step["unprofiled"]
    then = min(saving.predicted_unprofiled_step_ns, now)
    return replace(finding, saving=replace(saving, unprofiled_step_ns=now, predicted_unprofiled_step_ns=then))


def _in_words_of(traits: frozenset[str], recorded: frozenset[str], finding: Finding) -> Finding:
    return replace(finding, recommend=fitting(finding.recommend, traits, recorded))


def _with_job_ranks(ranks: dict[int, int | None], finding: Finding, aside: Collection[int]) -> Finding:
    """The engine knows the tables' ranks; the result shows the job's, or null. What files tell that are `aside`, judged alone though
    there are traces, has no time on the clock of any of these."""

    def job(rank: int | None) -> int | None:
        return None if rank is None else ranks[rank]

    return replace(
        finding,
        scope=Scope(job(finding.scope.rank), finding.scope.device),
        evidence=[
            Evidence(job(e.rank), e.device, *((0, 0) if e.rank in aside else (e.start_ns, e.end_ns)), e.label)
            for e in finding.evidence
        ],
    )
