"""What is drawn of a log: of each stretch of time the samples with the lowest and the highest values, so that no peak is lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.evidence.gpu_log.answers.gpus import Judged, Log
from traceanalyzer.evidence.gpu_log.answers.load import under_load
from traceanalyzer.evidence.gpu_log.derived_tables import LINES

PIECES = 100
_SHOWN = ("sm_clock", "power", "temperature", "utilization", "memory_used")
_AROUND = 0.5
"""Of a log beside a trace what lies around its load is shown for this part of its length."""


def gpu_log_lines(judged: Sequence[Judged]) -> pa.Table:
    """The rows of all GPUs that can be judged."""
    tables = [_lines(one, one.log) for one in judged if one.log is not None]
    return pa.concat_tables(tables) if tables else LINES.empty()


def _lines(one: Judged, log: Log) -> pa.Table:
    rows = _around(one, log)
    rows = rows[_extremes(log, rows)]
    measured = {name: log.of(name)[rows] for name in LINES.schema.names[3:]}
    columns = {
        "rank": pa.repeat(one.rank, len(rows)),
        "device": pa.repeat(one.device, len(rows)),
        "time_ns": pa.array(log.time[rows]),
        **{name: pa.array(values, mask=~np.isfinite(values)) for name, values in measured.items()},
    }
    columns["memory_used"] = pa.array(
        np.nan_to_num(measured["memory_used"]).astype(np.int64), mask=~np.isfinite(measured["memory_used"])
    )
    return pa.table([columns[field.name].cast(field.type) for field in LINES.schema], schema=LINES.schema)


def _around(one: Judged, log: Log) -> npt.NDArray[np.int64]:
    load, _ = under_load(log, one.window)
    everything = np.arange(len(log.time))
    if one.window is None or not log.on_clock or not load.any():
        return everything
    start, end = int(log.time[load][0]), int(log.time[load][-1])
    slack = max(int((end - start) * _AROUND), 4 * log.interval)
    return everything[(log.time >= start - slack) & (log.time <= end + slack)]


def _extremes(log: Log, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Places within `rows`."""
    if len(rows) <= 4 * PIECES:
        return np.arange(len(rows))
    time = log.time[rows]
    piece = ((time - time[0]) * np.float64(PIECES) / max(int(time[-1] - time[0]), 1)).astype(np.int64)
    found = [np.array([0, len(rows) - 1])]
    for name in _SHOWN:
        if log.has(name):
            values = log.of(name)[rows]
            for key in (np.where(np.isfinite(values), values, np.inf), np.where(np.isfinite(values), -values, np.inf)):
                order = np.lexsort((key, piece))
                found.append(order[np.append(True, np.diff(piece[order]) > 0)])
    return np.unique(np.concatenate(found))
