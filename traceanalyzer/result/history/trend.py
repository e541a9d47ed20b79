"""The captures of a history in order of time, series by series: their levels, what changed them and whose doing that was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import pairwise
from math import exp, log, sqrt
from statistics import median

import numpy as np

from traceanalyzer.records import dataclass
from traceanalyzer.result.comparing.words import UNIT_WORDS
from traceanalyzer.result.history.changepoints import FEWEST, Level, Levels, levels_of
from traceanalyzer.result.history.entry import SERIES, Entry
from traceanalyzer.result.history.parts import PartShift, part_shifts
from traceanalyzer.result.history.verdicts import HARDWARE, METHOD, NOISE, REAL, VERDICTS, Verdict, verdict_on
from traceanalyzer.result.written import Written
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.version import VERSION
from traceanalyzer.vocabulary.levels import COULD_NOT_JUDGE

SCHEMA_VERSION = "1.0"
LEAST_NOISE = 0.001
"""Two captures of the same program differ by more than a thousandth."""
LEAST_SHIFT = 0.005
"""A smaller change of the level is none that anybody looks for."""
_BACK = 2
"""So many captures beside the level before and after them are a noisy night or two."""
_COMMIT = 12
"""Letters of a commit."""
_SIDES = 1.645
"""Standard errors within which nine of ten true changes lie."""


@dataclass(frozen=True)
class Shift:
    """From capture `after` on (`before` is the last one before it; both are ids) a unit takes `after_ns` instead of `before_ns`:
    `share` more (less where negative), in nine of ten cases between `low` and `high`. `captures` have been made since then, up to
    the next shift. `verdict` is one of VERDICTS, `reason` and `also` as in `Verdict`. `commits` are those of both captures, null
    where not labelled."""

    before: str
    after: str
    before_ns: int
    after_ns: int
    share: float
    low: float
    high: float
    captures: int
    verdict: str
    reason: str
    also: list[str]
    commits: tuple[str | None, str | None]


@dataclass(frozen=True)
class Stretch:
    """Captures on one level: positions `first` to `end` (behind the last) in `Series.captures`, the mean of their times and the
    limits within which nearly all of them lie."""

    first: int
    end: int
    mean_ns: int
    low_ns: int
    high_ns: int


@dataclass(frozen=True)
class Left:
    """A capture that says nothing of the level, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Series:
    """Captures of one program: `labels` are those by which it is told from others. `captures` are ids in order of time, `unit_ns`
    their times. `noise` is what one capture differs from the next by (a standard deviation, as a share of a unit); null for too few
    captures. `parts` are changes of single lines and findings. `noisy` are those that are far off the level of their neighbours.
    `left_out` could not be judged. `latest` says of the last capture what is known of it, `state` is one of VERDICTS, `steady`, or
    `could_not_judge`."""

    labels: dict[str, str]
    captures: list[str]
    unit_ns: list[int]
    noise: float | None
    stretches: list[Stretch]
    shifts: list[Shift]
    parts: list[PartShift]
    noisy: list[str]
    left_out: list[Left]
    state: str
    latest: str


STEADY, UNKNOWN = "steady", COULD_NOT_JUDGE
STATES = (*VERDICTS, STEADY, UNKNOWN)


@dataclass(frozen=True)
class Trend(Written):
    """The document. `series` are in the order of their labels."""

    tool: dict[str, str]
    headline: str
    series: list[Series]
    schema_version: str = field(default=SCHEMA_VERSION)


def trend_of(entries: Iterable[Entry]) -> Trend:
    """What a history says, whatever the order of its entries."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: (one.time_ns, one.id)):
        groups.setdefault(tuple(entry.labels.get(name, "") for name in SERIES), []).append(entry)
    series = [series_of(group) for _, group in sorted(groups.items())]
    by_id = {entry.id: entry for group in groups.values() for entry in group}
    return Trend({"name": "traceanalyzer", "version": VERSION}, _headline(series, by_id), series)


def series_of(entries: Sequence[Entry]) -> Series:
    """Of captures of one program in order of time, at least one."""
    judged = [entry for entry in entries if entry.unit_ns]
    left = [Left(entry.id, entry.unjudged or "it holds no unit of work") for entry in entries if not entry.unit_ns]
    labels = {name: entries[0].labels[name] for name in SERIES if name in entries[0].labels}
    times = [entry.unit_ns for entry in judged if entry.unit_ns]
    if not judged:
        return Series(
            labels, [], [], None, [], [], [], [], left, UNKNOWN, f"no capture could be judged: {left[-1].reason}"
        )
    levels = levels_of(np.log(np.array(times, np.float64)), max(LEAST_NOISE, _within(judged)))
    told = len(judged) >= FEWEST
    shifts = list(_shifts(judged, levels))
    noisy = [judged[at].id for at in levels.far] if told else []
    state, latest = _latest(judged, levels, shifts, noisy, left, entries)
    return Series(
        labels=labels,
        captures=[entry.id for entry in judged],
        unit_ns=times,
        noise=round(exp(levels.noise) - 1, 6) if told else None,
        stretches=[_stretch(part, levels.noise) for part in levels.parts],
        shifts=shifts,
        parts=part_shifts(judged, _cuts(judged, shifts)),
        noisy=noisy,
        left_out=left,
        state=state,
        latest=latest,
    )


def _within(entries: Sequence[Entry]) -> float:
    """What a capture's time is unsure by, told from its own units: the mean of them is no surer than that."""
    errors = [
        entry.deviation_ns / entry.unit_ns / sqrt(entry.unit_count)
        for entry in entries
        if entry.deviation_ns and entry.unit_ns and entry.unit_count
    ]
    return median(errors) if errors else 0.0


