"""Many jobs side by side: which finding costs most GPU hours, by project and host, and which hosts and GPUs are slow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.slow import SlowGpu, SlowHost, slow_gpus, slow_hosts
from traceanalyzer.result.history.trend import Trend

HOURS = "gpu_hours"
"""The label that says how many GPU hours the job of a capture took in all."""
_HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True)
class Cost:
    """What the findings of one rule cost on one host for one project (null where not labelled), in GPU hours, over so many
    `captures`."""

    rule: str
    title: str
    project: str | None
    host: str | None
    gpu_hours: float
    captures: int


@dataclass(frozen=True)
class Fleet:
    """`gpu_hours` are those of all captures: of their jobs where `told_by_label` of them are labelled with that, else only what was
    recorded. `costs` begin with the largest."""

    gpu_hours: float
    captures: int
    told_by_label: int
    costs: list[Cost]
    slow_hosts: list[SlowHost]
    slow_gpus: list[SlowGpu]


def fleet_of(trend: Trend, entries: Iterable[Entry], since_ns: int = 0) -> Fleet:
    """Of the captures that were recorded since then; whether a host or GPU is slow is told by all of them."""
    entries = list(entries)
    recent = [entry for entry in entries if entry.time_ns >= since_ns and entry.unit_ns]
    by_id = {entry.id: entry for entry in entries}
    return Fleet(
        gpu_hours=round(sum(map(hours_of, recent)), 6),
        captures=len(recent),
        told_by_label=sum(_labelled(entry) is not None for entry in recent),
        costs=_costs(recent),
        slow_hosts=[slow for series in trend.series for slow in slow_hosts(series, by_id)],
        slow_gpus=[slow for series in trend.series for slow in slow_gpus(series, by_id)],
    )


def hours_of(entry: Entry) -> float:
    """The GPU hours of a capture's job, where it is labelled with them, else those that were recorded."""
    labelled = _labelled(entry)
    return entry.gpu_ns / _HOUR_NS if labelled is None else labelled


def _labelled(entry: Entry) -> float | None:
    try:
        hours = float(entry.labels[HOURS])
    except (KeyError, ValueError):
        return None
    return hours if 0 <= hours < 1e9 else None


def _costs(entries: Sequence[Entry]) -> list[Cost]:
    sums: dict[tuple[str, str | None, str | None], list[float]] = defaultdict(list)
    titles: dict[str, str] = {}
    for entry in entries:
        for one in entry.findings:
            if one.ns and entry.unit_ns:
                titles[one.rule] = one.title
                key = one.rule, entry.labels.get("project"), entry.labels.get("host")
                sums[key].append(min(one.ns / entry.unit_ns, 1.0) * hours_of(entry))
    found = [
        Cost(key[0], titles[key[0]], key[1], key[2], round(sum(hours), 6), len(hours)) for key, hours in sums.items()
    ]
    return sorted(found, key=lambda one: (-one.gpu_hours, one.rule, one.project or "", one.host or ""))
