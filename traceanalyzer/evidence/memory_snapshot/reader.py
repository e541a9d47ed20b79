"""Reads a snapshot into its tables: content to columns, columns to lives, lives to rows, and what was met into health."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.memory_snapshot.reading import held, notes
from traceanalyzer.evidence.memory_snapshot.reading.annotations import annotations_of
from traceanalyzer.evidence.memory_snapshot.reading.columns import Names, Wrong
from traceanalyzer.evidence.memory_snapshot.reading.content import MOST_DEVICES, content_of
from traceanalyzer.evidence.memory_snapshot.reading.device import Device, device_rows
from traceanalyzer.evidence.memory_snapshot.reading.entries import ACTIONS, history_of
from traceanalyzer.evidence.memory_snapshot.reading.settings import plain_settings
from traceanalyzer.evidence.memory_snapshot.reading.stacks import Stacks
from traceanalyzer.evidence.memory_snapshot.tables import TABLES
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink

PRODUCER = "PyTorch memory snapshot"
_ROWS = 1 << 16
_MOST_BYTES = float(1 << 61)


def read_snapshot(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError for what is damaged, hostile or no snapshot."""
    wrong = Wrong()
    kinds, pools, actions = Names(), Names(), Names(ACTIONS)
    with without_collection():
        content = content_of(source, progress)
        try:
            stacks = Stacks(content.budget, wrong)
            segments = held.segments_of(content, kinds, pools, stacks, wrong)
            blocks = held.blocks_held(content, segments, stacks, wrong)
            histories = [history_of(trace, actions, stacks, wrong) for trace in content.traces]
        except OverflowError as error:
            raise InputError(f"{source.path}: {error}; this is no memory snapshot as PyTorch writes it") from error
        settings = plain_settings(content.settings)
        recorded = content.recorded
        annotations = annotations_of(content.annotations, wrong)
        strange = content.strange
        stacks.forget_lists()
        del content
    _check_sizes(source, segments.size, blocks.size, *(history.size for history in histories))
    writer = _Writer(sink, stacks)
    for frames in stacks.tables():
        writer.add("snapshot_frames", frames)
    if annotations.num_rows:
        writer.add("snapshot_annotations", annotations)
    numbers = sorted({*segments.device.tolist(), *(n for n, history in enumerate(histories) if len(history))})
    if len(numbers) > MOST_DEVICES:
        raise InputError(f"{source.path}: memory of {len(numbers):,} GPUs, more than any process has")
    spans = []
    for number in numbers:
        history = histories[number] if number < len(histories) else None
        device = Device(number, segments, blocks, history, settings, kinds, pools, actions)
        rows = device_rows(device)
        for table, batch in rows.tables.items():
            writer.add(table, batch)
        notes.of_device(sink, device, rows)
        spans += [rows.span] if rows.span else []
    notes.of_file(
        sink, recorded, wrong.count + strange, any(history is not None and len(history) for history in histories)
    )
    return Marks(
        producer=PRODUCER,
        clock="epoch" if spans else "none",
        clock_base_ns=0 if spans else None,
        recorded_ns=(min(low for low, _ in spans), max(high for _, high in spans)) if spans else None,
    )


class _Writer:
    """Hands rows on in batches, with all columns that are declared but the rank, and the stack's place."""

    def __init__(self, sink: Sink, stacks: Stacks) -> None:
        self._sink = sink
        places = stacks.places()
        names = {place: number for number, place in enumerate(dict.fromkeys(p for p in places if p is not None))}
        self._codes = np.array([-1 if place is None else names[place] for place in places] + [-1], np.int32)
        self._names = pa.array(list(names), pa.string())
        self._specs = {spec.name: spec for spec in TABLES}

    def add(self, table: str, rows: pa.Table) -> None:
        spec = self._specs[table]
        schema = pa.schema([field for field in spec.schema if field.name != "rank"])
        for at in range(0, rows.num_rows, _ROWS):
            part = rows.slice(at, _ROWS)
            if spec.column("place"):
                part = part.append_column("place", self._places(part["stack"]))
            self._sink.add(table, part.select(schema.names).cast(schema))

    def _places(self, stack: pa.ChunkedArray) -> pa.DictionaryArray:
        # The last code is that of no stack.
        numbers: npt.NDArray[Any] = stack.fill_null(-1).to_numpy()
        codes = self._codes[numbers]
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), self._names)


def _check_sizes(source: Source, *sizes: npt.NDArray[np.int64]) -> None:
    """Raises InputError for sizes whose sum is beyond what can be counted."""
    if any(float(np.maximum(size, 0).astype(np.float64).sum()) > _MOST_BYTES for size in sizes):
        raise InputError(f"{source.path}: sizes that no GPU has; this is no memory snapshot as PyTorch writes it")
