"""How well the ranks of a job share one clock, and what cannot be told where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input
from traceanalyzer.ranks.collectives.clock_tables import CLOCK_OFFSETS
from traceanalyzer.ranks.collectives.collective_names import SYNCHRONIZING
from traceanalyzer.ranks.collectives.collectives import absolute_ends
from traceanalyzer.ranks.collectives.instances import ENDS_NS, Matches
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.health import CLOCKS_DISAGREE
from traceanalyzer.vocabulary.levels import LOW


def clock_offsets(kernels: pa.Table, matches: Matches) -> pa.Table:
    """One row a rank, by rank: the clocks that `match` found, and how well the ends of matched collectives agree on them."""
    rank, known = frames.ints(kernels, "rank"), matches.instance != NULL
    together = known & frames.equals(kernels, "kind", *SYNCHRONIZING)
    # What need not end together says something only where nothing else does.
    judged = (together if together.any() else known) & (matches.spread != NULL)
    end = pd.Series(matches.end[judged])
    distance = np.full(len(rank), np.nan)
    distance[judged] = np.abs(end - end.groupby(matches.instance[judged]).transform("mean"))
    frame = pd.DataFrame({"rank": rank, "domain": matches.domain, "offset": matches.clock, "known": known})
    frame["distance"], frame["apart"] = distance, np.where(matches.apart == NULL, np.nan, matches.apart)
    lowest = frame.groupby("domain")["rank"].transform("min")
    by_rank = frame.assign(domain=lowest).groupby("rank")
    table = by_rank.agg(domain=("domain", "min"), matched=("known", "sum"), apart=("apart", "max"))
    table["offset"], table["residual"] = by_rank["offset"].median(), by_rank["distance"].median()
    table["apart"] = table["apart"].where(table["matched"] == 0)
    whole = {str(c): frames.numbers(table[c].round().fillna(NULL).to_numpy().astype(np.int64)) for c in table}
    return frames.build(CLOCK_OFFSETS, {"rank": table.index.to_numpy(), **whole})


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
