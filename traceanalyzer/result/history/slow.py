"""Hosts and GPUs that are persistently slower than others at the same work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import erfc, exp, log, sqrt
from typing import TypeVar

import numpy as np

from traceanalyzer.records import dataclass
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.trend import Series, name_of

FEWEST = 3
"""Captures of a host or GPU from which on it can be called slow."""
LEAST_SLOWER = 0.02
_CHANCE = 0.01
_TO_DEVIATION = 1.4826

Machine = TypeVar("Machine")


@dataclass(frozen=True)
class SlowHost:
    """A host on which a series takes `share` more time than on `others`, in nine of ten cases more than `low`; `captures` are those
    on it."""

    host: str
    series: str
    share: float
    low: float
    captures: int
    others: int


@dataclass(frozen=True)
class SlowGpu:
    """A GPU that takes `share` more time than others, in nine of ten cases more than `low`: for the same kernels as other GPUs of the
    same captures where these have several (`beside`), else for a unit of the series. It is known by its `uuid` or, where that was
    not recorded, by its number on its host. `host` is the label of its captures, null where they have none or several. `others` are
    measurements of other GPUs."""

    uuid: str | None
    device: int | None
    host: str | None
    series: str
    share: float
    low: float
    captures: int
    others: int
    beside: bool


@dataclass(frozen=True)
class _Slower:
    """By how much one machine stands out, of so many `own` measurements and those of others."""

    share: float
    low: float
    own: int
    others: int


def slow_hosts(series: Series, by_id: Mapping[str, Entry]) -> Iterator[SlowHost]:
    """Each host against all others, by what its captures are off the level that the series had then."""
    off: dict[str, list[float]] = defaultdict(list)
    for entry, value in _off_level(series, by_id):
        if host := entry.labels.get("host"):
            off[host].append(value)
    for host, slow in _standing_out(off):
        yield SlowHost(host, name_of(series), slow.share, slow.low, slow.own, slow.others)


_Gpu = tuple[str | None, int | None, str | None]
"""Its UUID, or its number and the label of its host."""


def slow_gpus(series: Series, by_id: Mapping[str, Entry]) -> Iterator[SlowGpu]:
    """Each GPU against all others of the series: by its kernels where captures have several GPUs, else as hosts are."""
    beside: dict[_Gpu, list[float]] = defaultdict(list)
    apart: dict[_Gpu, list[float]] = defaultdict(list)
    hosts: dict[_Gpu, set[str | None]] = defaultdict(set)
    numbers: dict[_Gpu, set[int | None]] = defaultdict(set)
    for entry, value in _off_level(series, by_id):
        host = entry.labels.get("host")
        for pace in entry.paces:
            if pace.uuid is None and (pace.device is None or host is None):
                continue
            gpu: _Gpu = (pace.uuid, None, None) if pace.uuid else (None, pace.device, host)
            hosts[gpu].add(host)
            numbers[gpu].add(pace.device)
            if pace.ratio:
                beside[gpu].append(log(pace.ratio))
            elif pace.uuid and len(entry.paces) == 1 == entry.gpu_count:
                apart[gpu].append(value)
    for off in (beside, apart):
        for gpu, slow in _standing_out(off):
            yield SlowGpu(
                uuid=gpu[0],
                device=_only(numbers[gpu]),
                host=_only(hosts[gpu]),
                series=name_of(series),
                share=slow.share,
                low=slow.low,
                captures=slow.own,
                others=slow.others,
                beside=off is beside,
            )


def _only(found: set[Machine]) -> Machine | None:
    return next(iter(found)) if len(found) == 1 else None


def _off_level(series: Series, by_id: Mapping[str, Entry]) -> Iterator[tuple[Entry, float]]:
    """The captures of a series that are not noisy, and the logarithm of their time over the level of then."""
    for stretch in series.stretches:
        for at in range(stretch.first, stretch.end):
            if series.captures[at] not in series.noisy:
                yield by_id[series.captures[at]], log(series.unit_ns[at] / stretch.mean_ns)


def _standing_out(off: Mapping[Machine, list[float]]) -> Iterator[tuple[Machine, _Slower]]:
    """Those machines that take more time than all others, by more than chance; the logarithms of their times are given."""
    told = sorted(
        ((machine, off[machine]) for machine in off if len(off[machine]) >= FEWEST), key=lambda one: repr(one[0])
    )
    if len(told) < 2:
        return
    counts = [len(values) for _, values in told]
    owner, every = np.repeat(np.arange(len(told)), counts), np.concatenate([values for _, values in told])
    middles = np.array([np.median(values) for _, values in told])
    noise = _TO_DEVIATION * float(np.median(np.abs(every - middles[owner])))
    for at in np.flatnonzero(middles > np.median(every)).tolist():
        own, others = counts[at], len(every) - counts[at]
        slower = float(middles[at] - np.median(every[owner != at]))
        # A median is a quarter less sure than a mean.
        error = 1.25 * noise * sqrt(1 / own + 1 / others)
        chance = len(told) * erfc(slower / error / sqrt(2)) / 2 if error else 0.0
        if exp(slower) - 1 >= LEAST_SLOWER and chance <= _CHANCE:
            yield (
                told[at][0],
                _Slower(round(exp(slower) - 1, 6), round(exp(slower - 1.645 * error) - 1, 6), own, others),
            )
