"""How well the ranks of a job share one clock, and what cannot be told where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Floats, Groups
from traceanalyzer.intervals import Array
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives.clock_tables import CLOCK_OFFSETS
from traceanalyzer.ranks.collectives.collective_names import SYNCHRONIZING
from traceanalyzer.ranks.collectives.collectives import absolute_ends
from traceanalyzer.ranks.collectives.instances import ENDS_NS, Matches
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.health import CLOCKS_DISAGREE
from traceanalyzer.vocabulary.levels import LOW, MEDIUM


def clock_offsets(kernels: pa.Table, matches: Matches) -> pa.Table:
    """One row a rank, by rank: the clocks that `match` found, and how well the ends of matched collectives agree on them."""
    rank, known = frames.ints(kernels, "rank"), matches.instance != NULL
    together = known & frames.equals(kernels, "kind", *SYNCHRONIZING)
    # What need not end together says something only where nothing else does.
    judged = (together if together.any() else known) & (matches.spread != NULL)
    end, same = matches.end[judged], Groups(matches.instance[judged])
    distance = np.full(len(rank), np.nan)
    distance[judged] = np.abs(end - (same.sum(end) / same.size)[same.of])
    of_domain, of_rank = Groups(matches.domain), Groups(rank)
    matched = of_rank.count(known)
    whole = {
        "domain": of_rank.min(of_domain.min(rank)[of_domain.of]),
        "matched": matched,
        "apart": np.where(matched == 0, of_rank.max(matches.apart), NULL),
        "offset": _rounded(of_rank.median(matches.clock.astype(np.float64))),
        "residual": _rounded(of_rank.median(distance)),
    }
    return frames.build(
        CLOCK_OFFSETS, {"rank": of_rank.keys, **{name: frames.numbers(values) for name, values in whole.items()}}
    )


def _rounded(values: Floats) -> Array:
    """Whole ns, `NULL` for NaN."""
    return np.where(np.isnan(values), NULL, np.round(np.nan_to_num(values))).astype(np.int64)


def clock_health(kernels: pa.Table, matches: Matches, offsets: pa.Table, inputs: Sequence[Input]) -> pa.Table:
    """Rows of `health` (TRC005): ranks whose waiting cannot be told, because their clocks cannot be compared well enough."""
    rank = frames.ints(kernels, "rank")
    alone = set(rank[absolute_ends(kernels, inputs)[1] != 0].tolist()) if offsets.num_rows > 1 else set()
    wait = (frames.duration(kernels) - matches.transfer)[matches.instance != NULL]
    usual = float(wait.mean()) if len(wait) else 0.0
    rows = []
    for row in offsets.to_pylist():
        message = _alone() if row["rank"] in alone else _apart(row, usual)
        if message:
            count = int((rank == row["rank"]).sum())
            rows.append(
                {"rank": row["rank"], "code": CLOCKS_DISAGREE, "severity": LOW, "message": message, "count": count}
            )
    return pa.Table.from_pylist(rows, schema=HEALTH.schema)


def match_health(matches: Matches, share: float) -> pa.Table:
    """A row of `health` (TRC005) of the whole job, of whose communication so little could be matched that nobody is told to wait."""
    message = (
        f"only {format_share(share)} of the communication time that all ranks recorded could be matched between them"
        if share
        else "none of the communication that several ranks recorded could be matched between them"
    )
    unmatched = int(((matches.instance == NULL) & ~matches.outside).sum())
    row = {
        "rank": None,
        "code": CLOCKS_DISAGREE,
        "severity": MEDIUM,
        "message": f"{message}, so which rank waited for which is not told",
        "count": unmatched,
    }
    return pa.Table.from_pylist([row], schema=HEALTH.schema)


def _alone() -> str:
    return (
        "the file does not say when its clock began, so its times cannot be compared with those of other ranks: "
        "which rank waited for which cannot be told"
    )


def _apart(row: dict[str, int], usual: float) -> str | None:
    """What a row of `clock_offsets` means when ranks wait so long for each other, ns; None when it means nothing."""
    if row["apart"] is not None:
        return (
            f"its collectives end {format_duration(row['apart'])} apart from the same ones on other ranks, however the clocks "
            "are aligned: which rank waited for which cannot be told"
        )
    residual = row["residual"]
    if residual is not None and residual > ENDS_NS and residual > usual:
        return (
            f"its collectives end {format_duration(residual)} apart from the same ones on other ranks, while ranks wait "
            f"{format_duration(round(usual))} for each other: which rank waited for which is uncertain"
        )
    return None
