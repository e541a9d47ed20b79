"""The groups of the timeline in their order: rank by rank its GPUs, its host threads and its counters."""

from __future__ import annotations

from traceanalyzer.model.launch_links import Numbers, launch_links
from traceanalyzer.report.timeline import communication_lane, counter_lanes, gpu_lanes, host_lanes, path_lane
from traceanalyzer.report.timeline.communication_lane import communication_lanes
from traceanalyzer.report.timeline.counter_lanes import add_counters
from traceanalyzer.report.timeline.gpu_lanes import ledger_lanes, step_lanes, stream_lanes
from traceanalyzer.report.timeline.host_lanes import thread_groups
from traceanalyzer.report.timeline.lanes import Group, Source, extent
from traceanalyzer.report.timeline.path_lane import path_lanes
from traceanalyzer.result.words.gpu_names import gpu_of

TABLES = frozenset(
    name for one in (gpu_lanes, path_lane, communication_lane, host_lanes, counter_lanes) for name in one.TABLES
)
"""What all lanes read, of which many may be without rows: none of them is optional, since whoever gives tables gives each of these."""


def lane_groups(source: Source) -> list[Group]:
    """All groups, their times as the tables have them."""
    source.declared = TABLES
    links = launch_links(source.table("launches"), source.table("api_calls"), source.table("gpu_ops"))
    groups = [*_gpu_groups(source, links.ops), *thread_groups(source, links.calls)]
    groups += add_counters(source, groups)
    return sorted(groups, key=lambda group: group.rank)


def _gpu_groups(source: Source, link: Numbers) -> list[Group]:
    ledger, streams = ledger_lanes(source), stream_lanes(source, link)
    shown = sorted(ledger.keys() | streams.keys())  # of many ranks the steps are known, but not the events
    ranks = {key[0] for key in shown}
    steps, communication, path = step_lanes(source), communication_lanes(source, ranks), path_lanes(source, ranks)
    groups = []
    for key in shown:
        found = [ledger.get(key), path.get(key), steps.get(key), communication.get(key), *streams.get(key, [])]
        lanes = [lane for lane in found if lane is not None]
        groups.append(Group(gpu_of(source.rank_name(key[0]), key[1]), key[0], key[1], extent(lanes), lanes))
    return groups
