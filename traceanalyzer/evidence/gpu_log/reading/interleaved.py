"""Rows of several GPUs that do not say which: nvidia-smi writes one after the other, in the order of their index, at each moment."""

from __future__ import annotations

import numpy as np

from traceanalyzer.evidence.gpu_log.reading.rows import Notes, Samples, texts_of

_AT_ONCE_NS = 20_000_000
_RARELY = 0.02


def gpus_in_rows(samples: Samples, notes: Notes) -> Samples:
    """The samples with GPUs numbered by their place among the rows of a moment, where nothing tells them apart and several are there.

    Rows that do not come in groups of one size are left as they are, as of one GPU, and that is said.
    """
    if any(name in samples.who for name in ("gpu", "uuid", "bus")) or len(samples) < 4:
        return samples
    apart = np.diff(samples.time)
    soon = (apart >= 0) & (apart < _AT_ONCE_NS)
    usual = float(np.median(apart[~soon])) if (~soon).any() else 0.0
    if soon.mean() < 0.3 or usual < 2 * _AT_ONCE_NS:
        return samples
    begins = np.flatnonzero(np.append(True, ~soon))
    sizes = np.diff(np.append(begins, len(samples)))
    count = int(np.median(sizes))
    if count < 2 or (sizes[:-1] != count).mean() > _RARELY:
        notes.said.append("rows of several GPUs that do not say which; add index and uuid to --query-gpu")
        return samples
    place = np.arange(len(samples)) - np.repeat(begins, sizes)
    notes.said.append(
        f"rows of {count} GPUs that do not say which: they are numbered in the order of the rows; add index and uuid to --query-gpu"
    )
    samples.who["gpu"] = texts_of([str(number) for number in place.tolist()])
    return samples
