"""The ledgers of many GPUs: the few that get a bar, and how all of them spread."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import BY_KEY, Swatch
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import SIDE_BY_SIDE, notable_gpus, spread
from traceanalyzer.vocabulary.lines import UNATTRIBUTED

DRAWN = 8
"""Of many GPUs so many get a bar."""


@dataclass(frozen=True)
class SpreadView:
    """One ledger line over all GPUs: shares of their windows, and who has least and most of it; nobody where all have the same."""

    swatch: Swatch
    least: float
    least_name: str
    median: float
    most: float
    most_name: str


@dataclass(frozen=True)
class ManyGpus:
    count: int
    spreads: list[SpreadView]


def gpus_to_show(result: Result) -> list[int]:
    """The positions of the GPUs whose ledgers and steps are drawn: all of them, or of many those that differ most."""
    count = len(result.devices)
    return list(range(count)) if count <= SIDE_BY_SIDE else notable_gpus(result, DRAWN)


def many_gpus(result: Result, names: list[str]) -> ManyGpus | None:
    """None where every GPU is drawn. `names` are those of `result.devices`."""
    devices = result.devices
    if len(devices) <= SIDE_BY_SIDE:
        return None
    spreads = []
    for one in spread(devices):
        ends = (names[one.least_at], names[one.most_at]) if one.least < one.most else ("", "")
        swatch = BY_KEY.get(one.line, BY_KEY[UNATTRIBUTED.name])
        spreads.append(SpreadView(swatch, one.least, ends[0], one.median, one.most, ends[1]))
    return ManyGpus(len(devices), spreads)
