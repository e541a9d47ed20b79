"""Tables of what changed between two traces: kinds of kernels, kernels, operators, collectives, and links of the critical path."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.report.kinds import FAMILIES
from traceanalyzer.report.tables.table import Column, DataTable, names
from traceanalyzer.result.comparing.comparison import Change, Comparison
from traceanalyzer.result.comparing.words import unit_words
from traceanalyzer.units import format_count

DIRECTIONS = {"faster": "faster", "slower": "slower", "same": "no change", "new": "new", "vanished": "gone"}


def change_tables(comparison: Comparison, most: int) -> list[DataTable]:
    """The tables that have rows, each at most `most`: what changed most comes first."""
    of = f"Time on one GPU, {unit_words(comparison)}"
    families = [(FAMILIES.get(one.name, one.name), one) for one in comparison.families]
    found = [
        _table(
            "path",
            "Critical path",
            "Link",
            "What sets the length of a step; what changes little is left out",
            f"Time on the critical path, {unit_words(comparison)}",
            _named(comparison.path),
            most,
        ),
        _table("families", "Kinds of kernels", "Kind", "What the kernels' names say they do", of, families, most),
        _table("kernels", "Kernels", "Kernel", "Name of the kernel", of, _named(comparison.kernels), most),
        _table("operators", "Operators", "Operator", "Name of the operator", of, _named(comparison.operators), most),
        _table(
            "collectives",
            "Collectives",
            "Collective",
            "What kind of collective",
            of,
            _named(comparison.collectives),
            most,
        ),
    ]
    return [table for table in found if table is not None]


def _named(changes: Sequence[Change]) -> list[tuple[str, Change]]:
    return [(change.name, change) for change in changes]


def _table(
    id_: str, title: str, what: str, about: str, of: str, changes: list[tuple[str, Change]], most: int
) -> DataTable | None:
    if not changes:
        return None
    changes = sorted(changes, key=lambda one: (-abs(one[1].change_ns), one[0]))
    first = [change for _, change in changes[:most]]
    name = [text for text, _ in changes[:most]]
    counted = any(change.base_count is not None or change.new_count is not None for change in first)
    columns = (
        names(what, about, name, "(unnamed)") if id_ in ("kernels", "operators") else Column(what, "text", about, name),
        Column(
            "outcome",
            "text",
            "No change: within the noise, or too small to matter; new: only in NEW; gone: only in BASE",
            [DIRECTIONS[change.direction] for change in first],
        ),
        Column("BASE", "duration", f"{of} in BASE", [change.base_ns for change in first]),
        Column("NEW", "duration", f"{of} in NEW", [change.new_ns for change in first]),
        Column("change", "change", "NEW less BASE; sorted by how large it is", [change.change_ns for change in first]),
        Column(
            "ratio", "ratio", "NEW over BASE: 0.5× is half the time", [_rounded(change.ratio, 4) for change in first]
        ),
        Column(
            "ratio within", "text", "Between what that lies, given the noise", [_interval(change) for change in first]
        ),
        *(
            (
                Column("BASE count", "count", "How often in BASE", [_rounded(one.base_count, 2) for one in first]),
                Column("NEW count", "count", "How often in NEW", [_rounded(one.new_count, 2) for one in first]),
            )
            if counted
            else ()
        ),
    )
    left = len(changes) - len(first)
    cut = f"The {format_count(len(first))} that changed most; {format_count(left)} are not listed. " if left else ""
    return DataTable(
        id=id_,
        title=title,
        note=f"{of}. {cut}",
        count=len(changes),
        columns=columns,
        order=4,
        colours=[change.direction for change in first],
        swatch=1,
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _interval(change: Change) -> str | None:
    return None if change.low is None or change.high is None else f"{change.low:.3g} to {change.high:.3g}"
