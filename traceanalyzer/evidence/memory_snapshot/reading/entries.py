"""The recorded history of one GPU's allocator as columns, one row an entry, in the order of the ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.evidence.memory_snapshot.reading.columns import (
    NONE,
    Addresses,
    Ints,
    Names,
    Wrong,
    addresses,
    ints,
    values,
)
from traceanalyzer.evidence.memory_snapshot.reading.stacks import Stacks

ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, OOM = range(8)
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
)
"""Their places are the numbers above."""
_OTHER_NAMES = {"free": "free_completed"}
_MOST_US = (1 << 62) // 1000
_BATCH = 1 << 16


@dataclass(frozen=True)
class History:
    """Entries of one device. `action` is -1 for what has none; numbers from 8 on are names that are not known here."""

    action: npt.NDArray[np.int32]
    address: Addresses
    size: Ints
    stream: Ints
    time_ns: Ints
    device_free: Ints
    stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.action)

    def of(self, *actions: int) -> Ints:
        """The entries of these actions, in order."""
        return np.flatnonzero(np.isin(self.action, actions))


def history_of(trace: Sequence[dict[str, Any]], actions: Names, stacks: Stacks, wrong: Wrong) -> History:
    """The columns of one device's trace. The entries may be let go of afterwards, their stacks not before all are numbered."""
    # PyTorch calls the address of an OOM's entry what the driver had free: the entry holds `device_free` instead.
    return History(
        action=_joined([_actions(trace[at : at + _BATCH], actions, wrong) for at in range(0, len(trace), _BATCH)]),
        address=addresses(trace, "addr", wrong),
        size=ints(trace, "size", wrong),
        stream=ints(trace, "stream", wrong),
        time_ns=_times(trace, wrong),
        device_free=_if_any(trace, "device_free", wrong),
        stack=_joined(
            [stacks.numbers(values(trace[at : at + _BATCH], "frames")) for at in range(0, len(trace), _BATCH)]
        ),
    )


def _actions(trace: Sequence[dict[str, Any]], actions: Names, wrong: Wrong) -> npt.NDArray[np.int32]:
    found = values(trace, "action")
    return actions.codes([_OTHER_NAMES.get(one, one) if type(one) is str else one for one in found], wrong)


def _times(trace: Sequence[dict[str, Any]], wrong: Wrong) -> Ints:
    micro = ints(trace, "time_us", wrong)
    far = micro > _MOST_US
    wrong.count += int(far.sum())
    # Zero is not recorded: no allocator ran in 1970.
    return np.where((micro <= 0) | far, NONE, np.where(far, 0, micro) * 1000)


def _if_any(trace: Sequence[dict[str, Any]], key: str, wrong: Wrong) -> Ints:
    """A column that few entries have."""
    rows = [row if key in row else {} for row in trace]
    return ints(rows, key, wrong) if any(rows) else np.full(len(trace), NONE)


def _joined(parts: list[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
