"""How long the sends and receives of pipelines wait that have no counterpart, as far as their own rank tells.

All messages of one size take about as long. A stage has nothing to do until the next one comes, so that what a kernel takes beyond the
shortest of its size is most likely waiting for its neighbour.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.parallelism.parallelism_names import PIPELINE, POINT_TO_POINT

_NONE = np.iinfo(np.int64).max


def likely_waits(kernels: pa.Table, transfer: Array) -> Array:
    """What each send or receive of a pipeline takes beyond the shortest of its size on its GPU, ns; `NULL` where there is none.

    Only of those without a known `transfer`. A size that is not known is taken for that of which the shortest takes longest.
    """
    own = frames.equals(kernels, "parallelism", PIPELINE) & frames.equals(kernels, "kind", *POINT_TO_POINT)
    if not own.any():
        return np.full(len(own), NULL)
    duration, size = frames.duration(kernels), frames.ints(kernels, "bytes")
    lane = frames.dense(*(frames.ints(kernels, c) for c in ("rank", "device")))
    of_size, of_lane = Groups(frames.dense(lane, size)), Groups(lane)
    took = np.where(own & (size != NULL), np.where(transfer == NULL, duration, transfer), _NONE)
    shortest = of_size.min(took)[of_size.of]
    shortest = np.where(shortest == _NONE, NULL, shortest)
    usual = np.where(size != NULL, shortest, of_lane.max(shortest)[of_lane.of])
    told = own & (transfer == NULL) & (usual != NULL)
    return np.where(told, np.maximum(duration - np.where(told, usual, 0), 0), NULL)
