"""The work of one unit of each GPU: how long it takes and what it consists of, so that captures of any length can be compared.

A unit is a step, as the GPU saw it. Where none but the first is complete it is once through the sequence of kernels that repeats,
and where nothing repeats, all that was recorded; whether two captures' units are the same work is for who compares them to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.derive.host.host import Host
from traceanalyzer.derive.kernels.kernel_names import kernel_of
from traceanalyzer.derive.launches.launches import launching_ranges
from traceanalyzer.derive.steps.step_ledger import line_times
from traceanalyzer.derive.work import cycles
from traceanalyzer.derive.work.tables import WORK_NAMES, WORK_OPS, WORK_SHAPES, WORK_UNITS
from traceanalyzer.intervals import Array, latest
from traceanalyzer.names import comparable_name
from traceanalyzer.units import format_bytes
from traceanalyzer.vocabulary.lines import LEDGER_LINES, column

MOST_NAMES = 2_000
"""Names kept of each GPU and group, those with most time."""
MOST_SHAPES = 40
_MESSAGE = ("bytes", "group_size")
WEIGHTED = re.compile(r"^aten::(?:linear|mm|bmm|addmm|baddbmm|matmul|embedding|\w*conv\w*|\w*attention\w*)$")
"""Operators whose input shapes tell the size of a model and of its batches."""


def work_units(step_ledger: pa.Table, ledger_ops: pa.Table, ledger_intervals: pa.Table, step_ops: pa.Table) -> pa.Table:
    """One row per unit, sorted by (rank, device, start)."""
    steps, tiles, of_steps = (frames.by_device(table) for table in (step_ledger, ledger_intervals, step_ops))
    tables = []
    for key, ops in frames.split(ledger_ops):
        units = _steps(steps[key], ops, of_steps[key])
        tables.append(units if units is not None else _cycles(key, ops, tiles[key]))
    return frames.stack(WORK_UNITS, tables)


def _steps(steps: pa.Table, ops: pa.Table, step_ops: pa.Table) -> pa.Table | None:
    """The steps that are compared with each other, and the first one; None where no other than that is compared."""
    timed = pc.is_valid(steps["excess"]).to_numpy()
    if not timed[1:].any():
        return None
    kernel = frames.among(frames.ints(step_ops, "op"), frames.ints(ops, "row")[_is_kernel(ops)])
    kernels = np.bincount(frames.ints(step_ops, "step")[kernel], minlength=steps.num_rows)
    kept = pa.array(timed | (np.arange(len(timed)) == 0))
    columns = {name: steps[name] for name in WORK_UNITS.schema.names if name in steps.schema.names}
    columns |= {"kind": _repeated("step", steps.num_rows), "timed": timed, "kernels": kernels}
    return frames.build(WORK_UNITS, columns).filter(kept)


def _cycles(key: frames.Key, ops: pa.Table, tiles: pa.Table) -> pa.Table:
    """Units from each kernel to the one a period later; all of the window where there is no period."""
    kernels = ops.filter(pa.array(_is_kernel(ops)))
    start = frames.ints(kernels, "start_ns")
    code, names = frames.codes(kernels, "name")
    period = cycles.period(_told_apart(code, names, comparable_name)[0])
    if period is None:
        borders = np.array([frames.ints(ops, "start_ns").min(), frames.ints(ops, "end_ns").max()])
        period, kind = len(start), "capture"
    else:
        borders, kind = start[::period], "repetition"
    count = len(borders) - 1
    lines = line_times(borders[:-1], borders[1:], tiles)
    return frames.build(
        WORK_UNITS,
        {
            "rank": np.full(count, key[0]),
            "device": np.full(count, key[1]),
            "kind": _repeated(kind, count),
            "method": pa.nulls(count, pa.string()),
            "name": pa.nulls(count, pa.string()),
            "start_ns": borders[:-1],
            "end_ns": borders[1:],
            "timed": np.ones(count, bool),
            "kernels": np.full(count, period),
            **{column(line): lines[:, at] for at, line in enumerate(LEDGER_LINES)},
        },
    )


def _is_kernel(ops: pa.Table) -> frames.Flags:
    return frames.equals(ops, "kind", "kernel", "graph")


def _repeated(value: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _told_apart(
    code: Array, names: Sequence[str | None], read: Callable[[str], str] = lambda name: name
) -> tuple[Array, list[str]]:
    """Codes of what `read` makes of the names that are used, and that; equal ones get one code."""
    found: dict[str, int] = {}
    used = np.zeros(len(names), bool)
    used[code] = True
    table = np.zeros(len(names), np.int64)
    for at in np.flatnonzero(used).tolist():
        table[at] = found.setdefault(read(names[at] or ""), len(found))
    return table[code], list(found)


def work_ops(work_units: pa.Table, ledger_ops: pa.Table, step_ops: pa.Table, step_ledger: pa.Table) -> pa.Table:
    """One row per operation: of a step those that it launched, of another unit those that begin in it."""
    ops, of_steps, steps = (frames.by_device(table) for table in (ledger_ops, step_ops, step_ledger))
    tables = []
    for key, units in frames.split(work_units.filter(work_units["timed"])):
        if units["kind"][0].as_py() == "step":
            at = np.searchsorted(frames.ints(steps[key], "start_ns"), frames.ints(units, "start_ns"))
            number = np.full(steps[key].num_rows, frames.NULL)
            number[at] = np.arange(len(at))
            op, unit = frames.ints(of_steps[key], "op"), number[frames.ints(of_steps[key], "step")]
        else:
            begin, end = frames.ints(units, "start_ns"), frames.ints(units, "end_ns")
            op, unit = frames.ints(ops[key], "row"), latest(begin, end, frames.ints(ops[key], "start_ns"))
        inside = unit >= 0
        columns = {"op": op[inside], "unit": unit[inside]}
        columns |= {"rank": np.full(int(inside.sum()), key[0]), "device": np.full(int(inside.sum()), key[1])}
        tables.append(frames.build(WORK_OPS, columns))
    return frames.stack(WORK_OPS, tables)


def work_names(
    work_units: pa.Table,
    work_ops: pa.Table,
    ledger_ops: pa.Table,
    launches: pa.Table,
    host: Host,
    communication: pa.Table,
) -> pa.Table:
    """Of each GPU and group the names with most time, the largest first."""
    ops, members, messages = (frames.by_device(table) for table in (ledger_ops, work_ops, communication))
    tables = []
    for key, units in frames.split(work_units.filter(work_units["timed"])):
        row, op = frames.ints(ops[key], "row"), frames.ints(members[key], "op")
        order = np.argsort(op)
        mine = ops[key].take(pa.array(np.searchsorted(row, op[order])))
        unit = frames.ints(members[key], "unit")[order]
        for group, code, names in _groupings(mine, launches, host, messages[key]):
            tables.append(_per_unit(key, group, code, names, unit, frames.duration(mine), units.num_rows))
    return frames.stack(WORK_NAMES, tables)


def _groupings(
    ops: pa.Table, launches: pa.Table, host: Host, communication: pa.Table
) -> Iterator[tuple[str, Array, list[str]]]:
    """(group, index into names or -1 for each operation, names)."""
    code, names = frames.codes(ops, "name")
    yield "kernel", *_told_apart(code, names, comparable_name)
    yield "family", *_families(ops, code, names)
    operators = launching_ranges(frames.ints(ops, "row"), launches, host)
    yield "operator", pc.fill_null(operators.indices, -1).to_numpy().astype(np.int64), operators.dictionary.to_pylist()
    if communication.num_rows:
        yield "collective", *_collectives(ops, communication)


def _families(ops: pa.Table, code: Array, names: list[str | None]) -> tuple[Array, list[str]]:
    """What compute kernels do; communication, memcpy, memset and graph (a graph-level execution) for the rest."""
    kind, kinds = frames.codes(ops, "kind")
    words = [*(kernel_of(name or "").family for name in names), *kinds, "communication"]
    family = np.where(frames.equals(ops, "kind", "kernel"), code, kind + len(names))
    family[frames.equals(ops, "class", "communication")] = len(words) - 1
    return _told_apart(family, words)


def _collectives(ops: pa.Table, communication: pa.Table) -> tuple[Array, list[str]]:
    """Names such as "all-reduce of 25 MiB over 4 ranks" for the operations that are collectives."""
    told = frames.dense(frames.codes(communication, "kind")[0], *(frames.ints(communication, c) for c in _MESSAGE))
    first = np.unique(told, return_index=True)[1]
    rows = communication.select(["kind", *_MESSAGE]).take(pa.array(first)).to_pylist()
    told, words = _told_apart(told, [_message(**row) for row in rows])
    lane = frames.dense(
        *(
            np.concatenate((frames.ints(communication, column), frames.ints(ops, column)))
            for column in ("process", "stream", "start_ns")
        )
    )
    of_lane = np.full(int(lane.max(initial=-1)) + 1, -1)
    of_lane[lane[: len(told)]] = told
    code = of_lane[lane[len(told) :]]
    return np.where(frames.equals(ops, "class", "communication"), code, -1), words


def _message(kind: str | None, bytes: int | None, group_size: int | None) -> str:
    size = f" of {format_bytes(bytes)}" if bytes else ""
    return f"{kind or 'unknown collective'}{size}" + (f" over {group_size} ranks" if group_size else "")


def _per_unit(
    key: frames.Key, group: str, code: Array, names: list[str], unit: Array, length: Array, units: int
) -> pa.Table:
    known = code >= 0
    code, unit, length = code[known], unit[known], length[known]
    pair, place = np.unique(code * units + unit, return_inverse=True)
    time = np.zeros(len(pair), np.int64)
    np.add.at(time, place, length)
    owner = pair // units
    total = np.zeros(len(names), np.int64)
    np.add.at(total, owner, time)
    squares = np.bincount(owner, (time / max(units, 1)) * time, minlength=len(names))
    mean = total / max(units, 1)
    deviation = np.sqrt(np.maximum(squares - mean**2, 0) * units / max(units - 1, 1))
    number = np.bincount(code, minlength=len(names))
    most = np.argsort(-total, kind="stable")[:MOST_NAMES]
    most = most[number[most] > 0]
    return frames.build(
        WORK_NAMES,
        {
            "rank": np.full(len(most), key[0]),
            "device": np.full(len(most), key[1]),
            "group": _repeated(group, len(most)),
            "name": frames.names(most, names),
            "count": number[most] / units,
            "time": total[most] // units,
            "deviation": pa.array(np.round(deviation[most]).astype(np.int64), mask=np.full(len(most), units < 2)),
        },
    )


def work_shapes(host_ranges: pa.Table, host_steps: pa.Table) -> pa.Table:
    """Of each rank the shapes of operators with weights that are there most often."""
    weighted = frames.where(host_ranges, "name", lambda name: WEIGHTED.match(name) is not None)
    found = host_ranges.filter(pc.and_(pa.array(weighted), pc.is_valid(host_ranges["shapes"])))
    found = pa.table({"rank": found["rank"], "name": found["name"], "shapes": _of_inputs(found["shapes"])})
    steps = frames.by_rank(host_steps)
    tables = []
    for rank, rows in frames.by_rank(found).items():
        counted = rows.select(["name", "shapes"]).group_by(["name", "shapes"]).aggregate([([], "count_all")])
        order = [("count_all", "descending"), ("name", "ascending"), ("shapes", "ascending")]
        counted = counted.set_column(0, "name", counted["name"].cast(pa.string())).sort_by(order)[:MOST_SHAPES]
        times = counted["count_all"].to_numpy() / max(steps[rank].num_rows, 1)
        columns = {"rank": np.full(len(times), rank), "operator": counted["name"], "shapes": counted["shapes"]}
        tables.append(frames.build(WORK_SHAPES, columns | {"count": times}))
    return frames.stack(WORK_SHAPES, tables)


def _of_inputs(shapes: pa.ChunkedArray) -> pa.Array:
    """The shapes of the first two inputs, which hold the size of the batch; where the result goes may be another input."""
    coded = shapes.combine_chunks().dictionary_encode()
    short = pa.array([_first_two(text) for text in coded.dictionary.to_pylist()], pa.string())
    return short.take(coded.indices)


def _first_two(text: str) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(text, type=list[Any])[:2]).decode()
    except msgspec.DecodeError:
        return text
