"""Evidence where it belongs: beside the trace that it is of, on that trace's clock, or alone where that cannot be told.

Files are read each for itself; only here they meet. A file that is beside a trace becomes tables of that part, with the rank of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.analysis.parts import Beside, Part, with_beside
from traceanalyzer.catalog.declarations import declared, needs
from traceanalyzer.config import Config
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Evidence, Whereabouts
from traceanalyzer.evidence.placing import contradiction, marks_shared, why_not, zone_shift
from traceanalyzer.model.kinds import EVIDENCE, kinds_of
from traceanalyzer.model.schema import EVENT_TABLES, HEALTH, TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.model.trace import EPOCH_NS, Input
from traceanalyzer.records import dataclass
from traceanalyzer.result.document import EvidenceInfo, Finding
from traceanalyzer.vocabulary.health import RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import INFO
from traceanalyzer.workers import map_parts

if TYPE_CHECKING:
    from traceanalyzer.result.captures.capture import Value

_TIMED = ("gpu_ops", "api_calls", "host_ranges")
ITS_PAGES = "another file of the same recording"
_NO_CLOCK = "its times are on no clock that the trace has: they are not compared with it"


@dataclass(frozen=True)
class Placed:
    """The `traces` with what is beside each; the files that are judged `alone`; what the result says of all `evidence`; `health` of
    files that could not be placed."""

    traces: list[Part]
    alone: list[Part]
    evidence: list[EvidenceInfo]
    health: pa.Table


def kind_named(name: str) -> Evidence:
    """The kind of evidence of that name. Raises StopIteration without."""
    return next(cast(Evidence, kind) for kind in kinds_of(EVIDENCE) if kind.name == name)


def place_evidence(
    parts: Sequence[Part], config: Config, executor: Executor | None, offsets: Mapping[str, int]
) -> Placed:
    """`offsets` are what the user says is to be added to the times of a file, by its path or name, in ns.

    Raises InputError for an offset of what is no file of evidence, or is several.
    """
    traces = [part for part in parts if part.input.witness is None]
    files = [part for part in parts if part.input.witness is not None]
    offsets = _by_path(offsets, [part.input.path for part in files])
    if not files:
        return Placed(traces, [], [], HEALTH.empty())
    look = partial(_look, config=config)
    found = list(map_parts(executor, look, [*traces, *files], name=lambda part: part.input.path))
    wheres, rows = [where for where, _ in found[: len(traces)]], [count for _, count in found[len(traces) :]]
    beside: dict[int, list[Beside]] = {}
    alone: list[tuple[Part, list[Beside]]] = []
    told: list[EvidenceInfo] = []
    notes = []
    for file, (said, _), count in zip(files, found[len(traces) :], rows, strict=True):
        kind = kind_named(file.input.format)
        own = _in_zone(said, offsets.get(file.input.path))
        free = [at for at in range(len(traces)) if kind.several or not _is_beside(kind, beside.get(at, ()))]
        at_all, why = _placed(kind, file, own, traces, wheres, config)
        chosen = [at for at in at_all if at in free]
        if not chosen:
            note = None
            if traces:
                note = "another file of its kind is beside the same trace" if at_all else why
                notes.append((file.input.path, note))
            if (joined := _joined(kind, file, alone, config)) is not None:
                joined[1].append(Beside(file, 0, ITS_PAGES, None))
            else:
                alone.append((file, []))
            told.append(_info(file, count, file.input.rank, None, None, None, None, note))
        for at in chosen:
            clock, shift, error = _clock(kind, file, traces[at], config, offsets)
            words = marks_shared(own, wheres[at], kind.fits_by)
            beside.setdefault(at, []).append(Beside(file, shift, words, error))
            note = _NO_CLOCK if shift is None and _has_times(kind) else None
            told.append(_info(file, count, traces[at].input.rank, words, clock, shift, error, note))
    placed = [with_beside(part, beside[at]) if at in beside else part for at, part in enumerate(traces)]
    return Placed(placed, [with_beside(file, more) for file, more in alone], told, _health(notes))


def _joined(
    kind: Evidence, file: Part, alone: Sequence[tuple[Part, list[Beside]]], config: Config
) -> tuple[Part, list[Beside]] | None:
    """The file that is judged alone and is of the same recording, with what is judged together with it; None without one."""
    if not kind.several:
        return None
    own = _WhenAsked(file, config)
    same = (one for one in alone if one[0].input.format == kind.name and kind.joins(own, _WhenAsked(one[0], config)))
    return next(same, None)


@dataclass(frozen=True)
class _WhenAsked:
    """The tables of a part, which are read when the first is asked for: most kinds ask for none."""

    part: Part
    config: Config

    @cached_property
    def tables(self) -> Tables:
        return self.part.catalog(self.config)

    def table(self, name: str) -> pa.Table:
        return self.tables.table(name)


def _is_beside(kind: Evidence, there: Iterable[Beside]) -> bool:
    return any(one.part.input.format == kind.name for one in there)


def _placed(
    kind: Evidence, file: Part, own: Whereabouts, traces: Sequence[Part], wheres: Sequence[Whereabouts], config: Config
) -> tuple[Sequence[int], str]:
    """The positions of the traces that a file is beside: what it holds keeps it from some, and tells where nothing else does; and why
    it is beside none, in words that follow a colon."""
    if not traces:
        return (), ""
    mine = _WhenAsked(file, config)
    fits = [kind.fits(mine, _WhenAsked(part, config)) for part in traces]
    possible = [at for at, fit in enumerate(fits) if fit is not False]
    if chosen := kind.place(own, [wheres[at] for at in possible]):
        return [possible[at] for at in chosen], ""
    same = [at for at in possible if fits[at] and contradiction(own, wheres[at]) is None]
    if same and (kind.spans or len(same) == 1):
        return same, ""
    return (), why_not(own, wheres) if possible else "what it holds is of another run than the traces"


def _by_path(offsets: Mapping[str, int], paths: Sequence[str]) -> dict[str, int]:
    found = {}
    for name, ns in offsets.items():
        of = [path for path in paths if name in (path, PurePath(path).name)]
        if len(of) != 1:
            are = "several files of evidence are called so" if of else "no file of evidence that is read is called so"
            raise InputError(f"--offset {name}: {are}")
        found[of[0]] = ns
    return found


def _info(
    file: Part,
    rows: int,
    rank: int | None,
    placed_by: str | None,
    clock: str | None,
    shift: int | None,
    error: int | None,
    note: str | None,
) -> EvidenceInfo:
    one = file.input
    return EvidenceInfo(
        *(one.format, one.path, one.sha256, one.bytes, one.producer, rank, placed_by, clock, shift, error, rows, note)
    )


def _health(notes: Sequence[tuple[str, str]]) -> pa.Table:
    rows = [
        {
            "code": RANKS_IN_DOUBT,
            "severity": INFO,
            "message": f"{path}: could not be told whose it is, so it is judged alone: {note}",
            "count": 1,
        }
        for path, note in notes
    ]
    return pa.Table.from_pylist(rows, HEALTH.schema) if rows else HEALTH.empty()


def _look(part: Part, config: Config) -> tuple[Whereabouts, int]:
    """What a part says of where and when it was recorded, and how many rows of its own tables it has."""
    tables, one = part.catalog(config), part.input
    if one.witness is None:
        processes, devices, ops = (tables.table(name) for name in ("processes", "devices", "gpu_ops"))
        used = devices.filter(pc.is_in(devices["device"], ops["device"].combine_chunks().unique()))
        hosts, pids, gpus = (
            frozenset(table[name].drop_null().to_pylist())
            for table, name in ((processes, "host"), (processes, "pid"), (used, "uuid"))
        )
        span = one.recorded_ns or span_of(tables, [EVENT_TABLES[name] for name in _TIMED])
        return Whereabouts(one.rank, hosts, pids, gpus, _moved(span, _base(one, span))), 0
    own = kind_named(one.format).tables
    count = sum(tables.table(spec.name).num_rows for spec in own)
    mine = one.witness
    dated = mine.clock in ("epoch", "local")
    span = _moved(one.recorded_ns or span_of(tables, own), one.clock_base_ns or 0 if dated else None)
    hosts = frozenset([mine.host]) if mine.host else frozenset()
    spans = (None, span) if mine.clock == "local" else (span, None)
    return Whereabouts(one.rank, hosts, frozenset(mine.pids), frozenset(mine.gpus), *spans), count


def _base(trace: Input, span: tuple[int, int] | None) -> int | None:
    """What to add to a trace's times for nanoseconds since the epoch; None where neither it nor its times say so."""
    if trace.clock_base_ns is not None:
        return trace.clock_base_ns
    return 0 if span is not None and span[0] >= EPOCH_NS else None


