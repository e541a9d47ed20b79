"""The second look at a part: every rule about one rank, with what the join found out about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis.join import Brief
from traceanalyzer.analysis.locations import with_sources
from traceanalyzer.analysis.parts import MemoryPart, Part
from traceanalyzer.catalog.declarations import declared
from traceanalyzer.config import Config
from traceanalyzer.engine.claims import ClaimBook
from traceanalyzer.engine.culprits import culprits
from traceanalyzer.engine.predictions import with_predictions
from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.engine.rules.overrides import check_disabled, with_overrides
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.engine.run import run_rules
from traceanalyzer.engine.splits import claim_sums
from traceanalyzer.engine.unit_claims import UNIT_CLAIMS, unit_claims
from traceanalyzer.forks import beside
from traceanalyzer.model.trace import Input
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding, RuleOutcome

MEETING = "No prediction: the processes that use the GPU wait for each other in calls of MPI, which is not played again"
NOT_PLAYED = "No prediction: other processes used the GPU at the same time, whose files are not played again"

_PREDICTING = ("mpi_parts", "ledger_ops", "what_if", "idle_places")
_BLAMING = ("gaps", "host_ranges", "launches", "other_threads")
"""What is read of a part when its rules have run."""


def small_tables() -> tuple[str, ...]:
    """The tables of which what is said of the whole job is made."""
    return ("processes", "placed_evidence", *(one.name for one in declared().values() if one.small))


def part_tables(also: Sequence[str]) -> tuple[str, ...]:
    """Those and what else is wanted of a part; what says something of all ranks together is made where all are."""
    of_job = {one.name for one in declared().values() if one.of_job}
    return (*small_tables(), *(name for name in also if name not in of_job))


@dataclass(frozen=True)
class Examination:
    """What there is to say of one part, its ranks as the tables number them. `claimed` is of `splits.claim_sums`, `culprits` as in
    CULPRITS, `tables` by name: the small ones that what is said of the whole job is made of, without those that have no rows.
    `unit_claims` is empty unless units of work were asked for."""

    input: Input
    findings: list[Finding]
    outcomes: list[RuleOutcome]
    claimed: pa.Table
    culprits: pa.Table
    tables: dict[str, pa.Table]
    unit_claims: pa.Table
    first_sentences: Mapping[str, str]


def rules_for(config: Config) -> list[Rule]:
    """All rules as configured, in claim order. Raises ConfigError for what does not fit them."""
    rules = load_rules(config.rules, tests=False)
    check_disabled(rules, config.disable)
    return with_overrides(rules, config.params)


def claims_in_units(claims: ClaimBook, work_units: pa.Table | None) -> pa.Table:
    """As `unit_claims`; empty without units."""
    return UNIT_CLAIMS.empty_table() if work_units is None else unit_claims(claims.table(), work_units)


def about_the_job(rule: Rule) -> bool:
    """Rules that read what all ranks together tell are about the whole job; every other rule is about one rank."""
    source = declared().get(rule.source)
    return source is not None and source.of_job


def _of_this_part(found: Finding, source: Input) -> Finding:
    """A rule that does not tell ranks apart is about this one all the same, and not about the job."""
    if found.scope.rank is not None:
        return found
    return replace(found, scope=replace(found.scope, rank=source.ordinal))


def _unplayed(found: Finding, brief: Brief, meeting: set[int]) -> Finding:
    """Without a prediction where the finding is about a GPU that other files used too, or one of those on which processes of this file
    are `meeting`."""
    shared = (found.scope.rank, found.scope.device) in brief.portions
    if not (shared or found.scope.device in meeting) or not found.saving.recoverable_ns:
        return found
    note = NOT_PLAYED if shared else MEETING
    return replace(found, saving=replace(found.saving, prediction_note=note, predicted_speedup_range=None))


def _meeting(mpi_parts: pa.Table, ledger_ops: pa.Table) -> set[int]:
    """The GPUs that several processes use which call MPI."""
    if not mpi_parts.num_rows:
        return set()
    calling = ledger_ops.filter(pc.is_in(ledger_ops["process"], mpi_parts["process"].unique()))
    users = calling.group_by(["device", "process"]).aggregate([]).group_by("device").aggregate([("process", "count")])
    return set(users.filter(pc.greater(users["process_count"], 1))["device"].to_pylist())


def _kept(shown: bool) -> list[str]:
    return [one.name for one in declared().values() if one.kept and shown]


def leave_examined(part: Part, brief: Brief, config: Config, shown: bool) -> None:
    """Leave a part in this process's memory as `examine` does, which may have looked at it in a copy of the process."""
    if isinstance(part, MemoryPart):
        catalog = part.catalog(config)
        catalog.share(brief.portions)
        catalog.keep(_kept(shown))


