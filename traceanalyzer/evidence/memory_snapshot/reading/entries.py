"""The recorded history of one GPU's allocator as columns, one row an entry, in the order of the ring."""

from __future__ import annotations

from collections.abc import Sequence
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
from traceanalyzer.records import dataclass

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
_OTHER_NAMES = {"free": FREE_COMPLETED}
_MOST_US = (1 << 62) // 1000
_BATCH = 1 << 12


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
    parts = [_part(trace[at : at + _BATCH], actions, stacks, wrong) for at in range(0, len(trace), _BATCH)]
    if not parts:
        parts = [_part([], actions, stacks, wrong)]
    return History(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def _part(trace: Sequence[dict[str, Any]], actions: Names, stacks: Stacks, wrong: Wrong) -> History:
    """The columns of so few entries that they stay in the processor's cache from one column to the next."""
    action = _actions(trace, actions, wrong)
    # Only the entry of an OOM has the number, instead of an address.
    ooms = np.flatnonzero(action == OOM)
    device_free = np.full(len(trace), NONE)
    device_free[ooms] = ints([trace[entry] for entry in ooms.tolist()], "device_free", wrong)
    return History(
        action=action,
        address=addresses(trace, "addr", wrong),
        size=ints(trace, "size", wrong),
        stream=ints(trace, "stream", wrong),
        time_ns=_times(trace, wrong),
        device_free=device_free,
        stack=stacks.numbers(values(trace, "frames")),
    )


def _actions(trace: Sequence[dict[str, Any]], actions: Names, wrong: Wrong) -> npt.NDArray[np.int32]:
    codes = actions.codes(values(trace, "action"), wrong)
    for other, number in _OTHER_NAMES.items():
        if other in actions:
            codes[codes == actions.code(other, wrong)] = number
    return codes


def _times(trace: Sequence[dict[str, Any]], wrong: Wrong) -> Ints:
    micro = ints(trace, "time_us", wrong)
    far = micro > _MOST_US
    wrong.count += int(far.sum())
    # Zero is not recorded: no allocator ran in 1970.
    return np.where((micro <= 0) | far, NONE, np.where(far, 0, micro) * 1000)
