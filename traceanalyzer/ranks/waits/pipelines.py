"""Pipelines: which waits are their bubbles, how many stages they have, and how many micro-batches go through them in a step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.groups.peers import BOTH, RECEIVE
from traceanalyzer.ranks.parallelism.parallelism_names import PIPELINE
from traceanalyzer.ranks.shape.stages import interleaved
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import EXPOSED_COMMUNICATION


@dataclass(frozen=True)
class Pipeline:
    """`ranks` are those of its stages as the tables number them. `stages` and `micro_batches` are `NULL` where not told.
    `interleaved` says whether ranks have several stages each, None where not told."""

    ranks: Array
    stages: int
    micro_batches: int
    interleaved: bool | None = None

    @property
    def schedule(self) -> str | None:
        """In words."""
        if NULL in (self.stages, self.micro_batches):
            return None
        count = "1 micro-batch" if self.micro_batches == 1 else f"{self.micro_batches} micro-batches"
        return f"{count} a step in {self.stages} stages"


def pipeline(communication: pa.Table) -> Pipeline:
    """The pipelines of a job, which are taken to be alike; without any there are no `ranks`."""
    own = frames.equals(communication, "parallelism", PIPELINE)
    rank, step, peer = (frames.ints(communication, c)[own] for c in ("rank", "step", "peer"))
    if not len(rank):
        return Pipeline(rank, NULL, NULL)
    size = frames.ints(communication, "group_size")[own]
    receives = frames.equals(communication, "kind", RECEIVE, BOTH)[own] & (step != NULL) & (peer != NULL)
    stages = most.commonest(size[size != NULL]) if (size != NULL).any() else NULL
    code, texts = frames.codes(communication, "group_ranks")
    several = interleaved(rank, peer, [texts[at] for at in code[own].tolist()])
    micro_batches = _micro_batches(rank[receives], step[receives], peer[receives])
    return Pipeline(np.unique(rank), stages, micro_batches, several)


def _micro_batches(rank: Array, step: Array, peer: Array) -> int:
    """How often a stage receives from one other stage in a step: each micro-batch comes by once in each direction."""
    if not len(rank):
        return NULL
    counts = np.unique(np.stack((rank, step, peer)), axis=1, return_counts=True)[1]
    return most.commonest(counts)


def bubbles(communication: pa.Table, late_line: pa.Array, found: Pipeline) -> frames.Flags:
    """For each kernel whether its wait is a bubble: it serves the pipeline, or its last rank is a stage that communicates itself."""
    late = np.isin(frames.ints(communication, "late_rank"), found.ranks)
    table = pa.table({"line": late_line})
    busy: frames.Flags = late & frames.equals(table, "line", EXPOSED_COMMUNICATION.name)
    return frames.equals(communication, "parallelism", PIPELINE) | busy
