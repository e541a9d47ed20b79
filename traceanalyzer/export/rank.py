"""One rank of an exported trace: a process for each GPU and each process of the host, with their tracks and counters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import MISSING, Ints, integers
from traceanalyzer.columns.frames import row_groups
from traceanalyzer.export import events
from traceanalyzer.export.text import decimals, join_fragments, micros, quote_texts, text_of
from traceanalyzer.export.tracks import Numbers, layers
from traceanalyzer.model.launch_links import launch_links
from traceanalyzer.model.tables import Tables
from traceanalyzer.records import dataclass
from traceanalyzer.result.words.gpu_names import gpu_of, part_of
from traceanalyzer.vocabulary.lines import IDLE_PREFIX

BATCH = 16_384
"""So many rows become text at once."""


@dataclass(frozen=True)
class Slices:
    """Rows of a table that become slices: their times in ns since the origin, and how they are written."""

    table: pa.Table
    starts: Ints
    ends: Ints
    fragment: events.Fragment


class RankWriter:
    """Writes the tables of one rank; `label` is what it is called, empty where it is the only one; `origin` are the ns of its clock
    that are 0 in the trace."""

    def __init__(self, tables: Tables, label: str, ordinal: int, origin: int, numbers: Numbers, out: IO[bytes]) -> None:
        self._tables = tables
        self._label = label
        self._ordinal = ordinal
        self._origin = origin
        self._numbers = numbers
        self._out = out

    def write(self) -> None:
        calls, ops = self._linked(self._own("api_calls"), self._own("gpu_ops"))
        ops = ops.filter(pc.invert(pc.fill_null(ops["quarantined"], False)))
        self._gpus(self._slices(ops, events.gpu_op))
        self._hosts([self._slices(self._own("host_ranges"), events.host_range), self._slices(calls, events.api_call),
                     self._slices(self._own("overheads"), events.overhead)])  # fmt: skip

    def _linked(self, calls: pa.Table, ops: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Both with a column LINK: the number of the launching call, of which no other rank has the same."""
        links, used = launch_links(self._own("launches"), calls, ops), self._numbers.links
        self._numbers.links += int(links.calls.max(initial=0))
        numbers = (pa.array(link + np.int64(used), mask=link == 0) for link in (links.calls, links.ops))
        return tuple(table.append_column(events.LINK, link) for table, link in zip((calls, ops), numbers, strict=True))

    def _own(self, name: str) -> pa.Table:
        table = self._tables.table(name)
        return table.filter(pc.equal(table["rank"], self._ordinal)) if self._mixed(table) else table

    def _mixed(self, table: pa.Table) -> bool:
        return bool(table.num_rows) and not pc.all(pc.equal(table["rank"], self._ordinal)).as_py()

    def _slices(self, table: pa.Table, fragment: events.Fragment) -> Slices:
        starts = integers(table, "start_ns") - self._origin
        return Slices(table, starts, np.maximum(integers(table, "end_ns") - self._origin, starts), fragment)

    def _gpus(self, ops: Slices) -> None:
        ledger, gaps, steps = (self._own(name) for name in ("ledger_intervals", "gaps", "step_stats"))
        ledger = ledger.filter(pc.invert(pc.starts_with(ledger["line"].cast(pa.string()), IDLE_PREFIX)))
        rows = [
            self._slices(ledger, events.busy_line),
            self._slices(gaps, events.gap),
            self._slices(steps, events.step),
        ]
        places = [dict(row_groups(one.table, ("device",))) for one in (*rows, ops)]
        streams = dict(row_groups(ops.table, ("device", "process", "context", "stream")))
        none = np.empty(0, np.int64)
        for (device,) in sorted(set().union(*places)):
            process = self._numbers.process(gpu_of(self._label, device))
            busy, idle, stepped, _ = (place.get((device,), none) for place in places)
            self._lane(process, "where the time went", rows[:2], [busy, idle])
            self._lane(process, "steps", rows[2:], [stepped])
            here = {key: found for key, found in streams.items() if key[0] == device}
            alone = len({key[3] for key in here}) == len(here)
            for (_, of, context, stream), found in here.items():
                name = f"stream {'?' if stream == MISSING else stream}"
                self._lane(process, name if alone else f"{name} (process {of}, context {context})", [ops], [found])
            self._counters(process, device)

    def _hosts(self, sources: Sequence[Slices]) -> None:
        found = [dict(row_groups(one.table, ("process", "thread"))) for one in sources]
        processes = self._own("processes")
        process_names, pids = (_by_key(processes, name, "process") for name in ("name", "pid"))
        thread_names = _by_key(self._own("threads"), "name", "process", "thread")
        none = np.empty(0, np.int64)
        keys = sorted(set().union(*found))
        for number in sorted({key[0] for key in keys}):
            name = process_names.get((number,))
            title = part_of(self._label, f"host process {pids.get((number,), number)}")
            process = self._numbers.process(f"{title} ({name})" if name else title)
            for key in (key for key in keys if key[0] == number):
                title = thread_names.get(key, "")
                thread = "thread ?" if key[1] == MISSING else f"thread {key[1]}"
                title = title if str(key[1]) in title else f"{thread} ({title})" if title else thread
                self._lane(process, title, sources, [place.get(key, none) for place in found])

    def _lane(self, process: int, name: str, sources: Sequence[Slices], rows: Sequence[Ints]) -> None:
        """The slices of one lane, on as many tracks as it takes for them to nest."""
        source = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        if not len(source):
            return
        row = np.concatenate(rows)
        starts = np.concatenate([one.starts[own] for one, own in zip(sources, rows, strict=True)])
        ends = np.concatenate([one.ends[own] for one, own in zip(sources, rows, strict=True)])
        order = np.lexsort((-ends, starts))
        source, row, starts, ends = source[order], row[order], starts[order], ends[order]
        layer = layers(starts, ends)
        tracks = np.array([self._numbers.track(process, name) for _ in range(int(layer.max()) + 1)], np.int64)[layer]
        for at in range(0, len(row), BATCH):
            part = slice(at, at + BATCH)
            about = _about(sources, source[part], row[part])
            place = join_fragments(
                f'{{"ph":"X","pid":{process},"tid":', pa.array(tracks[part]).cast(pa.string()), ',"ts":'
            )
            times = join_fragments(micros(starts[part]), ',"dur":', micros((ends - starts)[part]))
            self._out.write(text_of(join_fragments(place, times, about, "},\n")))

    def _counters(self, process: int, device: int) -> None:
        counters = self._own("counters")
        counters = counters.filter(pc.equal(counters["device"], device))
        names = join_fragments(
            quote_texts(counters["metric"]), ',"args":{', pc.fill_null(quote_texts(counters["unit"]), '"value"'), ":"
        )
        self._points(process, counters, names, counters["value"])
        memory = self._own("memory_events")
        memory = memory.filter(pc.equal(memory["device"], device))
        for column, name in (("total_allocated", "allocated memory"), ("total_reserved", "reserved memory")):
            known = memory.filter(pc.is_valid(memory[column]))
            names = pa.repeat(f'{json.dumps(name)},"args":{{"bytes":', known.num_rows)
            self._points(process, known, names, known[column].cast(pa.float64()))

    def _points(self, process: int, table: pa.Table, names: pa.Array, values: pa.ChunkedInts) -> None:
        number = values.to_numpy()
        rows = np.flatnonzero(np.isfinite(number))
        times = integers(table, "time_ns") - self._origin
        for at in range(0, len(rows), BATCH):
            part = rows[at : at + BATCH]
            place = join_fragments(f'{{"ph":"C","pid":{process},"tid":{process},"ts":', micros(times[part]), ',"name":')
            self._out.write(text_of(join_fragments(place, names.take(pa.array(part)), decimals(number[part]), "}},\n")))


def write_rank(tables: Tables, label: str, ordinal: int, origin: int, numbers: Numbers, out: IO[bytes]) -> None:
    """Write all events of one rank."""
    RankWriter(tables, label, ordinal, origin, numbers, out).write()


def _about(sources: Sequence[Slices], source: Ints, row: Ints) -> pa.Array:
    """The fragments of rows of several tables, in the order given."""
    parts, places = [], []
    for number, one in enumerate(sources):
        own = np.flatnonzero(source == number)
        if len(own):
            parts.append(one.fragment(one.table.take(pa.array(row[own]))))
            places.append(own)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


def _by_key(table: pa.Table, column: str, *key: str) -> dict[tuple[int, ...], Any]:
    """The values of a small table's column that are there, by key."""
    keys = zip(*(integers(table, name).tolist() for name in key), strict=True)
    return {at: value for at, value in zip(keys, table[column].to_pylist(), strict=True) if value}
