"""Which versions of the event tables a store may be of, and what each of them added.

Within a major version the tables only grow: a minor version adds columns, whose null means "not recorded", and tables. So a store of
an older one is read with what it lacks null or empty, and one of a newer one without what it has more. Both are said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceanalyzer.model.schema import SCHEMA_VERSION
from traceanalyzer.vocabulary.levels import HIGH, INFO, MEDIUM, Severity

OLDEST = "1.4"
"""Before this, `host_ranges.parent` counted from another row and a manifest had no digest."""
ADDED: dict[str, tuple[str, ...]] = {
    "1.6": ("host_ranges.open", "steps.open", "gpu_ops.migration_cause", "stream_events"),
    "1.7": ("host_ranges.domain", "mpi_calls", "cpu_samples", "thread_runs", "page_faults"),
    "1.8": ("host_ranges.arguments", "host_ranges.record_function"),
}
"""Columns ("table.column") and tables by the version that they came with."""

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")
_MOST_NAMED = 6


def parsed(version: str) -> tuple[int, int] | None:
    """Major and minor of a version; None for a text that is none."""
    found = _VERSION.fullmatch(version)
    return (int(found[1]), int(found[2])) if found else None


_OWN, _FIRST = parsed(SCHEMA_VERSION) or (0, 0), parsed(OLDEST) or (0, 0)


def is_readable(version: str) -> bool:
    """Whether a store of that version is read: of this major version, and from `OLDEST` on."""
    found = parsed(version)
    return found is not None and found[0] == _OWN[0] and found >= _FIRST


def is_older(version: str) -> bool:
    return (parsed(version) or _OWN) < _OWN


def not_recorded(version: str, lacking: Iterable[str]) -> tuple[Severity, str] | None:
    """Severity and message of the health note on a part of a store of an older version; None for one of this version.

    `lacking` are the columns and tables that it lacks. What that version did not have yet was only not recorded; what it should have
    had makes judging impossible.
    """
    if not is_older(version):
        return None
    later = {
        name for since, names in ADDED.items() if (parsed(since) or _OWN) > (parsed(version) or _OWN) for name in names
    }
    gone = sorted(set(lacking) - later)
    absent = sorted(set(lacking) & later)
    begin = f"the store was written by an earlier version (schema {version})"
    if gone:
        return HIGH, f"{begin} and lacks {_named(gone)}, which that version had; ingest the trace again"
    if not absent:
        return INFO, begin
    tables = [name for name in absent if "." not in name]
    said = f"{begin}, which did not record {_named(absent)}: rules that need that say nothing; ingest the trace again"
    return MEDIUM if tables else INFO, said


def passed_over(version: str, names: Iterable[str]) -> tuple[Severity, str] | None:
    """Severity and message of the health note on columns and tables of a store that nothing here knows; None without any."""
    found = sorted(set(names))
    if not found:
        return None
    whose = (
        f"of a newer version (schema {version})"
        if (parsed(version) or _OWN) > _OWN
        else "of a kind that is not installed here"
    )
    return INFO, f"the store holds {_named(found)}, {whose}: not read"


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
