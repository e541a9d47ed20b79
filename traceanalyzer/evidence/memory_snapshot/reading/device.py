"""One GPU of a snapshot: its history and what it held, put together into rows of blocks, segments, events and totals."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.evidence.memory_snapshot.reading import replay
from traceanalyzer.evidence.memory_snapshot.reading.columns import (
    NO_ADDRESS,
    NONE,
    Ints,
    Names,
    filled,
    nullable,
    nullable_addresses,
)
from traceanalyzer.evidence.memory_snapshot.reading.entries import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    History,
)
from traceanalyzer.evidence.memory_snapshot.reading.held import STATES, Blocks, Segments
from traceanalyzer.evidence.memory_snapshot.reading.replay import BEFORE, NEVER, Contradictions, Lives
from traceanalyzer.evidence.memory_snapshot.reading.settings import max_split_bytes, settings_text
from traceanalyzer.evidence.memory_snapshot.reading.sizes import Spans, taken
from traceanalyzer.evidence.memory_snapshot.tables import FREED, TOTALS
from traceanalyzer.records import dataclass

_ALLOCATED, _PENDING, _INACTIVE = range(3)


@dataclass(frozen=True)
class Device:
    """What there is of one GPU. `segments` and `blocks` are of all GPUs; `history` is None or empty where none was recorded."""

    number: int
    segments: Segments
    blocks: Blocks
    history: History | None
    settings: dict[str, Any]
    kinds: Names
    pools: Names
    actions: Names


@dataclass
class DeviceRows:
    """Rows by table, without `place`; `span` is from when to when was recorded.

    `vanished` counts blocks that the history left alive and the snapshot does not hold, with their bytes; `misplaced` blocks outside of
    their segment; `disagreeing` segments whose own sums are not those of their blocks.
    """

    tables: dict[str, pa.Table] = field(default_factory=dict)
    span: tuple[int, int] | None = None
    entries: int = 0
    lost_beginning: bool = False
    born_before: int = 0
    vanished: int = 0
    vanished_bytes: int = 0
    misplaced: int = 0
    disagreeing: int = 0
    untimed: int = 0
    below_zero: bool = False
    contradictions: Contradictions = field(default_factory=lambda: Contradictions(0, 0))


def device_rows(device: Device) -> DeviceRows:
    """All rows of one GPU."""
    rows = DeviceRows()
    segments, blocks = device.segments, device.blocks
    mine = np.flatnonzero(segments.device == device.number)
    own = np.flatnonzero(np.isin(blocks.segment, mine))
    history = device.history if device.history is not None and len(device.history) else None
    rows.entries = len(history) if history else 0
    lives = _lives(rows, device, history, mine, own)
    rows.tables["snapshot_blocks"] = _blocks(device, history, lives)
    _add_segments(rows, device, history, mine, own)
    if history:
        rows.tables["snapshot_events"] = _events(device, history)
        rows.untimed = int((history.time_ns == NONE).sum())
        times = history.time_ns[history.time_ns != NONE]
        rows.span = (int(times.min()), int(times.max())) if len(times) else None
    rows.tables["snapshot_totals"] = _totals(rows, device, history, lives, mine, own)
    return rows


def _lives(rows: DeviceRows, device: Device, history: History | None, mine: Ints, own: Ints) -> Lives:
    """The lives of the history, met with the blocks that are there at the snapshot; those from before the history too."""
    blocks = device.blocks
    lives, rows.contradictions = replay.lives_of(history) if history else (replay.nothing(), Contradictions(0, 0))
    active = own[np.isin(blocks.state[own], (_ALLOCATED, _PENDING))]
    active = active[np.argsort(blocks.address[active], kind="stable")]
    lasting = np.flatnonzero(lives.end == NEVER)
    held = np.full(len(lives), -1)
    if len(active) and len(lasting):
        place = np.minimum(np.searchsorted(blocks.address[active], lives.address[lasting]), len(active) - 1)
        met = blocks.address[active[place]] == lives.address[lasting]
        held[lasting[met]] = active[place[met]]
    vanished = (lives.end == NEVER) & (held < 0)
    rows.vanished, rows.vanished_bytes = int(vanished.sum()), int(lives.size[vanished].sum())
    met = held >= 0
    requested = filled(lives.requested)
    exact = blocks.requested[held[met]]
    requested[met] = np.where(exact == NONE, requested[met], exact)
    stack = lives.stack.copy()
    stack[met] = np.where(stack[met] < 0, blocks.stack[held[met]], stack[met])
    given_up = lives.given_up.copy()
    pending = blocks.state[held[met]] == _PENDING
    given_up[met] = np.where(pending, np.where(given_up[met] == NEVER, BEFORE, given_up[met]), NEVER)
    lives = replace(lives, requested=requested, stack=stack, given_up=given_up, held=held).of(~vanished)
    older = np.setdiff1d(active, held[met])
    lives = replay.joined(lives, _older(device, older))
    sizes = taken(lives, _spans(device, history, mine), device.settings, max_split_bytes(device.settings))
    return replace(
        lives, size=np.where(lives.held >= 0, blocks.size[np.maximum(lives.held, 0)] if len(blocks) else 0, sizes)
    )


def _spans(device: Device, history: History | None, mine: Ints) -> Spans:
    """The segments that hand out pieces of what they have, from when to when they were there."""
    segments = device.segments
    start, end, gone = _segment_lives(device, history, mine)
    address, size = segments.address[mine], segments.size[mine]
    if history:
        address = np.concatenate((address, history.address[gone]))
        size = np.concatenate((size, filled(history.size[gone])))
    fixed = np.concatenate((segments.expandable[mine] != 1, np.ones(len(gone), np.bool_)))
    order = np.lexsort((start, address))
    order = order[fixed[order]]
    return Spans(address[order], size[order], start[order], end[order])


def _older(device: Device, held: Ints) -> Lives:
    """Blocks that are there at the snapshot and that the history says nothing of."""
    blocks, segments = device.blocks, device.segments
    count = len(held)
    return Lives(
        address=blocks.address[held],
        requested=blocks.requested[held],
        size=blocks.size[held],
        stream=segments.stream[blocks.segment[held]],
        stack=blocks.stack[held],
        start=np.full(count, BEFORE),
        given_up=np.where(blocks.state[held] == _PENDING, BEFORE, NEVER),
        end=np.full(count, NEVER),
        held=held,
    )


def _time_at(history: History | None, entries: Ints) -> pa.Array:
    """Times of entries; null for none, and for those before the history."""
    if history is None:
        return pa.nulls(len(entries), pa.int64())
    return nullable(np.where(entries >= 0, history.time_ns[np.maximum(entries, 0)], NONE))


def _entry(entries: Ints, least: int = 0) -> pa.Array:
    return pa.array(entries, mask=entries < least)


def _stack(stack: npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(stack, pa.int32(), mask=stack < 0)


def _device(device: Device, count: int) -> pa.Array:
    return pa.array(np.full(count, device.number, np.int32))


def _blocks(device: Device, history: History | None, lives: Lives) -> pa.Table:
    states = pa.array([*STATES, FREED], pa.string())
    state = np.full(len(lives), len(STATES), np.int32)
    met = lives.held >= 0
    state[met] = device.blocks.state[lives.held[met]]
    return pa.table(
        {
            "device": _device(device, len(lives)),
            "address": lives.address,
            "bytes": lives.size,
            "requested_bytes": nullable(lives.requested),
            "stream": nullable(lives.stream),
            "start_ns": _time_at(history, lives.start),
            "end_ns": _time_at(history, lives.end),
            "free_requested_ns": _time_at(history, lives.given_up),
            "start_entry": _entry(lives.start),
            "end_entry": _entry(lives.end),
            "free_requested_entry": _entry(lives.given_up, BEFORE),
            "state": pa.DictionaryArray.from_arrays(pa.array(state), states),
            "segment": nullable_addresses(_segment_of(device, history, lives)),
            "stack": _stack(lives.stack),
        }
    )


def _segment_of(device: Device, history: History | None, lives: Lives) -> npt.NDArray[np.uint64]:
    """The segment that holds each life: as the snapshot says, else the one known at that address that reaches as far."""
    segments = device.segments
    mine = segments.device == device.number
    base, size = segments.address[mine], segments.size[mine]
    if history:
        got = history.of(SEGMENT_ALLOC)
        got = got[history.address[got] != NO_ADDRESS]
        base = np.concatenate((base, history.address[got]))
        size = np.concatenate((size, filled(history.size[got])))
    found = np.full(len(lives), NO_ADDRESS, np.uint64)
    if len(base):
        order = np.lexsort((size, base))
        base, size = base[order], size[order].astype(np.uint64)
        place = np.searchsorted(base, lives.address, side="right").astype(np.int64) - 1
        at = np.maximum(place, 0)
        inside = (place >= 0) & (lives.address - base[at] < size[at])
        found[inside] = base[at[inside]]
    met = lives.held >= 0
    found[met] = segments.address[device.blocks.segment[lives.held[met]]]
    return found


def _add_segments(rows: DeviceRows, device: Device, history: History | None, mine: Ints, own: Ints) -> None:
    segments, blocks = device.segments, device.blocks
    sums = {
        "allocated_bytes": _sums(segments, blocks, own, (_ALLOCATED,), blocks.size),
        "active_bytes": _sums(segments, blocks, own, (_ALLOCATED, _PENDING), blocks.size),
        "requested_bytes": _requested_sums(segments, blocks, own),
    }
    start, end, gone = _segment_lives(device, history, mine)
    largest = np.zeros(len(segments), np.int64)
    free = own[blocks.state[own] == _INACTIVE]
    np.maximum.at(largest, blocks.segment[free], blocks.size[free])
    for name, said in (("allocated_bytes", "allocated_size"), ("active_bytes", "active_size")):
        stated = segments.said[said][mine]
        rows.disagreeing += int(((stated != NONE) & (stated != sums[name][mine])).sum())
    base, size = segments.address[blocks.segment[own]], segments.size[blocks.segment[own]]
    offset = blocks.address[own] - base
    outside = (blocks.address[own] < base) | (offset + blocks.size[own].astype(np.uint64) > size.astype(np.uint64))
    rows.misplaced = int(outside.sum())
    none = np.full(len(gone), NONE)
    kept = {name: nullable(np.concatenate((column[mine], none))) for name, column in sums.items()}
    address = np.concatenate((segments.address[mine], history.address[gone] if history else none.astype(np.uint64)))
    gone_of = {name: getattr(history, name)[gone] if history else none for name in ("size", "stream", "stack")}
    no_name = np.full(len(gone), -1, np.int32)
    expandable = np.concatenate((segments.expandable[mine], np.full(len(gone), -1, np.int8)))
    rows.tables["snapshot_segments"] = pa.table(
        {
            "device": _device(device, len(address)),
            "address": address,
            "bytes": np.concatenate((segments.size[mine], filled(gone_of["size"]))),
            **kept,
            "largest_free_bytes": nullable(np.concatenate((largest[mine], none))),
            "stream": nullable(np.concatenate((segments.stream[mine], gone_of["stream"]))),
            "kind": device.kinds.of(np.concatenate((segments.kind[mine], no_name))),
            "pool": device.pools.of(np.concatenate((segments.pool[mine], no_name))),
            "expandable": pa.array(expandable == 1, pa.bool_(), mask=expandable < 0),
            "start_ns": _time_at(history, start),
            "end_ns": _time_at(history, end),
            "start_entry": _entry(start),
            "end_entry": _entry(end),
            "stack": _stack(np.concatenate((segments.stack[mine], gone_of["stack"])).astype(np.int32)),
        }
    )


def _sums(
    segments: Segments, blocks: Blocks, own: Ints, states: tuple[int, ...], weight: npt.NDArray[np.int64]
) -> Ints:
    """For each segment the sum of `weight` over its blocks in these states."""
    total = np.zeros(len(segments), np.int64)
    chosen = own[np.isin(blocks.state[own], states)]
    np.add.at(total, blocks.segment[chosen], weight[chosen])
    return total


def _requested_sums(segments: Segments, blocks: Blocks, own: Ints) -> Ints:
    """The same of what was asked for; as the snapshot says where its blocks do not, NONE where neither does."""
    total = _sums(segments, blocks, own, (_ALLOCATED, _PENDING), filled(blocks.requested))
    chosen = own[np.isin(blocks.state[own], (_ALLOCATED, _PENDING)) & (blocks.requested[own] == NONE)]
    silent = np.isin(np.arange(len(segments)), blocks.segment[chosen])
    return np.where(silent, segments.said["requested_size"], total)


def _segment_lives(device: Device, history: History | None, mine: Ints) -> tuple[Ints, Ints, Ints]:
    """Start and end of the segments held and, after them, of those given back; and the entries that tell of the latter."""
    base = device.segments.address[mine]
    start = np.full(len(mine), BEFORE)
    nothing = np.zeros(0, np.int64)
    if history is None:
        return start, np.full(len(mine), NEVER), nothing
    entries = history.of(SEGMENT_ALLOC, SEGMENT_FREE)
    entries = entries[history.address[entries] != NO_ADDRESS]
    entries = entries[np.argsort(history.address[entries], kind="stable")]
    address, allocs = history.address[entries], history.action[entries] == SEGMENT_ALLOC
    same = np.concatenate((address[1:] == address[:-1], [False])) if len(entries) else np.zeros(0, bool)
    last = np.flatnonzero(allocs & ~same)
    if len(last) and len(base):
        place = np.minimum(np.searchsorted(address[last], base), len(last) - 1)
        start = np.where(address[last[place]] == base, entries[last[place]], start)
    frees = np.flatnonzero(~allocs)
    paired = (frees > 0) & same[frees - 1] & allocs[frees - 1]
    gone_start = np.where(paired, entries[frees - 1], BEFORE)
    start = _first_mapped(device, history, mine, start)
    return (
        np.concatenate((start, gone_start)),
        np.concatenate((np.full(len(mine), NEVER), entries[frees])),
        np.where(gone_start == BEFORE, entries[frees], gone_start),
    )


def _first_mapped(device: Device, history: History, mine: Ints, start: Ints) -> Ints:
    """For expandable segments the first entry that mapped a piece of what they are at the snapshot."""
    pieces = history.of(SEGMENT_MAP)
    pieces = pieces[history.address[pieces] != NO_ADDRESS]
    if not len(pieces) or not len(mine):
        return start
    order = np.argsort(device.segments.address[mine], kind="stable")
    base, size = device.segments.address[mine][order], device.segments.size[mine][order].astype(np.uint64)
    place = np.searchsorted(base, history.address[pieces], side="right").astype(np.int64) - 1
    at = np.maximum(place, 0)
    inside = (place >= 0) & (history.address[pieces] - base[at] < size[at])
    first = np.full(len(mine), NONE)
    # From the last to the first, so that the first stays.
    first[order[at[inside]][::-1]] = pieces[inside][::-1]
    return np.where((start == BEFORE) & (first != NONE), first, start)


def _events(device: Device, history: History) -> pa.Table:
    entries = np.flatnonzero(~np.isin(history.action, (ALLOC, FREE_REQUESTED, FREE_COMPLETED)) & (history.action >= 0))
    action = history.action[entries]
    segment = np.isin(action, (SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP))
    free = np.where(action == OOM, history.device_free[entries], NONE)
    return pa.table(
        {
            "device": _device(device, len(entries)),
            "time_ns": nullable(history.time_ns[entries]),
            "entry": entries,
            "kind": device.actions.of(action),
            "address": nullable_addresses(np.where(segment, history.address[entries], NO_ADDRESS).astype(np.uint64)),
            "bytes": nullable(history.size[entries]),
            "stream": nullable(history.stream[entries]),
            "device_free_bytes": nullable(free),
            "stack": _stack(history.stack[entries]),
        }
    )


def _totals(rows: DeviceRows, device: Device, history: History | None, lives: Lives, mine: Ints, own: Ints) -> pa.Table:
    segments, blocks = device.segments, device.blocks
    state = blocks.state[own]
    count = np.bincount(blocks.segment[own], minlength=len(segments))
    partly = (count[blocks.segment[own]] > 1) & (segments.expandable[blocks.segment[own]] != 1)
    requested = _requested_sums(segments, blocks, own)[mine]
    reserved = int(segments.size[mine].sum())
    total: dict[str, Any] = {
        "device": device.number,
        "allocated_bytes": int(blocks.size[own][state == _ALLOCATED].sum()),
        "reserved_bytes": reserved,
        "active_bytes": int(blocks.size[own][np.isin(state, (_ALLOCATED, _PENDING))].sum()),
        "requested_bytes": None if (requested == NONE).any() else int(requested.sum()),
        "inactive_split_bytes": int(blocks.size[own][(state == _INACTIVE) & partly].sum()),
        "entries": rows.entries,
        "max_split_bytes": max_split_bytes(device.settings),
        "settings": settings_text(device.settings),
    }
    if history:
        total |= _over_time(rows, history, lives, reserved)
    schema = pa.schema([field for field in TOTALS.schema if field.name != "rank"])
    return pa.Table.from_pylist([total], schema)


def _over_time(rows: DeviceRows, history: History, lives: Lives, reserved: int) -> dict[str, Any]:
    """What the history adds to the totals."""
    count = len(history)
    requested = filled(lives.requested)
    allocated_start, allocated = replay.levels(
        lives, lives.size, count, np.where(lives.given_up == NEVER, lives.end, lives.given_up)
    )
    allocated_peak, entry = replay.peak(allocated_start, allocated)
    active_peak, _ = replay.peak(*replay.levels(lives, lives.size, count, lives.end))
    requested_peak, _ = replay.peak(*replay.levels(lives, requested, count, lives.end))
    reserved_start, reserved_level = replay.reserved_levels(history, reserved)
    reserved_peak, _ = replay.peak(reserved_start, reserved_level)
    rows.born_before = int((lives.start == BEFORE).sum())
    rows.lost_beginning = rows.born_before > 0 or reserved_start > 0
    rows.below_zero = min(reserved_start, int(reserved_level.min())) < 0
    return {
        "allocated_start_bytes": allocated_start,
        "reserved_start_bytes": reserved_start,
        "allocated_peak_bytes": allocated_peak,
        "requested_peak_bytes": requested_peak,
        "active_peak_bytes": active_peak,
        "reserved_peak_bytes": reserved_peak,
        "peak_ns": None if entry == BEFORE or history.time_ns[entry] == NONE else int(history.time_ns[entry]),
        "peak_entry": None if entry == BEFORE else entry,
        "start_ns": rows.span[0] if rows.span else None,
        "end_ns": rows.span[1] if rows.span else None,
        "lost_beginning": rows.lost_beginning,
        "born_before": rows.born_before,
    }
