"""GPUs that several files used at the same time: what each file is told of the others, so that all have one ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from traceanalyzer.analysis.join import Brief, Join
from traceanalyzer.analysis.parts import Part
from traceanalyzer.columns import frames
from traceanalyzer.config import Config
from traceanalyzer.derive.ledger.shared import Use, common_share, divide_gpu, shift_portion
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.recordings.job_health import apart_on_one_gpu

LEAST_COMMON = 0.9
"""Where less of the time was recorded of all of a GPU's users, whether it was idle is not known for too much of it."""


def devices_in_use(joined: Join, inputs: Sequence[Input]) -> list[tuple[int, tuple[int, ...]]]:
    """The places of the parts that share GPUs, and the numbers of those."""
    keys = [key for group in joined.jobs.shared_gpus for key in group]
    return [
        (at, tuple(device for ordinal, device in keys if ordinal == one.ordinal))
        for at, one in enumerate(inputs)
        if any(ordinal == one.ordinal for ordinal, _ in keys)
    ]


def uses(task: tuple[Part, tuple[int, ...]], config: Config) -> dict[frames.Key, Use]:
    """What a part did on some of its GPUs; the one thing that grows with a trace which travels, and only of shared GPUs."""
    part, devices = task
    catalog = part.catalog(config)
    rank = part.input.ordinal
    recorded = {row["rank"]: (row["start_ns"], row["end_ns"]) for row in catalog.table("recordings").to_pylist()}
    windows = {
        (row["rank"], row["device"]): (row["start_ns"], row["end_ns"]) for row in catalog.table("windows").to_pylist()
    }
    busy = catalog.value("busy")
    return {
        (rank, device): Use(windows[rank, device], recorded.get(rank, windows[rank, device]), busy[rank, device])
        for device in devices
    }


def with_shared_gpus(joined: Join, inputs: Sequence[Input], found: Sequence[Mapping[frames.Key, Use]]) -> Join:
    """The join with what each part is told of the GPUs that it shares; a note where too little was recorded of all users."""
    every = {key: use for one in found for key, use in one.items()}
    clock = _clocks(joined, inputs)
    told: dict[int, Brief] = {one.ordinal: brief for one, brief in zip(inputs, joined.briefs, strict=True)}
    shared, health = [], [joined.health]
    for group in joined.jobs.shared_gpus:
        zero = clock[group[0][0]]
        together = {key: every[key].moved(clock[key[0]] - zero) for key in group}
        common = common_share(together)
        if common < LEAST_COMMON:
            health.append(apart_on_one_gpu(inputs, group, common))
            continue
        gpu, portions = divide_gpu(together)
        shared.append(gpu)
        for (ordinal, device), portion in portions.items():
            own = shift_portion(portion, zero - clock[ordinal])
            told[ordinal] = replace(told[ordinal], portions={**told[ordinal].portions, (ordinal, device): own})
    briefs = [told[one.ordinal] for one in inputs]
    return replace(joined, briefs=briefs, shared=tuple(shared), health=pa.concat_tables(health))


def _clocks(joined: Join, inputs: Sequence[Input]) -> dict[int, int]:
    """By ordinal what to add to a file's times in ns to read one clock: the files' own, corrected by collectives that join all."""
    rows = {row["rank"]: row for row in joined.offsets.to_pylist()}
    users = {ordinal for group in joined.jobs.shared_gpus for ordinal, _ in group}
    one_domain = users <= set(rows) and len({rows[ordinal]["domain"] for ordinal in users}) == 1
    off = {ordinal: (rows[ordinal]["offset"] or 0) if one_domain else 0 for ordinal in users}
    return {one.ordinal: (one.clock_base_ns or 0) - off.get(one.ordinal, 0) for one in inputs}
