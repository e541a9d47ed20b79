"""What became slower, faster, new or gone: the unit of work, its ledger lines, and operations by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from traceanalyzer.result.captures.capture import MOST_NAMES, Capture, Work
from traceanalyzer.result.comparing.comparison import Change
from traceanalyzer.result.comparing.noise import LEAST, NORMAL, difference_interval, ratio_interval, student

TRIFLE = 0.002
"""What changes a unit by less than this share of it matters to nobody."""
LITTLE = 0.01
"""And of the critical path what does by less than this one."""


def unit_change(base: Sequence[Capture], new: Sequence[Capture], one: Capture, other: Capture) -> Change | None:
    """The change of a whole unit; `one` and `other` are the merged captures. None where a side has none."""
    if one.unit is None or other.unit is None:
        return None
    before, after = one.unit.time.mean_ns, other.unit.time.mean_ns
    low, high = ratio_interval(base, new) or (None, None)
    ratio = after / before if before else None
    direction = "same"
    if ratio is not None and low is not None and high is not None and abs(ratio - 1) >= LEAST:
        direction = "faster" if high < 1 else "slower" if low > 1 else "same"
    return Change(
        one.unit.kind, before, after, after - before, _rounded(ratio), _rounded(low), _rounded(high), direction
    )


def line_changes(base: Sequence[Capture], new: Sequence[Capture], one: Capture, other: Capture) -> list[Change]:
    """One a ledger line that either side has, the largest change first. They add up to the change of the unit."""
    unit = _unit_ns(one, other)
    found = []
    for name in dict.fromkeys([*one.lines, *other.lines]):
        sides = [[capture.lines[name].samples_ns for capture in side if name in capture.lines] for side in (base, new)]
        before, after = (merged.lines[name].mean_ns if name in merged.lines else None for merged in (one, other))
        noise = difference_interval(*(samples or [[0]] for samples in sides))
        found.append(_change(name, before, after, noise, unit))
    return sorted(found, key=lambda change: (-abs(change.change_ns), change.name))


def work_changes(base: Sequence[Work], new: Sequence[Work], one: Capture, other: Capture) -> list[Change]:
    """One a name, the largest change first. What may only be missing from a list that was cut short is left out."""
    unit, units = _unit_ns(one, other), [merged.unit.count if merged.unit else 0 for merged in (one, other)]
    sides = [{work.name: work for work in works} for works in (base, new)]
    least = [works[-1].ns if len(works) >= MOST_NAMES else 0 for works in (base, new)]
    found = []
    for name in dict.fromkeys(work.name for works in (base, new) for work in works):
        pair = [side.get(name) for side in sides]
        if any(work is None and there is not None and there.ns <= least[at] for at, (work, there) in _each(pair)):
            continue
        before, after = (work.ns if work else None for work in pair)
        noise = _normal_interval(pair, units)
        counts = [work.count if work else None for work in pair]
        found.append(_change(name, before, after, noise, unit, *counts))
    return sorted(found, key=lambda change: (-abs(change.change_ns), change.name))


def path_changes(one: Capture, other: Capture) -> list[Change]:
    """One a link of the critical path, the largest change first; without what changes too little to set the pace. Nothing unless both
    sides know their path."""
    if not one.path or not other.path:
        return []
    least = LITTLE * _unit_ns(one, other)
    changes = work_changes(one.path, other.path, one, other)
    return [replace(change, base_count=None, new_count=None) for change in changes if abs(change.change_ns) >= least]


def _each(pair: list[Work | None]) -> list[tuple[int, tuple[Work | None, Work | None]]]:
    """Each side with the other one."""
    return [(0, (pair[0], pair[1])), (1, (pair[1], pair[0]))]


def _unit_ns(one: Capture, other: Capture) -> int:
    return max((merged.unit.time.mean_ns for merged in (one, other) if merged.unit), default=1)


def _normal_interval(pair: list[Work | None], units: list[int]) -> tuple[float, float] | None:
    """Between which ns the change of a mean lies, by the standard error of both; None where no deviation is known."""
    change = (pair[1].ns if pair[1] else 0) - (pair[0].ns if pair[0] else 0)
    known = [
        (work.deviation_ns, count)
        for work, count in zip(pair, units, strict=True)
        if work and work.deviation_ns is not None
    ]
    if not known:
        return None
    wider = student([count for _, count in known])
    error = NORMAL * wider * sqrt(sum(deviation**2 / max(count, 1) for deviation, count in known))
    return change - error, change + error


def _change(
    name: str,
    before: int | None,
    after: int | None,
    noise: tuple[float, float] | None,
    unit: int,
    base_count: float | None = None,
    new_count: float | None = None,
) -> Change:
    """`noise` is the interval of the change in ns; from it comes that of the ratio."""
    change = (after or 0) - (before or 0)
    both = bool(before and after)
    low = high = None
    if both and noise and before:
        low, high = (max(before + end, 0.0) / before for end in noise)
    return Change(
        name,
        before,
        after,
        change,
        _rounded(after / before) if before and after else None,
        _rounded(low),
        _rounded(high),
        _direction(before, after, noise, unit),
        base_count,
        new_count,
    )


def _direction(before: int | None, after: int | None, noise: tuple[float, float] | None, unit: int) -> str:
    if before is None or after is None:
        return "same" if before == after else "new" if before is None else "vanished"
    change = after - before
    if abs(change) < max(TRIFLE * unit, LEAST * before) or noise is None or noise[0] <= 0 <= noise[1]:
        return "same"
    return "slower" if change > 0 else "faster"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6) or value
