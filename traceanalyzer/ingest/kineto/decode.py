"""The fields of a Chrome trace event that we read, and decoding them with exact times."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

NS_PER_US = 1000
# Below this, a float64 of microseconds with three decimals is closer to the true value than to any other such value.
EXACT_FLOAT_US = 2.0**43

Number = int | float | str | None


class Args(msgspec.Struct, gc=False):
    """Event arguments by their names in the file. Numbers may come as strings; `Raw` values are kept as text."""

    device: Number = None
    context: Number = None
    stream: Number = None
    correlation: Number = None
    external_id: Number = msgspec.field(default=None, name="External id")
    external_id_old: Number = msgspec.field(default=None, name="external id")
    registers: Number = msgspec.field(default=None, name="registers per thread")
    shared_memory: Number = msgspec.field(default=None, name="shared memory")
    grid: list[int] | None = None
    block: list[int] | None = None
    occupancy: Number = msgspec.field(default=None, name="est. achieved occupancy %")
    bytes: Number = None
    graph_id: Number = msgspec.field(default=None, name="graph id")
    graph_node_id: Number = msgspec.field(default=None, name="graph node id")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    sequence_number: Number = msgspec.field(default=None, name="Sequence number")
    collective: str | None = msgspec.field(default=None, name="Collective name")
    elements_in: Number = msgspec.field(default=None, name="In msg nelems")
    elements_out: Number = msgspec.field(default=None, name="Out msg nelems")
    group_size: Number = msgspec.field(default=None, name="Group size")
    dtype: str | None = None
    group_name: str | None = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    collective_sequence: Number = msgspec.field(default=None, name="Seq")
    name: Any = None
    address: Number = msgspec.field(default=None, name="Addr")
    memory_bytes: Number = msgspec.field(default=None, name="Bytes")
    total_allocated: Number = msgspec.field(default=None, name="Total Allocated")
    total_reserved: Number = msgspec.field(default=None, name="Total Reserved")
    device_type: Number = msgspec.field(default=None, name="Device Type")
    device_id: Number = msgspec.field(default=None, name="Device Id")


class Event(msgspec.Struct, gc=False):
    """One event. `ts` and `dur` are microseconds; `ph`, `cat`, `pid`, `tid` as in the Trace Event format."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: Number = None
    tid: Number = None
    ts: float | None = None
    dur: float | None = None
    args: Args | None = None


class _Times(msgspec.Struct, gc=False):
    ts: Decimal | None = None
    dur: Decimal | None = None


_decoder = msgspec.json.Decoder(list[Event])
_times_decoder = msgspec.json.Decoder(list[_Times])
_loose_decoder = msgspec.json.Decoder(list[Any])

_NO_UTF8 = re.compile("[\udc80-\udcff]")

Times = npt.NDArray[np.int64]


class Events:
    """A chunk of events with their exact times in ns: `start` (0 where absent) and `duration` (0 where absent or negative).

    `misfits` counts events whose fields have types no reader can use; they are left out. `bad_bytes` counts bytes that are no
    UTF-8; each is read as a question mark.
    """

    def __init__(self, text: bytes) -> None:
        """Decode the JSON array `text`. Raises msgspec.DecodeError when it is not one."""
        self.misfits = self.bad_bytes = 0
        try:
            self.events, (self.start, self.duration) = self._decode(text)
        except RecursionError:
            raise msgspec.DecodeError("nested too deeply") from None
        self.timed = np.fromiter((e.ts is not None for e in self.events), bool, len(self.events))

    def _decode(self, text: bytes) -> tuple[list[Event], tuple[Times, Times]]:
        try:
            events = _decoder.decode(text)
        except msgspec.ValidationError:
            return self._loosely(text)
        except UnicodeDecodeError:
            if self.bad_bytes:
                raise
            text, self.bad_bytes = readable(text)
            return self._decode(text)
        return events, _exact(text, events)

    def _loosely(self, text: bytes) -> tuple[list[Event], tuple[Times, Times]]:
        """One event at a time, taking numbers from strings."""
        events: list[Event] = []
        times: list[_Times] = []
        text, bad = readable(text)
        self.bad_bytes += bad
        for item in _loose_decoder.decode(text):
            try:
                event = msgspec.convert(item, Event, strict=False)
                times.append(_Times(_decimal(item.get("ts")), _decimal(item.get("dur"))))
                events.append(event)
            except (msgspec.ValidationError, ArithmeticError, ValueError):
                self.misfits += 1
        return events, _decimal_times(times)


def readable(text: bytes) -> tuple[bytes, int]:
    """The text with a question mark for every byte that is no UTF-8, so of the same length, and how many there were."""
    plain, count = _NO_UTF8.subn("?", text.decode("utf-8", "surrogateescape"))
    return plain.encode(), count


def _decimal(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _exact(text: bytes, events: list[Event]) -> tuple[Times, Times]:
    start = np.fromiter((e.ts or 0.0 for e in events), np.float64, len(events))
    duration = np.fromiter((e.dur or 0.0 for e in events), np.float64, len(events))
    if len(events) and max(np.abs(start).max(), np.abs(duration).max()) >= EXACT_FLOAT_US:
        return _decimal_times(_times_decoder.decode(text))
    return (
        np.rint(start * NS_PER_US).astype(np.int64),
        np.maximum(np.rint(duration * NS_PER_US), 0).astype(np.int64),
    )


def _decimal_times(times: list[_Times]) -> tuple[Times, Times]:
    """Exact ns of values that a float64 cannot hold; what an int64 cannot hold either becomes its limit."""
    limit = Decimal(np.iinfo(np.int64).max // 4)

    def ns(value: Decimal | None) -> int:
        return 0 if value is None else int(max(min(value * NS_PER_US, limit), -limit).to_integral_value())

    start = np.fromiter((ns(t.ts) for t in times), np.int64, len(times))
    duration = np.fromiter((max(ns(t.dur), 0) for t in times), np.int64, len(times))
    return start, duration
