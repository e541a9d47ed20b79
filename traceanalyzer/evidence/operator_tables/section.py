"""The section of PyTorch's own tables in the report: what the sums tell, what takes most, what an execution trace lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from traceanalyzer.evidence.operator_tables.answers.words import format_flops, gpu_word, of_execution, of_sums
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.document import Result
from traceanalyzer.result.sections import Block, Grid, Section, Unit, Words
from traceanalyzer.units import format_count, format_duration, format_share

ORDER = 170
RECORD = (
    "To see when each of it ran, write a trace with the same profiler, `prof.export_chrome_trace('trace.json')`, and give it beside "
    "the table."
)
SHOWN = 12
KIND = "operator_tables"
Row = dict[str, Any]
_Columns = Sequence[tuple[tuple[str, Unit], str]]
_DEVICE: _Columns = (
    (("On the device", "text"), "name"),
    (("Calls", "count"), "calls"),
    (("Time", "ns"), "self_device"),
    (("Share", "share"), "share"),
)
_OPERATORS: _Columns = (
    (("Operator", "text"), "name"),
    (("Calls", "count"), "calls"),
    (("Time of its work", "ns"), "self_device"),
    (("Share", "share"), "share"),
    (("Own time on the host", "ns"), "self_host"),
    (("FLOPs", "text"), "flops"),
    (("Rate", "text"), "rate"),
    (("Memory", "bytes"), "memory"),
)
_SHAPES: _Columns = (
    (("Operator", "text"), "name"),
    (("Input shapes", "text"), "shapes"),
    (("Calls", "count"), "calls"),
    (("FLOPs", "text"), "flops"),
    (("Time of its work", "ns"), "self_device"),
    (("Rate", "text"), "rate"),
)
_HOST: _Columns = (
    (("On the host", "text"), "name"),
    (("Calls", "count"), "calls"),
    (("Own time", "ns"), "self_host"),
    (("Share", "share"), "share"),
)
_NODES: _Columns = (
    (("Operator", "text"), "name"),
    (("Calls", "count"), "calls"),
    (("Input shapes", "text"), "shapes"),
    (("Types", "text"), "dtypes"),
    (("FLOPs of all", "text"), "flops"),
)
_COLLECTIVES: _Columns = (
    (("Collective", "text"), "name"),
    (("Group", "text"), "group"),
    (("Ranks", "count"), "group_size"),
    (("Elements", "count"), "elements"),
    (("Type", "text"), "dtype"),
    (("Calls", "count"), "calls"),
)


def sections(result: Result, tables: Tables) -> Iterable[Section]:
    """One section for all files; none without any."""
    blocks: list[Block] = []
    names = _Names(result, tables)
    for row in tables.table("operator_sums").to_pylist():
        blocks += _of_sums(row, _own(tables, "operator_rows", row), names.of(row), result.verdict.headline)
    for row in tables.table("execution_summary").to_pylist():
        listed = _own(tables, "execution_operators", row)
        lists = listed, _own(tables, "execution_collectives", row)
        blocks += _of_execution(row, *lists, names.of(row), result.verdict.headline)
    if blocks:
        yield Section("operator-tables", "PyTorch's own tables", blocks, order=ORDER)


class _Names:
    """Whose a table is, in words, as far as there are several."""

    def __init__(self, result: Result, tables: Tables) -> None:
        self._ranks = {one.path: one.rank for one in result.evidence if one.kind == KIND}
        self._paths: dict[int, list[str]] = {}
        for row in tables.table("placed_evidence").to_pylist():
            if row["kind"] == KIND:
                self._paths.setdefault(row["rank"], []).append(row["path"])

    def of(self, row: Row) -> str:
        if len(self._ranks) < 2:
            return ""
        paths = self._paths.get(row["rank"], [])
        rank = self._ranks.get(paths[0]) if paths else None
        if rank is not None:
            return f" of rank {rank}"
        return f" ({PurePath(paths[0]).name})" if len(paths) == 1 else ""


def _own(tables: Tables, name: str, row: Row) -> list[Row]:
    keys = [key for key in ("rank", "file", "profile") if key in row and key in tables.table(name).column_names]
    return [one for one in tables.table(name).to_pylist() if all(one[key] == row[key] for key in keys)]


def _of_sums(row: Row, listed: Sequence[Row], whose: str, headline: str) -> Iterator[Block]:
    number = f", profile {row['profile'] + 1} of {row['profiles']}" if row["profiles"] > 1 else ""
    whose = f"{whose}{number}"
    lists: dict[str, list[Row]] = {}
    for one in listed:
        if len(lists.setdefault(one["list"], [])) < SHOWN:
            lists[one["list"]].append(one)
    if row["alone"]:
        said = of_sums(row)
        yield Words(("" if said in headline else f"{said}. ") + RECORD)
    else:
        yield Words("A table of sums of the trace: the trace itself tells more. What follows is what the table says.")
    yield Grid(
        f"What the sums tell{whose}",
        [("Figure", "text"), ("Value", "text"), ("What it tells", "text")],
        list(_score(row)),
    )
    for name, title, columns in (
        ("shapes", "Operators by what they compute", _SHAPES),
        ("device", "What takes the time of the device", _DEVICE),
        ("operators", "Operators by the time of the work that they start", _OPERATORS),
        ("host", "What takes the time of the host", _HOST),
    ):
        if name in lists and (row["alone"] or name in ("shapes", "operators")):
            yield _grid(f"{title}{whose}", columns, lists[name])


def _score(row: Row) -> Iterator[tuple[str, str, str]]:
    gpu = gpu_word(row["device_name"])
    device, host = row["device_total"], row["host_total"]
    if device is not None and row["device_name"]:
        yield f"time of the {gpu}'s work", format_duration(device), "all streams together"
    if host is not None:
        told = f"all threads together, waits for the {gpu} in it"
        yield "time on the host", format_duration(host), told
    if device and host:
        ratio = f"{host / device:,.1f} times" if host >= device else f"{device / host:,.1f} times"
        more = "more on the host" if host > device else "more on the {0}"
        yield "one to the other", ratio, f"{more.format(gpu)}; who waits for whom, a sum does not tell"
    if row["steps"]:
        yield "steps of the profiler", format_count(row["steps"]), "sums are of all of them"
    yield from _score_of_work(row, gpu)


def _score_of_work(row: Row, gpu: str) -> Iterator[tuple[str, str, str]]:
    each = f", {format_count(row['launches'] / row['steps'])} a step" if row["launches"] and row["steps"] else ""
    listed = "" if row["host_whole"] else ", of those listed"
    if row["kernels"]:
        some = "" if row["whole"] else " (of those listed)"
        yield "kernels", format_count(row["kernels"]), f"{format_duration(row['kernel_mean'])} each on average{some}"
    if row["launches"]:
        mean = f"{format_duration(row['launch_mean'])} of the host each on average, the profiler's own cost in it{each}"
        yield f"calls that launch{listed}", format_count(row["launches"]), mean
    if row["syncs"]:
        share = f", {format_share(row['sync_time'] / row['host_total'])} of the host's" if row["host_total"] else ""
        told = f"{format_duration(row['sync_time'])} in these{share}; most in {row['sync_name']}: the host waited for the {gpu} there"
        yield f"calls that wait{listed}", format_count(row["syncs"]), told
    device = row["device_total"]
    if row["copies"] and device:
        yield (
            "copies and memsets",
            format_duration(row["copies"]),
            f"{format_share(row['copies'] / device)} of the {gpu}'s work",
        )
    if row["communication"] and device:
        told = f"{format_share(row['communication'] / device)} of the {gpu}'s work, waits for other ranks in it"
        yield "communication", format_duration(row["communication"]), told
    if row["kernels"] and device and not row["whole"]:
        told = f"{format_share((row['kernel_time'] + row['copies']) / device)} of the {gpu}'s work; row_limit left out the rest"
        yield "kernels and copies listed", format_duration(row["kernel_time"] + row["copies"]), told
    if row["flops"]:
        yield "FLOPs", format_flops(row["flops"]), "PyTorch's own count, of operators that it has a formula for"


def _of_execution(
    row: Row, listed: Sequence[Row], collectives: Sequence[Row], whose: str, headline: str
) -> Iterator[Block]:
    if not row["alone"] or of_execution(row) not in headline:
        yield Words(_told(row))
    if row["alone"] and listed:
        yield _grid(f"Operators of the execution trace{whose}", _NODES, listed[:SHOWN])
    if collectives and row["alone"]:
        yield _grid(f"Collectives of the execution trace{whose}", _COLLECTIVES, collectives[:SHOWN])


def _told(row: Row) -> str:
    if row["alone"]:
        return f"{of_execution(row)}."
    begin = f"An execution trace of {format_count(row['operators'])} operators. "
    if not row["numbered"]:
        return (
            f"{begin}The trace names no ids of record functions, so that its operators cannot be found in it: register the observer "
            "with the profiler (`execution_trace_observer=ExecutionTraceObserver().register_callback('et.json')`)."
        )
    if not row["matched"]:
        return f"{begin}None of the ids of the trace's operators is in it: it is of other steps."
    if row["alike"] < row["matched"]:
        lost = row["matched"] - row["alike"]
        more = f"; {format_count(lost)} have another name there, and nothing is taken from it for these"
    else:
        more = ""
    return (
        f"{begin}{format_count(row['alike'])} of the trace's {format_count(row['in_trace'])} operators are in it by the id of their "
        f"record function{more}: where the trace has no input shapes and types, theirs are those of the execution trace. It holds no "
        "times."
    )


def _grid(title: str, columns: _Columns, rows: Sequence[Row]) -> Grid:
    """Without columns of which nothing is known."""
    shown = [(column, name) for column, name in columns if any(row[name] is not None for row in rows)]
    return Grid(
        title, [column for column, _ in shown], [[_value(row[name], name) for _, name in shown] for row in rows]
    )


def _value(value: Any, name: str) -> Any:
    if value is None:
        return None
    if name == "flops":
        return format_flops(value)
    return f"{format_flops(value)}/s" if name == "rate" else value
