"""Operations by the stream that they ran on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array

_FEW = np.iinfo(np.int16).max


def by_stream(ops: pa.Table) -> tuple[Array, Array | None]:
    """For each operation a number that tells apart the streams, counted as they are met; and the rows stream by stream, of each as they
    stand, None where that is the order of all."""
    stream = frames.streams(ops)
    last = int(stream.max(initial=0)) if stream.strides != (0,) else 0
    if not last:
        return stream, None
    # Numbers of 16 bits are sorted without comparing any.
    return stream, np.argsort(stream.astype(np.int16) if last <= _FEW else stream, kind="stable")
