"""What blocks took that are gone by the time of the snapshot: what was asked for, rounded up, and what was not worth cutting off.

The rules are those of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp: round_size, should_split). A free block is cut to size
unless what remains of it is small; then all of it is handed out. How far a free block reached is told by who lived behind it just then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.evidence.memory_snapshot.reading.columns import Addresses, Ints, filled
from traceanalyzer.evidence.memory_snapshot.reading.replay import NEVER, Lives
from traceanalyzer.records import dataclass

SMALLEST = 512
"""kMinBlockSize: sizes are multiples of it, in bytes."""
SMALL_REQUEST = 1 << 20
"""kSmallSize, in bytes: what is larger comes from large segments, of which no less than this is cut off."""
_LAST = np.iinfo(np.int64).max
_MOST_NEIGHBOURS = 256
"""Addresses behind a block that are looked at; a step of training uses few."""


@dataclass(frozen=True)
class Spans:
    """Segments that are not expandable, in the order of their addresses and then of time: places in the history as of `Lives`."""

    address: Addresses
    size: Ints
    start: Ints
    end: Ints


def rounded(requested: Ints, settings: dict[str, Any]) -> Ints:
    """What the allocator takes for a request, in bytes, where a block of that size can be cut off."""
    sizes = np.maximum(-(-requested // SMALLEST) * SMALLEST, SMALLEST)
    divisions = settings.get("roundup_power2_divisions")
    if not isinstance(divisions, dict):
        return sizes
    for name, parts in divisions.items():
        if type(name) is not str or not name.isascii() or not name.isdigit() or len(name) > 5:
            continue
        if type(parts) is not int or not 1 < parts <= 1 << 20:
            continue
        # One entry for each power of two of MiB; the first also stands for less, the last for more.
        least = int(name) << 20
        low = 0 if int(name) == 1 else least
        high = _LAST if int(name) == 1 << 15 else 2 * least
        within = (requested >= low) & (requested < high) & (requested > SMALLEST * parts)
        sizes[within] = _parted(requested[within], parts)
    return sizes


def _parted(requested: Ints, parts: int) -> Ints:
    """Rounded up to the next of `parts` equal steps between two powers of two."""
    # As c10::llvm's PowerOf2Floor does; frexp is exact below 2^53.
    power = np.int64(1) << (np.frexp(requested.astype(np.float64))[1].astype(np.int64) - 1)
    step = np.maximum(power // parts, 1)
    return np.where(requested == power, requested, -(-requested // step) * step)


def taken(lives: Lives, spans: Spans, settings: dict[str, Any], max_split: int | None) -> Ints:
    """What each life took, in bytes; the rounded size where the segment, or who lived behind it, is not known."""
    sizes = rounded(filled(lives.requested), settings)
    known = np.flatnonzero((sizes > SMALL_REQUEST) & (lives.start >= 0))
    if not len(known) or not len(spans.address):
        return sizes
    places, at = np.unique(spans.address, return_inverse=True)
    near = np.searchsorted(places, lives.address[known], side="right") - 1
    known, near = known[near >= 0], near[near >= 0]
    row = _lasting(at, spans.start, spans.end, near, lives.start[known])
    known, row = known[row >= 0], row[row >= 0]
    offset = (lives.address[known] - spans.address[row]).astype(np.int64)
    room = spans.size[row] - offset
    inside = (offset >= 0) & (room >= sizes[known])
    known, room = known[inside], room[inside]
    never_cut = np.zeros(len(known), np.bool_) if max_split is None else sizes[known] >= max_split
    most = np.where(never_cut, room, np.minimum(room, sizes[known] + SMALL_REQUEST))
    reach = _reach(lives, known, sizes[known], most, room)
    left = reach - sizes[known]
    whole = (left > 0) & (never_cut | (left <= SMALL_REQUEST))
    sizes[known[whole]] = reach[whole]
    return sizes


def _reach(lives: Lives, known: Ints, least: Ints, most: Ints, room: Ints) -> Ints:
    """Bytes from the start of each life to the next that lasted when it began, or to its segment's end.

    Only as far as `most`: what lies beyond is said as `room`, which is more.
    """
    order = np.lexsort((lives.start, lives.address))
    places, at = np.unique(lives.address[order], return_inverse=True)
    start, end = lives.start[order], lives.end[order]
    own = lives.address[known]
    reach = room.copy()
    behind = np.searchsorted(places, own + least.astype(np.uint64))
    open_rows = np.arange(len(known))
    for _ in range(_MOST_NEIGHBOURS):
        behind, open_rows = behind[behind < len(places)], open_rows[behind < len(places)]
        distance = (places[behind] - own[open_rows]).astype(np.int64)
        near = distance < np.where(most[open_rows] == room[open_rows], room[open_rows], most[open_rows] + 1)
        behind, open_rows, distance = behind[near], open_rows[near], distance[near]
        if not len(open_rows):
            return reach
        lasts = _lasting(at, start, end, behind, lives.start[known[open_rows]]) >= 0
        reach[open_rows[lasts]] = distance[lasts]
        behind, open_rows = behind[~lasts] + 1, open_rows[~lasts]
    # Not looked at to the end: as if it had been cut.
    reach[open_rows] = least[open_rows]
    return reach


def _lasting(at: npt.NDArray[Any], start: Ints, end: Ints, wanted: npt.NDArray[Any], entry: Ints) -> Ints:
    """The row, of those sorted by place `at` and then by start, that lasts at place `wanted` when `entry` comes; -1 for none."""
    width = np.int64(max(start.max(initial=0), entry.max(initial=0)) + 3)
    keys = at.astype(np.int64) * width + (start + 1)
    row = np.searchsorted(keys, wanted.astype(np.int64) * width + (entry + 1)) - 1
    safe = np.maximum(row, 0)
    lasts = (row >= 0) & (at[safe] == wanted) & ((end[safe] == NEVER) | (end[safe] > entry))
    return np.where(lasts, row, -1)
