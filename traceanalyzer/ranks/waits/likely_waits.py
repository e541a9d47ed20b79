"""How long the sends and receives of pipelines wait that have no counterpart, as far as their own rank tells.

All messages of one size take about as long. A stage has nothing to do until the next one comes, so that what a kernel takes beyond the
shortest of its size is most likely waiting for its neighbour.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.parallelism.parallelism_names import PIPELINE, POINT_TO_POINT


def likely_waits(kernels: pa.Table, transfer: Array) -> Array:
    """What each send or receive of a pipeline takes beyond the shortest of its size on its GPU, ns; `NULL` where there is none.

    Only of those without a known `transfer`. A size that is not known is taken for that of which the shortest takes longest.
    """
    own = frames.equals(kernels, "parallelism", PIPELINE) & frames.equals(kernels, "kind", *POINT_TO_POINT)
    if not own.any():
        return np.full(len(own), NULL)
    duration, size = frames.duration(kernels), frames.ints(kernels, "bytes")
    frame = pd.DataFrame({"lane": frames.dense(*(frames.ints(kernels, c) for c in ("rank", "device"))), "size": size})
    took = pd.Series(np.where(transfer == NULL, duration, transfer)).where(own & (size != NULL))
    shortest = took.groupby([frame["lane"], frame["size"]]).transform("min")
    usual = shortest.where(size != NULL, shortest.groupby(frame["lane"]).transform("max"))
    told = own & (transfer == NULL) & usual.notna().to_numpy()
    return np.where(told, np.maximum(duration - usual.fillna(0).to_numpy().astype(np.int64), 0), NULL)
