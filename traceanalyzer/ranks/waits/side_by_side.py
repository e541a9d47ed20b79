"""The ranks of a job beside each other: their steps, who came late, and the collectives by kind and size.

Made from small tables of all ranks; each function returns plain rows, sorted, for the result document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Flags, Floats, Groups
from traceanalyzer.intervals import EMPTY, Array, coverage
from traceanalyzer.ranks.collectives.collective_names import bus_factor
from traceanalyzer.ranks.collectives.collectives import lanes
from traceanalyzer.ranks.parallelism.parallelism_names import POINT_TO_POINT
from traceanalyzer.vocabulary.lines import LEDGER_LINES, column

MOST_COLLECTIVES = 100
"""Kinds and sizes listed, those with most exposed time."""
MOST_CELLS, LEAST_LINES = 160_000, 2
"""Times of steps on lines of the ledger that are kept, such as three lines of 512 GPUs and 100 steps; but at least so many lines."""
MOST_APART = 4
"""Captures of one job overlap: with so many times as many names as any rank has steps, the names are not the job's."""
Row = dict[str, Any]
_DIGITS = re.compile(r"\d+")
_LAST = "last"


def step_matrix(step_ledger: pa.Table, waited_intervals: pa.Table) -> tuple[list[str], list[Row], list[str]]:
    """Names of the steps in their order; for each (rank, device) its `step_ns`, `wait_ns` and `lines_ns` by those names; and the lines
    of the ledger that are left out, as MOST_CELLS tells.

    Captures begin apart, so steps are the same where their names are, as ProfilerStep#12 is. Where names say nothing, or each rank has
    its own, they are counted from the end, for which captures are closer to one another than for their beginning.
    """
    waits = {
        key: (frames.ints(spans, "start_ns"), frames.ints(spans, "end_ns"))
        for key, spans in frames.split(waited_intervals)
    }
    gpus: list[tuple[frames.Key, list[str], dict[str, Array], frames.Flags]] = []
    for key, steps in frames.split(step_ledger):
        start, end = frames.ints(steps, "start_ns"), frames.ints(steps, "end_ns")
        times = {"step_ns": end - start, "wait_ns": coverage(start, end, waits.get(key, EMPTY))}
        times |= {line: frames.ints(steps, column(line)) for line in LEDGER_LINES}
        gpus.append((key, _names(steps["name"].to_pylist()), times, frames.flags(steps, "complete")))
    names = sorted({name for _, own, _, _ in gpus for name in own}, key=_place)
    if len(names) > MOST_APART * max((len(own) for _, own, _, _ in gpus), default=0):
        gpus = [(key, _from_the_end(len(own)), times, whole) for key, own, times, whole in gpus]
        names = sorted({name for _, own, _, _ in gpus for name in own}, key=_place)
    place = {name: at for at, name in enumerate(names)}
    lines, left = _lines_that_differ([times for _, _, times, _ in gpus], len(gpus) * len(names))

    def on(at: Array, values: Array) -> list[int | None]:
        row: list[int | None] = [None] * len(names)
        for where, value in zip(at.tolist(), values.tolist(), strict=True):
            row[where] = value
        return row

    rows = []
    for (rank, device), own, times, whole in gpus:
        at = np.array([place[name] for name in own], np.int64)
        rows.append(
            {
                "rank": rank,
                "device": device,
                "step_ns": on(at[whole], times["step_ns"][whole]),
                "wait_ns": on(at, times["wait_ns"]),
                "lines_ns": {line: on(at, times[line]) for line in lines},
            }
        )
    return names, rows, left


