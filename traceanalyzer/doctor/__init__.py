"""From inputs to the diagnosis: what each file is, what it holds, what it lacks for which rules, and what to record next time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from traceanalyzer.analysis import analyze_parts, parts_of
from traceanalyzer.analysis.evidence import kind_named, span_of
from traceanalyzer.analysis.parts import MemoryPart
from traceanalyzer.catalog.catalog import lacking
from traceanalyzer.catalog.declarations import needs
from traceanalyzer.config import Config
from traceanalyzer.doctor.contents import contents, extent
from traceanalyzer.doctor.profilers import snippets, ways_of
from traceanalyzer.ingest.bytes.archives import kind_of
from traceanalyzer.ingest.bytes.containers import codec_of
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.pipeline import ProgressFactory, ingest_sources
from traceanalyzer.ingest.registry import find_sources
from traceanalyzer.model.needs import NO_GPU_WORK
from traceanalyzer.model.stores.store import is_store, read_store
from traceanalyzer.model.trace import EPOCH_NS, Input
from traceanalyzer.result.document import Result
from traceanalyzer.result.recording.diagnosis import (
    Diagnosis,
    Duplicate,
    FileFacts,
    HealthNote,
    Job,
    NextTime,
    Obstacle,
    Recording,
    RuleCheck,
)
from traceanalyzer.result.recording.recording_advice import REMEDIES, missing, next_time
from traceanalyzer.result.verdict import unjudged_headline
from traceanalyzer.version import VERSION
from traceanalyzer.vocabulary.levels import HIGH, JUDGED, LOW, MEDIUM, NOT_APPLICABLE

MOST_MISSING = 8
"""Missing ranks that are named."""
_SECOND = 1_000_000_000
# A tar archive says what it is at byte 257.
_START_BYTES = 512


def diagnose(paths: Sequence[Path], progress: ProgressFactory | None = None, max_bytes: int | None = None) -> Diagnosis:
    """Read the traces and stores one after another, so that two files of one rank do not stop each other here.

    `progress` and `max_bytes` are those of `ingest`. Raises InputError for what cannot be read at all.
    """
    found = (part for path in paths for part in _traces(path, progress, max_bytes))
    read = [(_examine(part, container), part.input) for part, container in found]
    recordings = [recording for recording, _ in read]
    return Diagnosis({"name": "traceanalyzer", "version": VERSION}, _job(read), recordings)


def _traces(path: Path, progress: ProgressFactory | None, max_bytes: int | None) -> Iterator[tuple[MemoryPart, str]]:
    """The recordings behind a path, one at a time, each with its container."""
    if is_store(path):
        yield from ((part, "store") for part in parts_of(read_store(path)))
        return
    for source in find_sources([path], max_bytes):
        yield MemoryPart(ingest_sources([source], progress)), _container(path, source)


def _container(given: Path, source: Source) -> str:
    """How the bytes of the user's file are wrapped, told from its start."""
    if not given.is_file() and not given.is_dir():
        return "pipe"
    with source.origin.open("rb") as stream:
        start = stream.read(_START_BYTES)
    codec = codec_of(start)
    return codec.name if codec else kind_of(start) or "plain"


def _examine(part: MemoryPart, container: str) -> Recording:
    if part.input.witness is not None:
        return _examine_evidence(part, container)
    source, catalog = part.input, part.catalog(Config())
    result, held = analyze_parts([part]).result, contents(catalog)
    file = _file(source, container, extent(catalog))
    health = [
        HealthNote(row["code"], row["severity"], row["message"], row["count"], row["example"])
        for row in catalog.table("health").to_pylist()
    ]
    codes, grave = ({note.code for note in health if note.severity in of} for of in ((LOW, MEDIUM, HIGH), (HIGH,)))
    ways, optional = ways_of(file, held)
    names = missing(file, held, ways.known, codes, grave)
    rules = _rules(result, health, names, {source.format})
    needed_by: dict[str, list[str]] = defaultdict(list)
    for obstacle in rules.obstacles:
        for name in obstacle.settings:
            needed_by[name] += obstacle.rules
    hidden = None if result.judged else _hidden(result)
    following = next_time(ways, names, needed_by, snippets(file, held, ways, set(names)))
    return Recording(file, held, health, rules, hidden, following, optional=optional)


