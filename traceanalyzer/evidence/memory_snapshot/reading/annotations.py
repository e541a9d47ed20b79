"""Stretches of time that the snapshot names: PyTorch records a START and an END of each."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.evidence.memory_snapshot.reading.columns import NONE, Names, Wrong, nullable

_MOST_US = (1 << 62) // 1000
_MOST_DEVICE = (1 << 31) - 1


def annotations_of(found: list[dict[str, Any]], wrong: Wrong) -> pa.Table:
    """The rows of snapshot_annotations: each END closes the latest START of its name on its device, as nested ranges do."""
    names = Names()
    open_rows: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    rows: list[list[int]] = []
    for one in found:
        key = (names.code(one.get("name"), wrong), _within(one.get("device"), _MOST_DEVICE))
        time, stage = _within(one.get("time_us"), _MOST_US) * 1000, one.get("stage")
        if min(*key, time) < 0 or stage not in ("START", "END"):
            wrong.count += 1
        elif stage == "START":
            open_rows[key].append(len(rows))
            rows.append([key[1], key[0], time, NONE])
        elif open_rows[key]:
            rows[open_rows[key].pop()][3] = time
        else:
            rows.append([key[1], key[0], NONE, time])
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    device, name, start, end = (np.ascontiguousarray(column) for column in columns)
    return pa.table({"device": device, "name": names.of(name), "start_ns": nullable(start), "end_ns": nullable(end)})


def _within(value: Any, most: int) -> int:
    """A whole number up to `most`; -1 for anything else."""
    return value if type(value) is int and 0 <= value <= most else -1
