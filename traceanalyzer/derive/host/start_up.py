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
    needs = np.flatnonzero(frames.where(api_calls, "name", lambda name: _NEEDS_NONE.search(name) is None))
    start, end = frames.ints(api_calls, "start_ns"), frames.ints(api_calls, "end_ns")
    by_process = frames.together(*(frames.ints(api_calls, column)[needs] for column in ("rank", "process")))
    first = np.array([needs[rows[np.argmin(start[needs[rows]])]] for _, rows in by_process], np.int64)
    return first[end[first] - start[first] >= FIRST_CALL_NS]
