"""What host threads were running: the table `cpu_samples`, of CPU samples and of the stacks of calls of the operating system.

A sample and the frames of its stack lie in two tables, in any order, and frames are many: both are sorted into one, in which a sample
is followed by its frames from the outermost inwards, in memory that does not grow with the file.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.formats.nsys.lookups import Bools, Ints, Strings, among, integers, processes, threads
from traceanalyzer.ingest.formats.nsys.repairs import keep_rows
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns, EventReader
from traceanalyzer.ingest.rows.classify import map_names
from traceanalyzer.ingest.rows.external_sort import Spool
from traceanalyzer.ingest.rows.order import Key
from traceanalyzer.model.schema import NAME, Column, TableSpec
from traceanalyzer.records import dataclass

DEEPEST = 2048
"""Frames beyond this depth are left out: profilers follow a stack for some hundred at most."""
_LONGEST = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+|#-?\d+|\[?unknown\]?", re.IGNORECASE)
_MADE_UP = re.compile(r"\[(?:broken backtraces?|max(?:imum)? depth.*|truncated.*)\]", re.IGNORECASE)
"""Entries that the profiler adds to stacks that it could not follow to their end."""
_SAMPLE = 1 << 40
"""Stands for the level of the sample itself, above all of its frames."""
_ROWS = TableSpec(
    "stack_rows",
    "a sample, or a frame of the stack with its id",
    (
        Column("id", pa.int64(), None, "id of the stack"),
        Column("level", pa.int64(), None, "depth of the frame, 0 the innermost; `_SAMPLE` for the sample"),
        Column("name", NAME, None, "function, or its module; null for what is neither"),
        Column("thread", pa.int64(), None, "global id of the sampled thread"),
        Column("time_ns", pa.int64(), "ns", "when it was sampled"),
    ),
)
_KEYS = (Key("id"), Key("level", descending=True), Key("time_ns"), Key("thread"))


@dataclass
class Seen:
    """How many samples the file holds, of how many of them the process uses a GPU, and how many of those have a stack."""

    samples: int = 0
    own: int = 0
    with_stack: int = 0


def read_samples(
    reader: EventReader, database: Database, strings: Strings, users: set[int], launching: Ints, seen: Seen
) -> Iterator[pa.Table]:
    """Batches of `cpu_samples` of all threads of the processes that use a GPU; fills in `seen`.

    Calls of the operating system on `launching` threads (global ids) have a stack only where they took long: it is a row at the
    start of the call.
    """
    for samples, stacks in ((tables.SAMPLES, tables.SAMPLE_STACKS), (tables.OS_STACK_IDS, tables.OS_STACKS)):
        is_sample = samples is tables.SAMPLES
        if not is_sample and selects.find(database, stacks) is None:
            continue
        with tempfile.TemporaryDirectory(prefix="traceanalyzer-") as folder:
            spool = Spool(_ROWS, _KEYS, Path(folder), lanes=False)
            own = 0
            for columns in reader.read(samples):
                caller = columns["caller"]
                if is_sample:
                    wanted = among(integers(processes(caller), -1), np.array(sorted(users), np.int64))
                else:
                    wanted = among(integers(caller), launching) & (integers(columns["id"]) > 0)
                rows = _sample_rows(columns, wanted)
                seen.samples += len(columns["start"]) if is_sample else 0
                own += rows.num_rows
                spool.add(rows)
            if not own:
                continue
            for columns in reader.read(stacks):
                spool.add(_frame_rows(columns, strings))
            for batch in _joined(spool.blocks()):
                if is_sample:
                    seen.own += batch.num_rows
                    seen.with_stack += batch.num_rows - batch["stack"].null_count
                    yield batch
                else:
                    yield batch.filter(batch["stack"].is_valid())


def _sample_rows(columns: Columns, wanted: Bools) -> pa.Table:
    """Some of the samples."""
    ids = columns.get("id", pa.nulls(len(wanted), pa.int64()))
    wanted = wanted & np.asarray(columns["start"].is_valid())
    some = keep_rows({"id": ids, "time_ns": columns["start"], "thread": columns["caller"]}, pa.array(wanted))
    return pa.table(some | {"level": pa.array(np.full(len(some["id"]), _SAMPLE))})


def _frame_rows(columns: Columns, strings: Strings) -> pa.Table:
    """The frames by name. Entries that the profiler made up, such as a note that a stack is incomplete, are left out."""
    rows = len(columns["id"])
    nothing = pa.nulls(rows, pa.int64())
    depth, special = integers(columns["depth"], -1), integers(columns.get("special", nothing))
    symbols = strings.names(columns.get("symbol", nothing), None)
    functions = map_names(symbols, _function)
    modules = map_names(strings.names(columns.get("module", nothing), None), _module)
    nameless = (integers(columns.get("unresolved", nothing)) != 0) | np.asarray(functions.is_null())
    # One list of both: functions first.
    code = np.where(
        nameless, integers(modules.indices, -1) + len(functions.dictionary), integers(functions.indices, -1)
    )
    absent = nameless & np.asarray(modules.is_null())
    values = pa.concat_arrays([functions.dictionary, modules.dictionary])
    names = pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32), mask=absent), values)
    made_up = np.array([*(_is_made_up(symbol) for symbol in symbols.dictionary.to_pylist()), False], bool)
    sound = (depth >= 0) & (depth < DEEPEST) & (special == 0) & ~made_up[integers(symbols.indices, -1)]
    frames = {"id": columns["id"], "level": pa.array(depth), "name": names}
    return pa.table(keep_rows(frames, pa.array(sound)))


@cache
def _function(name: str) -> str | None:
    """A function's name as a part of a stack; None for what is only an address."""
    text = " ".join(name.split())
    if not text or _ADDRESS.fullmatch(text):
        return None
    return text.replace(";", ",")[:_LONGEST]


