"""How long copies between host and GPU would take if their host side were pinned."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array

LINKS = ((90, 55e9), (80, 26e9), (0, 13e9))
"""From which compute capability on (times ten) which bytes per second: what large pinned copies reach over 16 lanes of PCI Express 5, 4
and 3, of 64, 32 and 16 GB/s in theory; so they do on the GPUs of our captures (H100: 55 GB/s)."""
LARGE = 1 << 20
"""Smaller copies say nothing of the link."""


def pinned_time(copies: pa.Table, pageable: pa.Array, devices: pa.Table) -> Array:
    """In ns, for each copy between host and GPU whose size is known, else `NULL`; for those that are pinned what they took.

    At the bandwidth of the GPU's own large pinned copies of the same direction, else what its link is known for.
    """
    capability = {
        (row["rank"], row["device"]): 10 * (row["compute_major"] or 0) + (row["compute_minor"] or 0)
        for row in devices.to_pylist()
    }
    result = np.full(copies.num_rows, NULL)
    kinds = pc.unique(copies["copy_kind"]).to_pylist()
    if "htod" not in kinds and "dtoh" not in kinds:
        return result
    size, length = frames.ints(copies, "bytes"), frames.duration(copies)
    slow = pageable.fill_null(True).to_numpy(zero_copy_only=False)
    for key, rows in frames.groups(copies):
        for kind in ("htod", "dtoh"):
            here = np.zeros(len(size), bool)
            here[rows] = frames.equals(copies.slice(rows.start, rows.stop - rows.start), "copy_kind", kind)
            here &= (size != NULL) & (length > 0)
            shown = here & ~slow & (size >= LARGE)
            usual = next(rate for least, rate in LINKS if capability.get(key, 0) >= least)
            rate = size[shown].sum() / length[shown].sum() if shown.any() else usual / 1e9
            result[here] = np.where(slow[here], np.minimum(size[here] / rate, length[here]), length[here])
    return result
