"""What the allocator held at the snapshot: its segments, and the blocks in each, as columns."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.evidence.memory_snapshot.reading.columns import (
    NO_ADDRESS,
    NONE,
    Addresses,
    Ints,
    Names,
    Wrong,
    addresses,
    filled,
    ints,
    values,
)
from traceanalyzer.evidence.memory_snapshot.reading.content import Content, blocks_of
from traceanalyzer.evidence.memory_snapshot.reading.stacks import Stacks
from traceanalyzer.evidence.memory_snapshot.tables import ALLOCATED, PENDING
from traceanalyzer.records import dataclass

INACTIVE = "inactive"
STATES = (ALLOCATED, PENDING, INACTIVE)
_OTHER_NAMES = {"active_awaiting_free": PENDING}
_MOST_DEVICE = (1 << 31) - 1
_OWN_POOL = (0, 0)


@dataclass(frozen=True)
class Segments:
    """Segments held, all devices. `pool` and `kind` are numbers of names, -1 for none; `expandable` is 0, 1 or -1."""

    device: Ints
    address: Addresses
    size: Ints
    stream: Ints
    kind: npt.NDArray[np.int32]
    pool: npt.NDArray[np.int32]
    expandable: npt.NDArray[np.int8]
    stack: npt.NDArray[np.int32]
    said: dict[str, Ints]
    """allocated_size, active_size and requested_size as the snapshot states them."""

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True)
class Blocks:
    """Blocks of these segments, free ones too. `state` is a place in STATES, -1 for another; `segment` a row of Segments."""

    address: Addresses
    size: Ints
    requested: Ints
    state: npt.NDArray[np.int32]
    segment: Ints
    stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.address)


def segments_of(content: Content, kinds: Names, pools: Names, stacks: Stacks, wrong: Wrong) -> Segments:
    """The segments; those without a device, an address or a size are dropped from `content`, and counted as wrong."""
    kept = [one for one in content.segments if _is_whole(one)]
    wrong.count += len(content.segments) - len(kept)
    content.segments = kept
    return Segments(
        device=filled(ints(kept, "device", wrong)),
        address=addresses(kept, "address", wrong),
        size=ints(kept, "total_size", wrong),
        stream=ints(kept, "stream", wrong),
        kind=kinds.codes(values(kept, "segment_type"), wrong),
        pool=np.array([_pool(one.get("segment_pool_id"), pools, wrong) for one in kept], np.int32),
        expandable=np.array([_flag(one.get("is_expandable")) for one in kept], np.int8),
        stack=stacks.numbers(values(kept, "frames")),
        said={key: ints(kept, key, wrong) for key in ("allocated_size", "active_size", "requested_size")},
    )


def blocks_held(content: Content, segments: Segments, stacks: Stacks, wrong: Wrong) -> Blocks:
    """The blocks of `segments`, which are those of `content`, in their order."""
    lists = [blocks_of(content, one) for one in content.segments]
    rows = list(chain.from_iterable(lists))
    segment = np.repeat(np.arange(len(lists)), np.array([len(one) for one in lists], np.int64))
    size = ints(rows, "size", wrong)
    histories = [_oldest(row) if "frames" not in row and "history" in row else None for row in rows]
    address = addresses(rows, "address", wrong)
    if (address == NO_ADDRESS).any():
        # PyTorch 2.0 gives no addresses: blocks follow each other from the start of their segment.
        address = np.where(address == NO_ADDRESS, _following(segments, segment, filled(size)), address)
    requested = ints(rows, "requested_size", wrong)
    if any(histories):
        requested = np.where(requested == NONE, ints([one or {} for one in histories], "real_size", wrong), requested)
    states = Names(STATES)
    codes = states.codes(
        [_OTHER_NAMES.get(one, one) if type(one) is str else one for one in values(rows, "state")], wrong
    )
    return Blocks(
        address=address,
        size=filled(size),
        requested=requested,
        state=np.where(codes < len(STATES), codes, -1).astype(np.int32),
        segment=segment,
        stack=stacks.numbers(
            [one.get("frames") if one else row.get("frames") for row, one in zip(rows, histories, strict=True)]
        ),
    )


def _is_whole(segment: dict[str, Any]) -> bool:
    device, address, size = segment.get("device"), segment.get("address"), segment.get("total_size")
    return (
        type(device) is int
        and 0 <= device <= _MOST_DEVICE
        and type(address) is int
        and 0 <= address < NO_ADDRESS
        and type(size) is int
        and 0 <= size <= NO_ADDRESS // 4
    )


def _pool(found: Any, pools: Names, wrong: Wrong) -> int:
    """The number of a private pool's name; -1 for the allocator's own."""
    if found is None:
        return -1
    if type(found) not in (tuple, list) or len(found) != 2 or not all(type(part) is int for part in found):
        wrong.count += 1
        return -1
    return -1 if tuple(found) == _OWN_POOL else pools.code(f"{found[0]}:{found[1]}", wrong)


def _flag(found: Any) -> int:
    return int(found) if type(found) is bool else -1


def _oldest(row: dict[str, Any]) -> dict[str, Any] | None:
    """What PyTorch 2.0 keeps of a block: a history whose first entry is its own allocation."""
    history = row["history"]
    return history[0] if type(history) is list and history and type(history[0]) is dict else None


def _following(segments: Segments, segment: Ints, size: Ints) -> Addresses:
    """Addresses of blocks that follow each other."""
    before = np.cumsum(size) - size
    first = np.zeros(len(segments), np.int64)
    numbers, at = np.unique(segment, return_index=True)
    first[numbers] = before[at]
    return segments.address[segment] + (before - first[segment]).astype(np.uint64)
