"""What the command line says of how the work is done, for whoever reads and judges; importing it loads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from traceanalyzer.records import dataclass

if TYPE_CHECKING:
    from traceanalyzer.ingest.pipeline import ProgressFactory
    from traceanalyzer.urls import Place


@dataclass(frozen=True)
class How:
    """How the work is done: `jobs` processes of this machine (None: as many as pay), or the workers of a Dask `scheduler`.

    `store` is where tables are kept; without one they are in memory or a temporary folder. `max_bytes` replaces the limit on what one
    file may unpack to; `progress` hears of bytes read in this process, `done` of each file that several processes read. `offsets` are
    what is added to the times of evidence, by file.
    """

    jobs: int | None = None
    scheduler: str | None = None
    store: Place | None = None
    max_bytes: int | None = None
    progress: ProgressFactory | None = None
    done: Callable[[], None] | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)
