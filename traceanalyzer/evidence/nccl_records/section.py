"""The section of NCCL's records: ranks and groups, who came when, and messages beside what their links can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.nccl_records.tables import INSPECTOR
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Grid, Levels, Section, Unit, Words
from traceanalyzer.units import format_duration

MOST_ROWS = 200
OFTEN = 3
WORTH_A_WORD = 0.1
"""What holds up collectives for a smaller share of the time is nobody's lateness."""
Row = dict[str, Any]
_RANKS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("rank", "text"), "who"),
    (("group", "text"), "group"),
    (("calls", "count"), "calls"),
    (("last collective", "text"), "last_text"),
    (("completed", "count"), "completed"),
    (("waits for", "text"), "waiting"),
    (("called at", "text"), "place"),
    (("late by", "ns"), "typical"),
    (("times", "count"), "rounds"),
    (("not judged, because", "text"), "why_not"),
)
_GROUPS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("group", "text"), "shown"),
    (("ranks", "text"), "ranks"),
    (("records here", "count"), "given"),
    (("not here", "text"), "absent"),
    (("collectives compared", "count"), "collectives"),
    (("calls of one rank", "text"), "kinds"),
    (("not judged, because", "text"), "why_not"),
)
_LINKS: tuple[tuple[tuple[str, Unit], str], ...] = (
    (("collective", "text"), "operation"),
    (("ranks", "count"), "gpus"),
    (("size", "bytes"), "bytes"),
    (("calls", "count"), "calls"),
    (("bus bandwidth, GB/s", "text"), "rate"),
    (("nccl-tests, GB/s", "text"), "reached"),
    (("share", "share"), "share"),
    (("from", "text"), "source"),
)


def headline(tables: Tables) -> str | None:
    """What was looked at and is in order; None where nothing could be compared."""
    if tables.table("nccl_missing").num_rows or tables.table("nccl_mismatches").num_rows:
        return None
    groups = tables.table("nccl_group_stats").to_pylist()
    ranks = tables.table("nccl_ranks").to_pylist()
    judged = [row for row in groups if row["judged"] > 1 and not row["why_not"]]
    if not judged:
        return _alone(groups, ranks) or _link(tables)
    row = max(judged, key=lambda row: row["judged"] * row["collectives"])
    compared = f"{row['judged']:,} ranks of {row['collectives']:,} collectives each"
    if len(judged) > 1:
        compared += f" in {row['group']}, and in {len(judged) - 1:,} other group{'s' if len(judged) > 2 else ''}"
    if row["absent"]:
        compared += f" ({row['absent']} not here)"
    waits = [one for one in ranks if one["waiting"] and not one["why_not"]]
    told = [one for one in judged if one["collectives"] > 1 and not one["clocks"]]
    timed = tables.table("nccl_arrivals").num_rows > 0 and bool(told)
    only_done = all(source == INSPECTOR for source in tables.table("nccl_rank_dumps")["source"].to_pylist())
    absent = "mismatched" if only_done else "missing or mismatched"
    said, unjudged = f"No collective is {absent}", ""
    if _beside_traces(tables):
        # Traces show who waits for whom, which is more than when calls were made.
        pass
    elif not timed:
        unjudged = "; how late ranks come could not be judged"
    elif (late := _late(tables)) is None:
        unjudged = (
            "; whether ranks are late could not be judged: collectives were seen to complete long after the last call"
        )
    else:
        said += f", and {late},"
    said = f"{said} on {compared}{unjudged}"
    if waits:
        first = waits[0]
        said += f"; when the records were written, {first['who']} waited for {first['waiting']}"
    return said


def _beside_traces(tables: Tables) -> bool:
    inside = tables.table("nccl_rank_calls")["inside"]
    return bool(inside.null_count < len(inside))


def _late(tables: Tables) -> str | None:
    """Of ranks of which no rule says that one is late; None where that could not be judged."""
    much = [row for row in tables.table("nccl_lateness").to_pylist() if row["share"] >= WORTH_A_WORD]
    if any(row["rounds"] >= OFTEN and row["of_all"] > 0.5 and row["seen"] * 10 < row["rounds"] for row in much):
        return None
    if any(row["rounds"] >= OFTEN for row in much):
        return "no one rank is late"
    return "no rank is late again and again" if much else "no rank is late"


