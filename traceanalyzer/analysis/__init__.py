"""From inputs to the result document: the one place that knows the whole order.

A job is taken in parts, one input file each. `survey` looks at each part alone, `join` at what the surveys brought together, `examine`
at each part again with what the join told of it, and `job_result` makes one result of that. What travels between them is small, so
parts may lie in this process, in others, or on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from traceanalyzer.analysis.evidence import kind_named, measured, place_evidence, rules_about
from traceanalyzer.analysis.examine import Examination, claims_in_units, examine, leave_examined, rules_for
from traceanalyzer.analysis.join import Brief, brief_of, join
from traceanalyzer.analysis.parts import Part, parts_of
from traceanalyzer.analysis.report_tables import ReportTables
from traceanalyzer.analysis.roofline import roofline_sections
from traceanalyzer.analysis.sharing import devices_in_use, uses, with_shared_gpus
from traceanalyzer.analysis.survey import survey
from traceanalyzer.analysis.whole import job_result, job_tables, run_job_rules
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.engine.rules.effective import settings_of
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.errors import InputError
from traceanalyzer.model.stores.store import is_store, read_store
from traceanalyzer.model.trace import Trace
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Result
from traceanalyzer.workers import cpus, map_parts, processes_for

if TYPE_CHECKING:
    from traceanalyzer.ingest.pipeline import ProgressFactory
    from traceanalyzer.result.captures.capture import Value
    from traceanalyzer.result.sections import Section

__all__ = ["ReportTables", "analyze", "analyze_parts", "load", "parts_of"]


def load(
    paths: Sequence[str | Path] | str | Path, progress: ProgressFactory | None = None, max_bytes: int | None = None
) -> Trace:
    """Read trace files, folders of them, or one store; `max_bytes` replaces the limit on what one file may unpack to.

    Raises InputError for what cannot be read.
    """
    given = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    stores = [p for p in given if is_store(p)]
    if not stores:
        # A store is read without any of the readers.
        from traceanalyzer.ingest.pipeline import ingest

        return ingest(given, progress, max_bytes)
    if len(given) > 1:
        raise InputError(f"{stores[0]}: a store is analysed alone; ingest the traces together into one store instead")
    return read_store(stores[0])


def analyze(trace: Trace, config: Config | None = None) -> Result:
    """Run every rule over the trace and write the result document."""
    return analyze_parts(parts_of(trace), config, shown=False).result


@dataclass(frozen=True)
class Analysis:
    """The result, the small tables of all parts that it is made of, and what was claimed in units of work (see `unit_claims`), which is
    empty unless these were asked for. `parts` are what was judged, with the evidence that is beside each: those of the traces or,
    without any, of the evidence; `sections` are what kinds of evidence and the roofline add to the report, `figures` what the kinds
    measured, by name."""

    result: Result
    tables: Catalog
    unit_claims: pa.Table
    parts: Sequence[Part]
    sections: Sequence[Section] = ()
    figures: Mapping[str, Value] = field(default_factory=dict)


def analyze_parts(
    parts: Sequence[Part],
    config: Config | None = None,
    executor: Executor | None = None,
    counting: Callable[[str], Callable[[], None]] = lambda _: lambda: None,
    also: Sequence[str] = (),
    offsets: Mapping[str, int] | None = None,
    shown: bool = True,
    processes: int | None = 1,
) -> Analysis:
    """As `analyze`, over parts that the caller goes on to use, each looked at by a worker of `executor` or, without one, here.

    `counting(what)` gives the function that is called after each part; `also` names derived tables of all parts that the caller wants
    beside the small ones; `offsets` what is to be added to the times of evidence, by its path, in ns; `shown` says that a report will
    be made; without an executor so many `processes` judge parts, None one a CPU. Raises ConfigError for rules that do not fit.
    """
    config = config or Config()
    placed = place_evidence(parts, config, executor, offsets or {})
    kinds = frozenset(one.kind for one in placed.evidence)
    parts, alone = (placed.traces, placed.alone) if placed.traces else (placed.alone, [])
    rules = rules_about(rules_for(config), kinds, alone=not placed.traces)
    surveys = map_parts(executor, partial(survey, config=config), parts, counting("looking at ranks"), _name)
    joined = join(surveys)
    if joined.jobs.shared_gpus:
        inputs = [one.input for one in surveys]
        sharing = [(parts[at], devices) for at, devices in devices_in_use(joined, inputs)]
        found = map_parts(executor, partial(uses, config=config), sharing, name=_name_of_task)
        joined = with_shared_gpus(joined, inputs, found)
    apart = [brief_of(one) for one in map_parts(executor, partial(survey, config=config), alone, name=_name)]
    tasks = [*zip(parts, joined.briefs, repeat(not placed.traces)), *zip(alone, apart, repeat(True))]
    # Workers read the rules themselves, once each, from a current folder of their own.
    seen = replace(config, rules=tuple(path.absolute() for path in config.rules))
    # A report has a copy of its own for what takes long (`ReportTables.ahead`), and two of them give no more than one.
    helped = executor is None and not shown and len(tasks) == 1 and (processes or cpus()) > 1
    look = partial(
        _examined,
        config=seen,
        rules=rules if executor is None else None,
        also=also,
        kinds=kinds,
        shown=shown,
        helped=helped,
    )
    processes = processes or processes_for(part.table_bytes for part in parts)
    examined = map_parts(executor, look, tasks, counting("judging ranks"), _name_of_task, processes)
    if executor is None:
        for part, brief, _ in tasks:
            leave_examined(part, brief, config, shown)
    tables = job_tables(examined, joined, placed.health, also)
    job = run_job_rules(examined, tables, config, rules)
    claims = claims_in_units(job.claims, tables.table("work_units") if "work_units" in also else None)
    every = pa.concat_tables([*(part.unit_claims for part in examined), claims])
    result = job_result(examined, joined, tables, job, rules, settings_of(config, rules), placed.evidence)
    sections = roofline_sections(result, tables)
    sections += [section for name in sorted(kinds) for section in kind_named(name).sections(result, tables)]
    sections.sort(key=lambda one: (one.order, one.name))
    figures = {name: value for kind in sorted(kinds) for name, value in measured(kind_named(kind), tables)}
    return Analysis(result, tables, every, parts, sections, figures)


def _examined(
    task: tuple[Part, Brief, bool],
    config: Config,
    rules: Sequence[Rule] | None,
    also: Sequence[str],
    kinds: Set[str],
    shown: bool,
    helped: bool,
) -> Examination:
    part, brief, alone = task
    own = rules_about(rules_for(config) if rules is None else rules, kinds, alone)
    return examine(part, brief, config, own, also, shown, helped)


def _name(part: Part) -> str:
    return part.input.path


def _name_of_task(task: tuple[Part, *tuple[object, ...]]) -> str:
    return _name(task[0])
