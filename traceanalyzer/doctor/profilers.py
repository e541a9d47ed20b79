"""What the formats say of recording: found through the registry, none of them named."""

from __future__ import annotations

from collections.abc import Set

from traceanalyzer.ingest.registry import registry
from traceanalyzer.result.recording.diagnosis import Contents, FileFacts, OptionalFact, Snippet
from traceanalyzer.result.recording.ways import Ways


def ways_of(file: FileFacts, held: Contents) -> tuple[Ways, tuple[OptionalFact, ...]]:
    """How the profiler of a recording records what, and what its recordings may hold; of a format that is not installed, nothing."""
    kind = registry().format_named(file.format)
    return (kind.ways(held, file.producer), tuple(kind.optional)) if kind else (Ways(), ())


def snippets(file: FileFacts, held: Contents, ways: Ways, missing: Set[str]) -> list[Snippet]:
    """What to paste for a profiler and, where it cannot record what is `missing`, for the profilers of any program."""
    found = [*ways.snippets(held, missing)]
    if not missing.isdisjoint(ways.elsewhere):
        for other in registry().formats:
            if other.any_program and other.name != file.format:
                found += other.ways(held, "").snippets(held, frozenset())
    return found