def _is_made_up(symbol: str | None) -> bool:
    return symbol is not None and _MADE_UP.fullmatch(symbol) is not None


@cache
def _module(path: str) -> str:
    """A module in brackets, which tell it from a function: "[libc.so.6]"."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2].strip("[]").replace(";", ",") or "unknown"
    return f"[{'unknown' if _ADDRESS.fullmatch(name) else name[:_LONGEST]}]"


def _joined(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The samples with their stacks. Blocks are in the order of `_KEYS`; one id may go on from one block to the next."""
    held: pa.Table | None = None
    for block in blocks:
        rows = block if held is None else pa.concat_tables([held, block])
        ids = _column(rows, "id")
        last = int(np.searchsorted(ids, ids[-1])) if len(ids) else 0
        held = rows.slice(last)
        if last:
            yield _with_stacks(rows.slice(0, last))
    if held is not None and held.num_rows:
        yield _with_stacks(held)


def _with_stacks(rows: pa.Table) -> pa.Table:
    """Samples and frames of whole ids, in order, as rows of `cpu_samples`."""
    rows = rows.unify_dictionaries().combine_chunks()
    ids, level = _column(rows, "id"), _column(rows, "level")
    sample = level == _SAMPLE
    name = rows["name"].combine_chunks()
    code = integers(name.indices, -1)
    number = np.cumsum(np.concatenate(([True], ids[1:] != ids[:-1]))) - 1
    sampled = np.zeros(number[-1] + 1, bool)
    sampled[number[sample]] = True
    frame = np.flatnonzero(~sample & sampled[number] & (code >= 0))
    frame = frame[_new(number[frame], level[frame])]
    # Several frames of one module without names say no more than one.
    bare = np.asarray(pc.starts_with(name.dictionary.cast(pa.string()), "["), bool)
    frame = frame[_new(number[frame], code[frame]) | ~bare[code[frame]]]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(number[frame], minlength=number[-1] + 1))))
    texts = name.take(pa.array(frame)).cast(pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts), ";")
    stacks = pc.if_else(pc.equal(joined, ""), None, joined).dictionary_encode()
    own = rows.filter(pa.array(sample))
    caller = own["thread"].combine_chunks()
    return pa.table(
        {
            "process": processes(caller),
            "thread": threads(caller),
            "time_ns": own["time_ns"],
            "stack": stacks.take(pa.array(number[sample])),
        }
    )


def _new(*columns: Ints) -> Bools:
    """Which rows differ from the one above in any column."""
    result = np.ones(len(columns[0]), bool)
    result[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return result


def _column(rows: pa.Table, name: str) -> Ints:
    return integers(rows[name].combine_chunks(), np.iinfo(np.int64).max)
