"""What a rank was doing while others waited for it, asked where its trace is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.host.ranges import heaviest
from traceanalyzer.derive.ledger.busy import by_line
from traceanalyzer.intervals import Array, Spans, coverage, intersect, overlaps, union
from traceanalyzer.ranks.collectives.tables import LATE_WINDOWS
from traceanalyzer.ranks.waits.tables import LATE_NAMES, LATE_WORK
from traceanalyzer.vocabulary.lines import INPUT

MOSTLY = 0.5
"""A rank that spends this share of the time in which others waited for it waiting itself was not the first to be late."""


def late_work(late_windows: pa.Table, ledger_intervals: pa.Table, communication: pa.Table) -> pa.Table:
    """The windows that lie on a GPU of `ledger_intervals`, by GPU, with what it was at in them."""
    if not late_windows.num_rows:
        return LATE_WORK.empty()
    tiles, kernels = frames.by_device(ledger_intervals), frames.by_device(communication)
    tables = []
    for key, rows in _by_gpu(late_windows):
        if key in tiles:
            windows = late_windows.take(pa.array(rows))
            start, end = frames.ints(windows, "start_ns"), frames.ints(windows, "end_ns")
            line = pa.array(_longest_lines(tiles[key], start, end), pa.string())
            via = frames.numbers(_waiting_in(kernels[key], start, end))
            given = {c: windows[c] for c in LATE_WINDOWS.schema.names}
            tables.append(frames.build(LATE_WORK, {**given, "line": line, "via": via}))
    return frames.stack(LATE_WORK, tables)


def _waiting_in(kernels: pa.Table, start: Array, end: Array) -> Array:
    """The collective in which a GPU waits itself for most of each span, `NULL` where for less than `MOSTLY` of it."""
    wait = frames.ints(kernels, "wait")
    waits = np.flatnonzero(wait > 0)
    waits = waits[np.argsort(frames.ints(kernels, "start_ns")[waits], kind="stable")]
    low = frames.ints(kernels, "start_ns")[waits]
    high = low + wait[waits]
    # Of waits at the same time on several streams, the first counts until it is over.
    low = np.minimum(np.maximum(low, np.maximum.accumulate(np.append(NULL, high))[:-1]), high)
    row, at, begin, until = overlaps(start, end, (low, high))
    which, time = heaviest(row, waits[at], until - begin, len(start))
    instance = np.append(frames.ints(kernels, "instance"), NULL)
    return np.where(time >= MOSTLY * (end - start), instance[np.where(which == NULL, -1, which)], NULL)


def late_names(late_windows: pa.Table, ledger_intervals: pa.Table, ledger_ops: pa.Table, gaps: pa.Table) -> pa.Table:
    """What took most of the windows on each line of the GPUs that others waited for."""
    if not late_windows.num_rows:
        return LATE_NAMES.empty()
    tiles, ops, idle = (frames.by_device(table) for table in (ledger_intervals, ledger_ops, gaps))
    rows = []
    for key, at in _by_gpu(late_windows):
        if key not in tiles:
            continue
        windows = late_windows.take(pa.array(at))
        times = union(frames.ints(windows, "start_ns"), frames.ints(windows, "end_ns"))
        made_of, own = by_line(ops[key]), ops[key].select(["start_ns", "end_ns", "name"])
        code, lines = frames.codes(tiles[key], "line")
        start, end = frames.ints(tiles[key], "start_ns"), frames.ints(tiles[key], "end_ns")
        for (of,), places in frames.together(code):
            line = str(lines[of])
            spans = intersect(times, (start.take(places), end.take(places)))
            busy = made_of.get(line)
            name = _idlest(idle[key], spans) if busy is None else _busiest(own.filter(pa.array(busy)), spans)
            rows.append({"rank": key[0], "device": key[1], "line": line, "name": name})
    return pa.Table.from_pylist(rows, schema=LATE_NAMES.schema)


def _by_gpu(windows: pa.Table) -> list[tuple[frames.Key, Array]]:
    keys = (frames.ints(windows, c) for c in ("rank", "device"))
    return [((rank, device), rows) for (rank, device), rows in frames.together(*keys)]


def _longest_lines(tiles: pa.Table, start: Array, end: Array) -> list[str | None]:
    """The ledger line that covers most of each span; None outside the window, which the tiles cover in order."""
    code, names = frames.codes(tiles, "line")
    row, tile, low, high = overlaps(start, end, (frames.ints(tiles, "start_ns"), frames.ints(tiles, "end_ns")))
    return [None if at == frames.NULL else names[at] for at in heaviest(row, code[tile], high - low, len(start))[0]]


def _busiest(ops: pa.Table, spans: Spans) -> str | None:
    return most.top_name(ops, "name", coverage(frames.ints(ops, "start_ns"), frames.ints(ops, "end_ns"), spans))


def _idlest(gaps: pa.Table, spans: Spans) -> str | None:
    """The place on the host; a loader's own range says more than what it happens to run."""
    time = coverage(frames.ints(gaps, "start_ns"), frames.ints(gaps, "end_ns"), spans)
    loading = frames.equals(gaps, "cause", INPUT.cause)
    column = "range_name" if time[loading].sum() >= time[~loading].sum() else "place"
    return most.top_name(gaps, column, time)
