"""The ranks of a job beside each other: their steps, who came late, and the collectives by kind and size.

Made from small tables of all ranks; each function returns plain rows, sorted, for the result document.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import EMPTY, covered
from traceanalyzer.ranks.collectives.collective_names import bus_factor
from traceanalyzer.ranks.collectives.collectives import lanes
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT

MOST_COLLECTIVES = 100
"""Kinds and sizes listed, those with most exposed time."""
MOST_APART = 4
"""Captures of one job overlap: with so many times as many names as any rank has steps, the names are not the job's."""
Row = dict[str, Any]
_DIGITS = re.compile(r"\d+")
_LAST = "last"


def step_matrix(step_ledger: pa.Table, waited_intervals: pa.Table) -> tuple[list[str], list[Row]]:
    """Names of the steps in their order, and for each (rank, device) its `step_ns` and `wait_ns` by those names.

    Captures begin apart, so steps are the same where their names are, as ProfilerStep#12 is. Where names say nothing, or each rank has
    its own, they are counted from the end, for which captures are closer to one another than for their beginning.
    """
    waits = {
        key: (frames.ints(spans, "start_ns"), frames.ints(spans, "end_ns"))
        for key, spans in frames.split(waited_intervals)
    }
    gpus: list[tuple[frames.Key, list[str], list[int | None], list[int]]] = []
    for key, steps in frames.split(step_ledger):
        start, end = frames.ints(steps, "start_ns"), frames.ints(steps, "end_ns")
        wait = covered(start, end, waits.get(key, EMPTY))
        complete = steps["complete"].to_pylist()
        times = [int(t) if whole else None for t, whole in zip(end - start, complete, strict=True)]
        gpus.append((key, _names(steps["name"].to_pylist()), times, wait.tolist()))
    names = sorted({name for _, own, _, _ in gpus for name in own}, key=_place)
    if len(names) > MOST_APART * max((len(own) for _, own, _, _ in gpus), default=0):
        gpus = [(key, _from_the_end(len(own)), times, waited) for key, own, times, waited in gpus]
        names = sorted({name for _, own, _, _ in gpus for name in own}, key=_place)
    rows = []
    for (rank, device), own, times, waited in gpus:
        at = {name: place for place, name in enumerate(own)}
        rows.append(
            {
                "rank": rank,
                "device": device,
                "step_ns": [times[at[name]] if name in at else None for name in names],
                "wait_ns": [waited[at[name]] if name in at else None for name in names],
            }
        )
    return names, rows


def _names(given: list[str | None]) -> list[str]:
    """A name for each step of one GPU, each once."""
    if None not in given and len(set(given)) == len(given) and all(_DIGITS.search(str(name)) for name in given):
        return [str(name) for name in given]
    return _from_the_end(len(given))


def _from_the_end(count: int) -> list[str]:
    return [f"{_LAST} - {back}" if back else _LAST for back in range(count - 1, -1, -1)]


def _place(name: str) -> tuple[tuple[int, ...], str]:
    """What names of steps are sorted by: their numbers from the left, epoch before step."""
    numbers = [int(digits) for digits in _DIGITS.findall(name)]
    return tuple(-number for number in numbers or [0]) if name.startswith(_LAST) else tuple(numbers), name


def late_ranks(collective_waits: pa.Table) -> list[Row]:
    """The GPUs that came last to any collective for which others waited with nothing else to do, those that cost most first."""
    columns = ["instance", "late_rank", "late_device", "exposed_wait", "late_start_ns", "late_end_ns"]
    frame = collective_waits.select([*columns, "late_cause", "late_doing", "late_why"]).to_pandas()
    frame = frame[frame["instance"].notna()]
    if not len(frame):
        return []
    matched = int(frame["instance"].nunique())
    frame["late"] = frame["late_end_ns"] - frame["late_start_ns"]
    by = frame.groupby("instance", sort=False)
    instances = by[["late_rank", "late_device", "late", "late_cause", "late_doing", "late_why"]].first()
    instances["waited"] = by["exposed_wait"].sum()
    late = instances[instances["waited"] > 0]
    total = int(late["waited"].sum())
    rows = []
    for (rank, device), mine in late.groupby(["late_rank", "late_device"], dropna=False):
        longest = mine.groupby("late_cause", observed=True)["waited"].sum()
        line = str(longest.idxmax()) if len(longest) else None
        known = mine[mine["late_cause"] == line]
        rows.append(
            {
                "rank": _whole(rank),
                "device": _whole(device),
                "late_count": len(mine),
                "collective_count": matched,
                "waited_ns": int(mine["waited"].sum()),
                "waited_share": round(int(mine["waited"].sum()) / total, 6),
                "median_late_ns": int(mine["late"].median()),
                "max_late_ns": int(mine["late"].max()),
                "line": line,
                "doing": _first(known["late_doing"]),
                "why": _first(known["late_why"]),
            }
        )
    return sorted(rows, key=lambda row: (-row["waited_ns"], row["rank"], row["device"]))


