"""What is the same on many ranks is said once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding, Health, Saving
from traceanalyzer.units import format_count, format_share
from traceanalyzer.vocabulary.health import RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import SEVERITIES

MOST_NOTES = 4
"""Health notes of one code that are shown; their figures can differ by rank."""
MORE = "more of this kind, with other figures"
COUNTED = (RANKS_IN_DOUBT,)
"""Codes whose words say how many."""


@dataclass(frozen=True)
class Note:
    """What the health notes say that several ranks may share: how often in all (1 where the words say it), and on which
    ranks; none when it is about all files."""

    code: str
    severity: str
    message: str
    count: int
    ranks: list[int]


def rank_list(ranks: Collection[int], most: int = 6) -> str:
    """Ranks as people write them: "0-3, 7, 9 and 12 more"; runs of neighbours count once, at most `most` of these are named."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = []
    for first, last in runs[:most]:
        parts.append(str(first) if first == last else f"{first}{'-' if last - first > 1 else ', '}{last}")
    left = sum(last - first + 1 for first, last in runs[most:])
    return ", ".join(parts) + (f" and {format_count(left)} more" if left else "")


def notes(health: Sequence[Health]) -> list[Note]:
    """Health notes in their order, those with the same words as one. Of a code with many different words the rest are one note too."""
    words: dict[str, dict[str, None]] = {}
    for one in health:
        words.setdefault(one.code, {}).setdefault(one.message)
    said = {
        code: set(islice(found, MOST_NOTES if len(found) > MOST_NOTES + 1 else None)) for code, found in words.items()
    }
    groups: dict[tuple[str, str], list[Health]] = {}
    for one in health:
        groups.setdefault((one.code, one.message if one.message in said[one.code] else MORE), []).append(one)
    return [
        Note(
            code,
            max((one.severity for one in group), key=SEVERITIES.index),
            message,
            1 if code in COUNTED and message != MORE else sum(one.count for one in group),
            [one.rank for one in group if one.rank is not None],
        )
        for (code, message), group in groups.items()
    ]


def whose_time(saving: Saving) -> str:
    """What the share of a saving is a share of: the window of its GPU, or those of several together."""
    return "the window" if saving.gpu_count == 1 else f"the time of {format_count(saving.gpu_count)} GPUs"


def share_range(findings: Sequence[Finding]) -> str:
    """How much of the window each of these could win: "12 to 14%", or "14%"; empty when that is nothing."""
    shares = [finding.saving.recoverable_share or 0.0 for finding in findings]
    low, high = format_share(min(shares)), format_share(max(shares))
    if not max(shares):
        return ""
    return high if low == high else f"{low.removesuffix('%')} to {high}"