def _in_zone(own: Whereabouts, offset: int | None) -> Whereabouts:
    """The same with local times as times since the epoch, where the user says what to add for that."""
    if offset is None or own.local_ns is None:
        return own
    return replace(own, epoch_ns=_moved(own.local_ns, offset), local_ns=None)


def _moved(span: tuple[int, int] | None, base: int | None) -> tuple[int, int] | None:
    return None if span is None or base is None else (span[0] + base, span[1] + base)


def span_of(tables: Tables, specs: Iterable[TableSpec]) -> tuple[int, int] | None:
    """From the first moment in some tables to the last."""
    found = [
        pc.min_max(tables.table(spec.name)[name]).as_py()
        for spec in specs
        for name in spec.schema.names
        if _is_time(name)
    ]
    known = [one for one in found if one["min"] is not None]
    return (min(one["min"] for one in known), max(one["max"] for one in known)) if known else None


def _has_times(kind: Evidence) -> bool:
    return any(_is_time(name) for spec in kind.tables for name in spec.schema.names)


def _is_time(name: str) -> bool:
    return name.endswith("_ns")


def _clock(
    kind: Evidence, file: Part, part: Part, config: Config, offsets: Mapping[str, int]
) -> tuple[str | None, int | None, int | None]:
    """What puts the times of a file on the clock of a part, what to add to them, and how far they may be off."""
    witness, given = file.input.witness, offsets.get(file.input.path)
    assert witness is not None
    span = part.input.recorded_ns or span_of(part.catalog(config), [EVENT_TABLES[name] for name in _TIMED])
    base = _base(part.input, span)
    own = file.input.clock_base_ns or 0
    if witness.clock == "local" and base is not None:
        if given is not None:
            return "--offset", own - base + given, witness.clock_error_ns
        local = _moved(file.input.recorded_ns or span_of(file.catalog(config), kind.tables), own)
        if local and span and (zone := zone_shift(local, (span[0] + base, span[1] + base))) is not None:
            return _zone_words(-zone), own - base + zone, witness.clock_error_ns
        return None, None, None
    if witness.clock == "epoch" and base is not None:
        by, shift, error = "epoch", own - base, witness.clock_error_ns
    elif witness.clock == "trace":
        by, shift, error = "trace", 0, witness.clock_error_ns
    elif (aligned := kind.shift(file.catalog(config), part.catalog(config))) is not None:
        by, (shift, error) = kind.name, aligned
    elif given is not None:
        return "--offset", given, None
    else:
        return None, None, None
    return ("--offset", shift + given, error) if given is not None else (by, shift, error)