def collective_stats(communication: pa.Table) -> tuple[list[Row], int, int]:
    """Collectives by kind, parallelism, group size and magnitude of the message (powers of two); those with most exposed time first.

    Returns at most `MOST_COLLECTIVES`, how many more there are, and the exposed time of those.
    """
    texts = {c: communication[c].to_pandas().astype(object) for c in ("kind", "parallelism")}
    numbers = ("group_size", "bytes", "instance", "ranks", "transfer", "wait", "exposed")
    frame = pd.DataFrame({**texts, **{c: frames.ints(communication, c) for c in numbers}})
    frame["duration"] = frames.duration(communication)
    frame["kind"] = frame["kind"].fillna("unknown")
    known = frame["instance"] != NULL
    frame["ranks"] = np.where(frame["group_size"] != NULL, frame["group_size"], np.where(known, frame["ranks"], NULL))
    for column in ("transfer", "wait"):
        frame[column] = frame[column].where(known)
    # A part counts for its share of a collective, of which as many are here as ranks of its group; a send or receive is one of its own.
    alone = frame["kind"].isin([*POINT_TO_POINT, "unknown"]) | (frame["ranks"] == NULL)
    here = pd.Series(lanes(communication)).groupby([frame["ranks"], frames.codes(communication, "group_ranks")[0]])
    parts = np.minimum(frame["ranks"], here.transform("nunique"))
    frame["whole"] = 1 / np.where(alone, 1, np.maximum(parts, 1))
    frame["magnitude"] = np.where(frame["bytes"] > 0, np.log2(np.maximum(frame["bytes"], 1)).astype(int), NULL)
    frame["bytes"] = frame["bytes"].where(frame["bytes"] != NULL)
    keys = ["kind", "parallelism", "ranks", "magnitude"]
    by = frame.groupby(keys, dropna=False, sort=False, observed=True)
    table = by.agg(
        bytes=("bytes", "median"),
        count=("whole", "sum"),
        total_ns=("duration", "sum"),
        exposed_ns=("exposed", "sum"),
        wait_ns=("wait", lambda waits: waits.sum(min_count=1)),
        median_ns=("duration", "median"),
        median_transfer_ns=("transfer", "median"),
    )
    table = table.reset_index().sort_values(
        ["exposed_ns", "total_ns", "kind", "bytes"], ascending=[False, False, True, True], kind="stable"
    )
    listed, left = table.head(MOST_COLLECTIVES), table.iloc[MOST_COLLECTIVES:]
    return [_collective(row) for row in listed.to_dict("records")], len(left), int(left["exposed_ns"].sum())


def _collective(row: Mapping[Hashable, Any]) -> Row:
    size = _whole(row["bytes"])
    ranks = None if row["ranks"] == NULL else int(row["ranks"])
    transfer = _whole(row["median_transfer_ns"])
    took = transfer if transfer is not None else int(row["median_ns"])
    algorithm = round(size / took, 3) if size and took else None
    factor = bus_factor(row["kind"], ranks or 0)
    return {
        "kind": row["kind"],
        "parallelism": None if pd.isna(row["parallelism"]) else row["parallelism"],
        "group_size": ranks,
        "bytes": size,
        "count": max(round(row["count"]), 1),
        **{c: int(row[c]) for c in ("total_ns", "exposed_ns", "median_ns")},
        "wait_ns": _whole(row["wait_ns"]),
        "median_transfer_ns": transfer,
        "algorithm_bandwidth": algorithm,
        "bus_bandwidth": round(algorithm * factor, 3) if algorithm and factor else None,
    }


def _first(texts: pd.Series) -> str | None:
    told = texts.dropna()
    return str(told.iloc[0]) if len(told) else None


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)