def _lines_that_differ(gpus: Sequence[dict[str, Array]], cells: int) -> tuple[list[str], list[str]]:
    """The lines on which steps differ most, of any GPUs, in the ledger's order, and those that there is no room for. Lines without time
    in any step are neither."""
    apart = {}
    for line in LEDGER_LINES:
        values = np.concatenate([times[line] for times in gpus]) if gpus else np.zeros(0, np.int64)
        if values.any():
            apart[line] = int(np.abs(values - int(np.median(values))).sum())
    most = sorted(apart, key=lambda line: -apart[line])[: max(MOST_CELLS // max(cells, 1), LEAST_LINES)]
    return [line for line in apart if line in most], [line for line in apart if line not in most]


def _names(given: list[str | None]) -> list[str]:
    """A name for each step of one GPU, each once."""
    if None not in given and len(set(given)) == len(given) and all(_DIGITS.search(str(name)) for name in given):
        return [str(name) for name in given]
    return _from_the_end(len(given))


def _from_the_end(count: int) -> list[str]:
    return [f"{_LAST} - {back}" if back else _LAST for back in range(count - 1, -1, -1)]


def _place(name: str) -> tuple[tuple[int, ...], str]:
    """What names of steps are sorted by: their numbers from the left, epoch before step."""
    numbers = [int(digits) for digits in _DIGITS.findall(name)]
    return tuple(-number for number in numbers or [0]) if name.startswith(_LAST) else tuple(numbers), name


def late_ranks(collective_waits: pa.Table) -> list[Row]:
    """The GPUs that came last to any collective for which others waited with nothing else to do, those that cost most first."""
    waits = collective_waits.filter(collective_waits["late_start_ns"].is_valid())
    if not waits.num_rows:
        return []
    of = Groups(frames.ints(waits, "instance"))
    exposed = frames.ints(waits, "exposed_wait")
    waited = of.sum(np.where(exposed == NULL, 0, exposed))
    some = np.flatnonzero(waited > 0)
    # All rows of one collective say the same of who came last.
    late, waited = waits.take(pa.array(of.first[some])), waited[some]
    took = frames.ints(late, "late_end_ns") - frames.ints(late, "late_start_ns")
    cause, causes = frames.codes(late, "late_cause")
    rows = []
    for (rank, device), mine in frames.together(frames.ints(late, "late_rank"), frames.ints(late, "late_device")):
        longest = np.bincount(cause[mine], waited[mine], len(causes))[:-1]
        line = causes[int(longest.argmax())] if longest.any() else None
        known = mine[[causes[code] == line and line is not None for code in cause[mine].tolist()]]
        rows.append(
            {
                "rank": _whole(rank),
                "device": _whole(device),
                "late_count": len(mine),
                "collective_count": len(of),
                "waited_ns": int(waited[mine].sum()),
                "waited_share": round(int(waited[mine].sum()) / int(waited.sum()), 6),
                "median_late_ns": int(np.median(took[mine])),
                "max_late_ns": int(took[mine].max()),
                "line": line,
                "doing": _first(late["late_doing"].take(pa.array(known)).to_pylist()),
                "why": _first(late["late_why"].take(pa.array(known)).to_pylist()),
            }
        )
    return sorted(rows, key=lambda row: (-row["waited_ns"], row["rank"], row["device"]))


def collective_stats(communication: pa.Table) -> tuple[list[Row], int, int]:
    """Collectives by kind, parallelism, group size and magnitude of the message (powers of two); those with most exposed time first.

    Returns at most `MOST_COLLECTIVES`, how many more there are, and the exposed time of those.
    """
    names = ("group_size", "bytes", "ranks", "transfer", "wait", "exposed", "missing")
    group_size, size, found, transfer, wait, exposed, missing = (frames.ints(communication, c) for c in names)
    (kind, kinds), (served, purposes) = (frames.codes(communication, c) for c in ("kind", "parallelism"))
    known = wait != NULL
    ranks = np.where(group_size != NULL, group_size, found)
    # A part counts for its share of a collective, of which as many are here as ranks of its group; a send or receive is one of its own.
    apart = np.array([name in (None, "unknown", *POINT_TO_POINT) for name in kinds], bool)[kind]
    here = Groups(frames.dense(ranks, frames.codes(communication, "group_ranks")[0]))
    parts = np.minimum(ranks, here.distinct(lanes(communication))[here.of])
    share = 1 / np.where(apart | (ranks == NULL), 1, np.maximum(parts, 1))
    magnitude = np.where(size > 0, np.log2(np.maximum(size, 1)).astype(np.int64), NULL)
    of = Groups(frames.dense(kind, served, ranks, magnitude))
    duration, waited = frames.duration(communication), of.any(known)
    waits = of.sum(np.where(known, wait, 0))
    columns = {
        "kind": [kinds[code] or "unknown" for code in kind[of.first].tolist()],
        "parallelism": [purposes[code] for code in served[of.first].tolist()],
        "group_size": _known(ranks[of.first]),
        "bytes": _medians(of, size, size != NULL),
        "count": [max(round(count), 1) for count in np.bincount(of.of, share, len(of)).tolist()],
        "total_ns": of.sum(duration).tolist(),
        "exposed_ns": of.sum(exposed).tolist(),
        "median_ns": _medians(of, duration, np.ones(len(duration), bool)),
        "wait_ns": [total if any_ else None for total, any_ in zip(waits.tolist(), waited.tolist(), strict=True)],
        "median_transfer_ns": _medians(of, transfer, known),
        "at_least": of.any(known & (missing > 0)).tolist(),
    }
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    order = np.argsort(of.first, kind="stable").tolist()
    rows = sorted((rows[at] for at in order), key=_place_in_list)
    listed, left = rows[:MOST_COLLECTIVES], rows[MOST_COLLECTIVES:]
    return [row | _bandwidths(row) for row in listed], len(left), sum(row["exposed_ns"] for row in left)


def _place_in_list(row: Row) -> tuple[int, int, str, bool, int]:
    return -row["exposed_ns"], -row["total_ns"], row["kind"], row["bytes"] is None, row["bytes"] or 0


def _bandwidths(row: Row) -> Row:
    """GB/s of the median: what the program sees, and over the busiest link; None where that cannot be told."""
    size, transfer = row["bytes"], row["median_transfer_ns"]
    took = transfer if transfer is not None else row["median_ns"]
    algorithm = round(size / took, 3) if size and took else None
    factor = bus_factor(row["kind"], row["group_size"] or 0)
    bus = round(algorithm * factor, 3) if algorithm and factor else None
    return {"algorithm_bandwidth": algorithm, "bus_bandwidth": bus}


def _medians(of: Groups, values: Array, which: Flags) -> list[int | None]:
    medians: Floats = of.median(np.where(which, values.astype(np.float64), np.nan))
    return [None if isnan(median) else int(median) for median in medians.tolist()]


def _known(values: Array) -> list[int | None]:
    return [_whole(value) for value in values.tolist()]


def _first(texts: Sequence[str | None]) -> str | None:
    return next((text for text in texts if text is not None), None)


def _whole(value: int) -> int | None:
    return None if value == NULL else value