def _zone_words(east: int) -> str:
    """How a time zone that is so many ns east of UTC is called."""
    minutes = abs(east) // 60_000_000_000
    return f"reading its local times as UTC{'-' if east < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def headlines(kinds: Iterable[str], rules: Sequence[Rule], findings: Sequence[Finding], tables: Tables) -> list[str]:
    """What kinds of evidence show about which no rule found anything, as sentences without their stops."""
    found = {finding.rule for finding in findings}
    of = sorted(map(kind_named, set(kinds)), key=lambda kind: -kind.priority)
    silent = (kind for kind in of if not found & {rule.id for rule in rules_about(rules, [kind.name], alone=True)})
    return [said for kind in silent if (said := kind.headline(tables))]


def measured(kind: Evidence, tables: Tables) -> Iterator[tuple[str, Value]]:
    """The figures of a kind by their full names. Raises KeyError for one that it does not declare."""
    from traceanalyzer.result.captures.capture import Value

    for name, value in kind.measure(tables).items():
        yield f"{kind.name}.{name}", Value(value, kind.figures[name.partition("[")[0]].unit)


@cache
def owners() -> Mapping[str, frozenset[str]]:
    """By table: the kinds of evidence that it is made from, without which it is empty, or says less."""
    found = {spec.name: frozenset([kind.name]) for kind in kinds_of(EVIDENCE) for spec in kind.tables}
    while True:
        more = {
            one.name: kinds
            for one in declared().values()
            if one.name not in found and (kinds := frozenset().union(*(found.get(name, ()) for name in one.inputs)))
        }
        if not more:
            return found
        found |= more


def rules_about(rules: Sequence[Rule], kinds: Iterable[str], alone: bool) -> list[Rule]:
    """Those of the rules that these kinds of evidence give something to judge, and, unless it is `alone`, those about traces."""
    given = set(kinds)
    return [
        rule
        for rule in rules
        if owners().get(rule.source, frozenset()) & given or not (alone or _is_of_evidence_only(rule.source))
    ]


def _is_of_evidence_only(table: str) -> bool:
    """Whether a table says nothing where no evidence was given: it is read from such a file, needs a table that is, or is a kind's own
    that needs none."""
    if table not in declared():
        return table in owners()
    needed = needs().get(table)
    if needed is None:
        return table in _own_tables()
    source = (needed.events or table) if needed.table == table else needed.table
    return source != table and _is_of_evidence_only(source)


@cache
def _own_tables() -> frozenset[str]:
    """The derived tables that kinds of evidence declare."""
    return frozenset(one.name for kind in kinds_of(EVIDENCE) for one in kind.derived)
