"""What limits the kernels of a trace, or of a profile alone: one row a kernel, and one a launch, for rules that claim its time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.kernel_counters.answers import words
from traceanalyzer.evidence.kernel_counters.answers.limiter import Limit, limit_of, occupancy_by
from traceanalyzer.evidence.kernel_counters.answers.matching import Match, Matches
from traceanalyzer.evidence.kernel_counters.derived_tables import KERNEL_LIMITS, LIMITED_KERNELS

_KEPT = (
    *("grid", "block", "blocks", "sm", "memory", "dram", "occupancy", "occupancy_limit", "dram_rate", "dram_peak"),
    *("flop_rate", "flop_peak", "flop_kind", "gpu_name", "rule", "estimate", "bottleneck"),
)


def kernel_limits(kernel_profiles: pa.Table, kernels: pa.Table, kernel_matches: Matches) -> pa.Table:
    """One row a profile, and a GPU of the trace that ran it; those with most exposed time first."""
    alone = frames.ints(kernels, "alone")
    of_gpu = {key: int(alone[rows].sum()) for key, rows in frames.groups(kernels)}
    length = frames.duration(kernels)
    traced = kernels.num_rows > 0
    rows = []
    for number, profile in enumerate(kernel_profiles.to_pylist()):
        limit = limit_of(profile)
        nowhere = Match((profile["rank"], profile["device"]), np.empty(0, np.int64), None)
        for match in kernel_matches.of.get(number, [nowhere]):
            exposed = int(alone[match.rows].sum())
            rows.append(
                {
                    **{name: profile[name] for name in _KEPT},
                    "rank": match.gpu[0],
                    "device": match.gpu[1],
                    **_told(profile, limit, match.name),
                    "profiled": profile["launches"],
                    "matched": len(match.rows) if traced else None,
                    "shared": match.shared,
                    "time": int(length[match.rows].sum()) if traced else None,
                    "exposed": exposed if traced else None,
                    "share": exposed / max(of_gpu.get(match.gpu, 0), 1) if traced else None,
                    "weight": float(exposed) if traced else (profile["profiled_time"] or 0.0) * profile["launches"],
                }
            )
    rows.sort(key=lambda row: (row["rank"], row["device"], -row["weight"]))
    return pa.Table.from_pylist(rows, KERNEL_LIMITS.schema)


def limited_kernels(kernel_profiles: pa.Table, kernels: pa.Table, kernel_matches: Matches) -> pa.Table:
    """One row a launch of the trace that a profile stands for, by start; without a trace, one a profile."""
    tables = []
    for number, profile in enumerate(kernel_profiles.to_pylist()):
        limit = limit_of(profile)
        said = {
            "occupancy_by": occupancy_by(profile),
            "waits": words.waits(profile),
            "contended_by": limit.contended_by,
        }
        if not kernels.num_rows:
            weight = (profile["profiled_time"] or 0.0) * profile["launches"]
            row = {"rank": profile["rank"], "device": profile["device"], "start_ns": 0, "end_ns": 0, "alone": 0}
            row |= {"weight": weight, "traced": False, **said, **_told(profile, limit, None)}
            tables.append(pa.Table.from_pylist([row], LIMITED_KERNELS.schema))
        for match in kernel_matches.of.get(number, ()):
            if len(match.rows):
                tables.append(_launches(kernels, match, {**said, **_told(profile, limit, match.name)}))
    if not tables:
        return LIMITED_KERNELS.empty()
    table = frames.stack(LIMITED_KERNELS, tables)
    return table.sort_by([(name, "ascending") for name in ("rank", "device", "start_ns")])


def _told(profile: dict[str, Any], limit: Limit, name: str | None) -> dict[str, Any]:
    name = name or profile["name"]
    return {
        "name": name,
        "limiter": limit.limiter,
        "what": words.what(profile, limit, name),
        "used": limit.used,
        "near_roof": limit.near_roof,
        "gain": limit.gain,
        "least_gain": limit.least,
        "most_gain": limit.most,
    }


def _launches(kernels: pa.Table, match: Match, told: dict[str, Any]) -> pa.Table:
    rows = kernels.take(pa.array(match.rows))
    columns: dict[str, Any] = {
        name: rows[name] for name in ("rank", "device", "process", "stream", "start_ns", "end_ns", "alone")
    }
    columns["weight"] = rows["alone"].cast(pa.float64())
    columns["traced"] = pa.repeat(True, rows.num_rows)
    for name, value in told.items():
        kind = LIMITED_KERNELS.schema.field(name).type
        if pa.types.is_dictionary(kind):
            columns[name] = frames.names(np.zeros(rows.num_rows, np.int64), [value])
        else:
            columns[name] = pa.repeat(pa.scalar(value, kind), rows.num_rows)
    return frames.build(LIMITED_KERNELS, columns)
