"""The first look at a part: what the join needs to know of it, and nothing that grows with its trace but its collectives
and calls of MPI."""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.analysis.parts import Part
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.config import Config
from traceanalyzer.model.trace import Input
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Survey:
    """`kernels` as of `communication_kernels`, `windows`, `devices` and `mpi_parts` as of those tables."""

    input: Input
    kernels: pa.Table
    windows: pa.Table
    devices: pa.Table
    mpi_parts: pa.Table


def survey(part: Part, config: Config) -> Survey:
    catalog: Catalog = part.catalog(config)
    # A part that stays in memory may have been of another analysis.
    catalog.share({})
    names = "communication_kernels", "windows", "devices", "mpi_parts"
    return Survey(part.input, *(catalog.table(name) for name in names))
