"""Rows that look like work of a GPU and are in no form that is known: those of tools that somebody wrote for himself.

They are read as ranges of the host, for want of better. Where nothing else in the file is work of a GPU, saying that there is none
would be false.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto.categories import kind_of_work
from traceanalyzer.ingest.formats.kineto.lanes import range_category
from traceanalyzer.ingest.rows.classify import map_names
from traceanalyzer.vocabulary.health import GPU_WORK_MISSING
from traceanalyzer.vocabulary.levels import HIGH

_NAMED = 3
_LONGEST = 60
_NAME = re.compile(
    r"\[?(?:cuda |gpu |hip )?mem(?:cpy|set)\b"  # [MEMCPY] HtoD, [CUDA memset]
    r"|void [^(]*[\w>]\(|void .*>$|_Z\w*[kK]ernel"  # the signature of a kernel
    r"|(?!launch|run|compile|build|load|call|prepare)\w[\w:]*(?:_kernel|Kernel)(?:_\d+)?(?:[<(]|$)"
    r"|(?:sm\d+|volta|turing|ampere|hopper)_\w+|cutlass\w*|triton_\w+|nccl\w*Kernel",
    re.IGNORECASE,
)
_CATEGORY = re.compile(
    r"(?!.*(?:api|runtime|driver|launch|host|cpu)).*(?<![a-z])(?:gpu|cuda|hip|device)(?![a-z])", re.IGNORECASE
)
_TRACK = re.compile(r"\b(?:gpu|cuda|hip|hsa)\b(?!.*(?:api|runtime|driver|launch|counter))|\bstream #?\d", re.IGNORECASE)


class Lookalikes:
    """Counts such rows by name, of ranges that were taken for the host's."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()

    def take(self, ranges: pa.Table, on_gpu_track: npt.NDArray[np.bool_]) -> None:
        """Ranges, and which of them lie on a track that `is_gpu_track` by its name."""
        names = map_names(ranges["name"], _like_work)
        looks = (
            on_gpu_track | np.asarray(names.is_valid()) | np.asarray(map_names(ranges["category"], _of_work).is_valid())
        )
        found = pc.value_counts(ranges["name"].filter(pa.array(looks)).drop_null())
        for one in found.to_pylist():
            self._names[one["values"]] += one["counts"]

    def report(self, sink: Sink) -> None:
        """Say it of a trace in which nothing was read as work of a GPU."""
        if not self._names:
            return
        shown = ", ".join(_shortened(name) for name, _ in self._names.most_common(_NAMED))
        message = (
            f"rows that look like work of a GPU are in a form that is not known, and nothing about them can be judged: {shown}"
            f"{', ...' if len(self._names) > _NAMED else ''}"
        )
        sink.health(GPU_WORK_MISSING, HIGH, message, self._names.total())


def is_gpu_track(*names: str | None) -> bool:
    """Whether a process or thread of one of these names stands for a GPU or a stream."""
    return any(_TRACK.search(name) for name in names if name)


def _like_work(name: str) -> str | None:
    return name if range_category(name) != "python" and _NAME.match(name) else None


def _of_work(category: str) -> str | None:
    return kind_of_work(category) or (category if _CATEGORY.match(category) else None)


def _shortened(name: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in name)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."
