"""The ledger of a GPU as a bar: its segments, as shares of the window."""

from __future__ import annotations

from collections.abc import Mapping

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES, Swatch
from traceanalyzer.vocabulary.lines import UNATTRIBUTED


@dataclass(frozen=True)
class Segment:
    """One line of a GPU's ledger: its share of the window (0 to 1) and where its bar begins."""

    swatch: Swatch
    ns: int
    share: float
    begins: float


def ledger_segments(lines: Mapping[str, int], window: int) -> list[Segment]:
    """The lines of a ledger in the palette's order, without the empty ones. Their ns add up to the window exactly."""
    amounts = dict(lines)
    unknown = sum(ns for key, ns in amounts.items() if key not in {s.key for s in SWATCHES})
    amounts[UNATTRIBUTED.name] = amounts.get(UNATTRIBUTED.name, 0) + unknown
    return segments_of(amounts, window)


def segments_of(amounts: Mapping[str, int], whole: int) -> list[Segment]:
    """Amounts in ns by line, of which there are `whole` in all, in the palette's order without the empty ones."""
    segments, passed, whole = [], 0, max(whole, 1)
    for swatch in SWATCHES:
        ns = amounts.get(swatch.key, 0)
        if ns > 0:
            segments.append(Segment(swatch, ns, ns / whole, passed / whole))
            passed += ns
    return segments
