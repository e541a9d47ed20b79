"""The calls in which a process creates its CUDA context. None is named after that: the first one that needs a context makes it."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array

FIRST_CALL_NS = 20_000_000
"""A call that takes this long made the context; with one that is there already, an ordinary call takes microseconds."""
_NEEDS_NONE = re.compile(
    r"GetLoadingMode|GetVersion|DriverVersion|RuntimeVersion|GetDevice|DeviceGet|DeviceCanAccessPeer|SetDeviceFlags|GetProcAddress"
    r"|GetExportTable|GetError|GetLastError|PeekAtLastError|Profiler|^cuInit|^hipInit"
)


def context_calls(api_calls: pa.Table) -> Array:
    """Rows of the first call of each process that needs a context, where it took long enough to have created it."""
    needs = frames.where(api_calls, "name", lambda name: _NEEDS_NONE.search(name) is None)
    # The calls of a thread are sorted by start.
    of_threads = [(key, rows.start + int(needs[rows].argmax())) for key, rows in frames.threads(api_calls)]
    first: dict[tuple[int, int], int] = {}
    start, end = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "end_ns")
    for (rank, process, _), row in of_threads:
        if needs[row] and start[row] < start[first.setdefault((rank, process), row)]:
            first[rank, process] = row
    found = np.array(sorted(first.values()), np.int64)
    return found[end[found] - start[found] >= FIRST_CALL_NS]