def examine(
    part: Part,
    brief: Brief,
    config: Config,
    rules: Sequence[Rule] | None = None,
    also: Sequence[str] = (),
    shown: bool = True,
    helped: bool = False,
) -> Examination:
    """`rules` are those of `rules_for`, read again without them; `also` names tables that are wanted beside the usual ones. Where a
    report will be `shown`, a part in memory keeps for it what is declared so, but not what a copy made: where it is `helped`, one makes
    the tables of a large part with several GPUs while this process predicts."""
    catalog = part.catalog(config)
    catalog.share(brief.portions)
    # The survey has found the kernels; a part that is read again need not look for them again.
    catalog.give({"communication_kernels": brief.kernels, "matches": brief.matches, "late_windows": brief.late_windows})
    catalog.give({"mpi_matches": brief.mpi_matches, "mpi_late_windows": brief.mpi_late_windows})
    catalog.give({"health": pa.concat_tables([catalog.table("health"), brief.health])})
    own = [rule for rule in rules or rules_for(config) if not about_the_job(rule)]
    travelling = part_tables(also)
    kept = _kept(shown)

    def release(later: Iterable[str]) -> None:
        # Of a small part all fits into memory, and looking for what does not would take longer than it is worth.
        if catalog.is_large:
            catalog.release([*later, *travelling, *kept])

    engine = run_rules(
        *(own, catalog, lambda _, device: brief.name(device), config.disable),
        tiles="own_intervals",
        release=lambda later: release([*later, *_PREDICTING, *_BLAMING]),
    )
    release([*_PREDICTING, *_BLAMING])
    meeting = _meeting(catalog.table("mpi_parts"), catalog.table("ledger_ops"))
    alone = [_unplayed(found, brief, meeting) for found in engine.findings]
    # What is made of timelines that are played again is made where that was done.
    replayed = [name for name in travelling if name in declared() and "what_if" in declared()[name].inputs]

    def rest() -> tuple[pa.Table, dict[str, pa.Table]]:
        release(_BLAMING)
        blamed = culprits(
            *(catalog.table("gaps"), engine.claims, catalog.table("host_ranges"), catalog.table("launches")),
            catalog.table("other_threads"),
        )
        release([])
        return blamed, {name: catalog.table(name) for name in travelling if name not in replayed}

    catalog.make(_PREDICTING)
    several = catalog.is_large and catalog.table("windows").num_rows > 1
    with beside(rest) if helped and several else nullcontext(rest) as told:
        predicted = with_predictions(alone, engine.claims, catalog.value("what_if"), catalog.value("idle_places"))
        blamed, tables = told()
    tables |= {name: catalog.table(name) for name in replayed}
    found = Examination(
        input=part.input,
        findings=[_of_this_part(found, part.input) for found in with_sources(predicted, catalog.table("host_ranges"))],
        outcomes=engine.outcomes,
        claimed=claim_sums(engine.claims),
        culprits=blamed,
        tables={name: tables[name] for name in travelling if tables[name].num_rows},
        unit_claims=claims_in_units(engine.claims, tables["work_units"] if "work_units" in also else None),
        first_sentences=engine.first_sentences,
    )
    catalog.keep(kept)
    return found