def _stretch(part: Level, noise: float) -> Stretch:
    mean, low, high = (round(exp(part.mean + by * 2 * noise)) for by in (0, -1, 1))
    return Stretch(part.first, part.end, mean, low, high)


def _shifts(entries: Sequence[Entry], levels: Levels) -> Iterator[Shift]:
    for number, (one, other) in enumerate(pairwise(levels.parts)):
        grown = other.mean - one.mean
        if abs(exp(grown) - 1) < LEAST_SHIFT:
            continue
        by = _SIDES * sqrt(one.error**2 + other.error**2)
        before, after = entries[one.first : one.end], entries[other.first : other.end]
        verdict = _noisy(levels, number) or verdict_on(before, after)
        yield Shift(
            before=before[-1].id,
            after=after[0].id,
            before_ns=round(exp(one.mean)),
            after_ns=round(exp(other.mean)),
            share=round(exp(grown) - 1, 6),
            low=round(exp(grown - by) - 1, 6),
            high=round(exp(grown + by) - 1, 6),
            captures=len(after),
            verdict=verdict.kind,
            reason=verdict.reason,
            also=verdict.also,
            commits=(before[-1].labels.get("commit"), after[0].labels.get("commit")),
        )


def _noisy(levels: Levels, number: int) -> Verdict | None:
    """That a change is that to, or back from, a capture or two beside the level around them."""
    parts = levels.parts
    for middle in (number, number + 1):
        if not 0 < middle < len(parts) - 1 or parts[middle].count > _BACK:
            continue
        before, after = parts[middle - 1], parts[middle + 1]
        error = sqrt(before.error**2 + after.error**2)
        if abs(before.mean - after.mean) <= max(2 * _SIDES * error, LEAST_SHIFT):
            return Verdict(NOISE, f"{_captures(parts[middle].count)} off a level that is the same before and after", [])
    return None


def _cuts(judged: Sequence[Entry], shifts: Sequence[Shift]) -> list[tuple[int, Verdict]]:
    place = {entry.id: at for at, entry in enumerate(judged)}
    return [(place[shift.after], Verdict(shift.verdict, shift.reason, shift.also)) for shift in shifts]


def _captures(count: int) -> str:
    return "one capture" if count == 1 else f"{count} captures"


def _latest(
    judged: Sequence[Entry],
    levels: Levels,
    shifts: Sequence[Shift],
    noisy: Sequence[str],
    left: Sequence[Left],
    entries: Sequence[Entry],
) -> tuple[str, str]:
    """What is known of the last capture."""
    last = judged[-1]
    if entries[-1] is not last:
        return UNKNOWN, f"the last capture, {entries[-1].name}, could not be judged: {left[-1].reason}"
    if len(judged) < FEWEST:
        return UNKNOWN, f"{_captures(len(judged))} so far; changes are told from {FEWEST} on"
    assert last.unit_ns
    part = levels.parts[-1]
    if last.id in noisy:
        more = _more(exp(log(last.unit_ns) - part.mean) - 1)
        return NOISE, (
            f"the last capture takes {more} than the {part.count - 1} before it: a noisy night, or the first of a change; "
            "the next capture tells"
        )
    newest = next((shift for shift in shifts if shift.after == judged[part.first].id), None)
    if newest is None:
        return STEADY, (
            f"the last capture takes what the {part.count - 1} before it took, within {format_share(2 * levels.noise)}"
        )
    return newest.verdict, shift_words(newest, judged[part.first])


_BECAUSE = {
    REAL: ": ",
    METHOD: ", because of how it is recorded: ",
    HARDWARE: ", because of the hardware: ",
    NOISE: ", which is noise: ",
}


def shift_words(shift: Shift, first: Entry | None = None) -> str:
    """A change in one sentence, without its stop and with a small letter; `first` is its capture `after`, for the day and the unit."""
    commits = [commit[:_COMMIT] for commit in shift.commits if commit]
    since = f"since {day_words(first.time_ns)} " if first else ""
    if shift.verdict == REAL and commits and shift.commits[0] != shift.commits[1]:
        since += f"(commit {commits[-1]}) " if since else f"since commit {commits[-1]} "
    unit = UNIT_WORDS.get(first.unit or "", "a unit of work") if first else "a unit of work"
    now, was = format_duration(shift.after_ns), format_duration(shift.before_ns)
    return f"{since}{unit} takes {_more(shift.share)}, {now} instead of {was}{_BECAUSE[shift.verdict]}{shift.reason}"


def day_words(time_ns: int) -> str:
    """The day (UTC) of a time in ns since 1970."""
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d}"


def _more(share: float) -> str:
    return f"{format_share(abs(share))} {'more' if share > 0 else 'less'} time"


def _headline(series: Sequence[Series], by_id: Mapping[str, Entry]) -> str:
    if not series:
        return "The history is empty."
    if len(series) == 1:
        return f"{series[0].latest[:1].upper()}{series[0].latest[1:]}."
    worse = [
        (one, shift) for one in series if (shift := _last_change(one)) and shift.verdict == REAL and shift.share > 0
    ]
    if worse:
        most, shift = max(worse, key=lambda row: row[1].share)
        count = f"{len(worse)} of {len(series)} series {'takes' if len(worse) == 1 else 'take'} more time"
        which = ":" if len(worse) == 1 else ", most of all"
        said = shift_words(shift, by_id[shift.after])
        return f"{count}{which} {name_of(most)}. {said[:1].upper()}{said[1:]}."
    return f"None of {len(series)} series takes more time by the program's doing."


def _last_change(series: Series) -> Shift | None:
    """The last one that is not noise."""
    return next((shift for shift in reversed(series.shifts) if shift.verdict != NOISE), None)


def name_of(series: Series) -> str:
    """What a series is called."""
    return " / ".join(series.labels.values()) or "all captures"
