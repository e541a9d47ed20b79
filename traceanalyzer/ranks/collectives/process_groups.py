"""Process groups told apart across ranks.

PyTorch counts its groups in each process: the same name can be another group on another rank, and the same group have another name
there. Its ranks are the same everywhere, and several groups of the same ranks are made in the same order.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array


def groups(kernels: pa.Table, lane: Array) -> Array:
    """A number for the group of each communication kernel, the same on all ranks; `NULL` where no group is told."""
    ranks, told = frames.codes(kernels, "group_ranks")
    name, names = frames.codes(kernels, "group")
    nameless, known = name == len(names) - 1, ranks != len(told) - 1
    frame = pd.DataFrame({"ranks": ranks, "lane": lane, "name": name, "start": frames.ints(kernels, "start_ns")})
    own = frame[known & ~nameless].groupby(["ranks", "lane", "name"], as_index=False)["start"].min()
    label = np.where(nameless, -1, name)
    if len(own):
        place = _places(own, names)
        at = pd.MultiIndex.from_frame(frame[["ranks", "lane", "name"]])
        label = place.reindex(at).fillna(pd.Series(label, at)).to_numpy().astype(np.int64)
    return np.where(nameless & ~known, NULL, frames.dense(np.where(known, ranks, -1), label))


def _places(own: pd.DataFrame, names: list[str | None]) -> pd.Series:
    """For each (ranks, lane, name) its name, or its place among the groups of these ranks where lanes have different names for them."""
    number = [int(n) if n and n.isdecimal() else NULL for n in names]
    own = own.assign(number=np.array(number, object)[own["name"]].astype(np.int64))
    own = own.sort_values(["ranks", "lane", "number", "start"], kind="stable")
    place = own.groupby(["ranks", "lane"]).cumcount()
    count = own.groupby(["ranks", "lane"])["name"].transform("size").groupby(own["ranks"])
    same_count = count.transform("min") == count.transform("max")
    shared = own.groupby("ranks")["name"].transform("nunique") == count.transform("max")
    label = np.where(shared | ~same_count, own["name"], len(names) + place)
    return pd.Series(label, pd.MultiIndex.from_frame(own[["ranks", "lane", "name"]]))


def members(group_ranks: str | None) -> list[int]:
    """The ranks of a group as recorded (JSON); empty when they are not told, or not all of them."""
    try:
        return [int(rank) for rank in json.loads(group_ranks or "[]")]
    except (ValueError, TypeError):
        return []