def _examine_evidence(part: MemoryPart, container: str) -> Recording:
    """What is in a file of evidence, and what its kind says of recording it."""
    source, kind = part.input, kind_named(part.input.format)
    found = analyze_parts([part])
    (alone,), catalog = found.parts, part.catalog(Config())
    health = [
        HealthNote(row["code"], row["severity"], row["message"], row["count"], row["example"])
        for row in catalog.table("health").to_pylist()
    ]
    tables = {spec.name: catalog.table(spec.name).num_rows for spec in kind.tables}
    span = source.recorded_ns or span_of(catalog, kind.tables)
    settings = list(kind.recording_advice(alone.catalog(Config())))
    return Recording(
        _file(source, container, span),
        contents(catalog),
        health,
        _rules(found.result, health, [], {source.format}),
        None if found.result.judged else found.result.verdict.headline,
        NextTime(settings, []),
        tables,
    )


def _file(source: Input, container: str, found: tuple[int, int] | None) -> FileFacts:
    # A wall clock of an unknown time zone is none of UTC.
    dated = found is not None and (source.witness is None or source.witness.clock != "local")
    return FileFacts(
        path=source.path,
        bytes=source.bytes,
        container=container,
        format=source.format,
        producer=source.producer,
        rank=source.rank,
        world_size=source.world_size,
        first_event_utc=_utc(found[0], source.clock_base_ns) if found and dated else None,
        span_ns=found[1] - found[0] if found else None,
    )


def _utc(first_ns: int, base_ns: int | None) -> str | None:
    if base_ns is None and first_ns < EPOCH_NS:
        return None
    try:
        return datetime.fromtimestamp((first_ns + (base_ns or 0)) // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def _hidden(result: Result) -> str:
    grave = next((note.message for note in result.health if note.severity == HIGH), None)
    return unjudged_headline(grave) if grave and result.devices else result.verdict.headline


def _rules(result: Result, health: list[HealthNote], names: list[str], formats: Collection[str]) -> RuleCheck:
    """The rules that had nothing to judge or could not, those with one reason together, in claim order; `formats` of the file."""
    absent = {needed.reason: needed for needed in needs().values()}
    # How to record what is missing is said once, under what to do next time.
    bare = {lacking(needed, formats): needed.reason for needed in needs().values()}
    code = {note.message: note.code for note in health}
    groups: dict[tuple[str, str], list[str]] = {}
    for rule in result.rules:
        if rule.outcome not in JUDGED:
            # Without any GPU work there is no need to tell which kind of it a rule misses.
            reason = NO_GPU_WORK.reason if rule.outcome == NOT_APPLICABLE and "gpu" in names else rule.reason or ""
            reason = bare.get(reason, reason)
            groups.setdefault((rule.outcome, reason), []).append(rule.rule)
    obstacles = []
    for (outcome, reason), rules in groups.items():
        needed = absent.get(reason)
        remedies = REMEDIES.get(code.get(reason, ""), needed.settings if needed else ())
        settings = [name for name in remedies if name in names]
        none_ran = needed is not None and needed.always_recorded and not settings
        obstacles.append(Obstacle(outcome, reason, rules, settings, none_ran))
    return RuleCheck(len(result.rules), len(result.rules) - sum(len(o.rules) for o in obstacles), obstacles)


def _job(read: list[tuple[Recording, Input]]) -> Job:
    evidence = sum(source.witness is not None for _, source in read)
    read = [(recording, source) for recording, source in read if source.witness is None]
    inputs = [source for _, source in read]
    ranks = sorted({source.rank for source in inputs if source.rank is not None})
    world = max((source.world_size for source in inputs if source.world_size is not None), default=None)
    absent = (rank for rank in range(world or 0) if rank not in ranks)
    of_rank: dict[int, list[str]] = defaultdict(list)
    # The members of an archive have its checksum: their rank, size and length tell them apart.
    of_content: dict[tuple[str, int | None, int, int | None], list[str]] = defaultdict(list)
    for recording, source in read:
        if source.rank is not None:
            of_rank[source.rank].append(source.path)
        of_content[source.sha256, source.rank, source.bytes, recording.file.span_ns].append(source.path)
    doubled = [Duplicate(f"rank {rank}", paths) for rank, paths in sorted(of_rank.items()) if len(paths) > 1]
    doubled += [Duplicate("content", paths) for paths in of_content.values() if len(paths) > 1]
    return Job(
        recordings=len(inputs),
        ranks=ranks,
        without_rank=sum(source.rank is None for source in inputs),
        world_size=world,
        missing_ranks=(world or 0) - sum(rank < (world or 0) for rank in ranks),
        first_missing=list(islice(absent, MOST_MISSING)),
        duplicates=doubled,
        evidence=evidence,
    )