def _alone(groups: Sequence[Row], ranks: Sequence[Row]) -> str | None:
    """Of records of ranks that nothing can be compared with."""
    if not ranks:
        return None
    row = max(ranks, key=lambda one: one["calls"])
    why = next((one["why_not"] for one in groups if one["why_not"]), "there is nothing to compare")
    came = f"waited for {row['waiting']}" if row["waiting"] else f"had completed {row['completed']:,} collectives"
    return f"Could not judge who is missing or late: {why}; {row['who']} {came} when its records were written"


def _link(tables: Tables) -> str | None:
    rows = [row for row in tables.table("nccl_rank_links").to_pylist() if row["bus_bandwidth"] is not None]
    if not rows:
        return None
    best = max(rows, key=lambda row: row["bus_bandwidth"])
    between = f" between {best['gpus']} GPUs" if best["gpus"] else ""
    return f"nccl-tests reached {best['bus_bandwidth']:.4g} GB/s of bus bandwidth{between} in {best['operation'] or 'a collective'}"


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section; none without records."""
    blocks = list(_blocks(tables))
    if blocks:
        yield Section("nccl-records", "NCCL records", blocks, order=110)


def _blocks(tables: Tables) -> Iterator[Block]:
    ranks = [row | {"last_text": _last(row)} for row in tables.table("nccl_ranks").to_pylist()]
    groups = [row | {"shown": row["group"] or row["name"]} for row in tables.table("nccl_group_stats").to_pylist()]
    if ranks:
        yield from _words(ranks, groups, tables)
        yield _grid("Ranks, when their records were written", _RANKS, ranks)
    if groups:
        yield _grid("Process groups", _GROUPS, groups)
    yield from _arrivals(tables.table("nccl_arrivals"))
    yield from _links(tables)


def _words(ranks: Sequence[Row], groups: Sequence[Row], tables: Tables) -> Iterator[Words]:
    said = [f"{_begun(row['clocks'])}." for row in groups if row["clocks"]]
    late = [row for row in tables.table("nccl_lateness").to_pylist() if row["blur"]]
    if late:
        most = max(row["blur"] for row in late)
        said.append(
            f"Clocks of ranks may differ by up to {format_duration(most)}, as far as calls and completions tell."
        )
    if len(ranks) > MOST_ROWS:
        said.append(f"Of {len(ranks):,} rows the first {MOST_ROWS} are shown.")
    if said:
        yield Words(" ".join(dict.fromkeys(said)))


def _last(row: Row) -> str | None:
    if row["last"] is None:
        return None
    return f"{row['operation']} {row['last']:,}" if row["operation"] else f"{row['last']:,}"


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def _grid(title: str, columns: Sequence[tuple[tuple[str, Unit], str]], rows: Sequence[Row]) -> Grid:
    """Without the columns of which nothing is known."""
    shown = [(column, name) for column, name in columns if any(row[name] is not None for row in rows)]
    return Grid(title, [column for column, _ in shown], [[row[name] for _, name in shown] for row in rows[:MOST_ROWS]])


def _arrivals(table: pa.Table) -> Iterator[Levels]:
    rows = table.to_pylist()
    series: dict[int, list[Row]] = {}
    for row in rows:
        series.setdefault(row["series"], []).append(row)
    if len(series) < 2 or not any(row["behind"] for row in rows):
        return
    first = next(iter(series.values()))
    lines = [(str(own[0]["who"]), [int(row["behind"]) for row in own]) for own in series.values()]
    of = f" of {first[0]['group']}" if first[0]["group"] else ""
    yield Levels(
        f"How much later than the first each rank comes to the collectives{of}",
        "ns",
        [int(row["time_ns"]) for row in first],
        lines,
        stacked=False,
    )


def _links(tables: Tables) -> Iterator[Block]:
    measured = tables.table("nccl_rank_links").to_pylist()
    if not measured:
        return
    shares = [
        row | {"rate": _rate(row["bus_bandwidth"]), "reached": _rate(row["reference"])}
        for row in tables.table("nccl_link_shares").to_pylist()
    ]
    if shares:
        yield _grid("Messages, and what nccl-tests reached at their size", _LINKS, shares)
    else:
        yield Words(
            f"{_link(tables)}. None of the messages here is of a kind, number of ranks and size that it measured."
        )


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"
