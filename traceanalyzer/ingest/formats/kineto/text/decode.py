"""The fields of a Chrome trace event that we read, and decoding them with exact times."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from traceanalyzer.ingest.formats.kineto.text.loose import LooseReader

NS_PER_US = 1000
# Below this, a float64 of microseconds with three decimals is closer to the true value than to any other such value.
EXACT_FLOAT_US = 2.0**43

# The ranks of a job of a hundred thousand take less.
MOST_PLAIN_BYTES = 1 << 20

Number = int | float | str | None


class Args(msgspec.Struct, gc=False, omit_defaults=True):
    """Event arguments by their names in the file. Numbers may come as strings; `Raw` values are kept as text.

    Those of operators and kernels come first, in the order in which PyTorch writes them: so they are found at once.
    """

    external_id: Number = msgspec.field(default=None, name="External id")
    sequence_number: Number = msgspec.field(default=None, name="Sequence number")
    record_function: Number = msgspec.field(default=None, name="Record function id")
    concrete_inputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Concrete Inputs")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    device: Number = None
    context: Number = None
    stream: Number = None
    correlation: Number = None
    registers: Number = msgspec.field(default=None, name="registers per thread")
    shared_memory: Number = msgspec.field(default=None, name="shared memory")
    grid: list[int] | None = None
    block: list[int] | None = None
    occupancy: Number = msgspec.field(default=None, name="est. achieved occupancy %")
    bytes: Number = None
    external_id_old: Number = msgspec.field(default=None, name="external id")
    graph_id: Number = msgspec.field(default=None, name="graph id")
    graph_node_id: Number = msgspec.field(default=None, name="graph node id")
    kernel_flop: Number = None
    kernel_num_gb: Number = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    elements_in: Number = msgspec.field(default=None, name="In msg nelems")
    elements_out: Number = msgspec.field(default=None, name="Out msg nelems")
    group_size: Number = msgspec.field(default=None, name="Group size")
    dtype: str | None = None
    group_name: str | None = msgspec.field(default=None, name="Process Group Name")
    group_ranks: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Process Group Ranks")
    group_description: str | None = msgspec.field(default=None, name="Process Group Description")
    collective_sequence: Number = msgspec.field(default=None, name="Seq")
    source_rank: Number = msgspec.field(default=None, name="Src Rank")
    target_rank: Number = msgspec.field(default=None, name="Dst Rank")
    first_rank: Number = msgspec.field(default=None, name="Global rank start")
    rank_stride: Number = msgspec.field(default=None, name="Global rank stride")
    rank: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Rank")
    name: msgspec.Raw = msgspec.Raw()
    labels: msgspec.Raw = msgspec.Raw()
    address: Number = msgspec.field(default=None, name="Addr")
    memory_bytes: Number = msgspec.field(default=None, name="Bytes")
    total_allocated: Number = msgspec.field(default=None, name="Total Allocated")
    total_reserved: Number = msgspec.field(default=None, name="Total Reserved")
    device_type: Number = msgspec.field(default=None, name="Device Type")
    device_id: Number = msgspec.field(default=None, name="Device Id")
    wait_on_stream: Number = None
    wait_on_record: Number = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


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


def plain(text: msgspec.Raw) -> Any:
    """The value of a `Raw` argument; None where it is absent, cannot be read, or is too long for what it should be."""
    try:
        return msgspec.json.decode(text) if 0 < len(text) <= MOST_PLAIN_BYTES else None
    except (msgspec.DecodeError, RecursionError):
        return None


class _Times(msgspec.Struct, gc=False):
    ts: Decimal | None = None
    dur: Decimal | None = None


_decoder = msgspec.json.Decoder(list[Event])
_times_decoder = msgspec.json.Decoder(list[_Times])
_raw_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_event_decoder = msgspec.json.Decoder(Event)
_loose_events, _loose_times = LooseReader(Event), LooseReader(_Times)

_LATEST = Decimal(np.iinfo(np.int64).max // 4)
# A time in scientific notation: its digits behind the point, and its exponent.
_SCIENTIFIC = re.compile(rb'"ts"\s*:\s*"?-?\d+(?:\.(\d*))?e\+(\d{1,3})\b')

Times = npt.NDArray[np.int64]
Microseconds = npt.NDArray[np.float64]


class Events:
    """A chunk of events with their exact times in ns: `start` (0 where absent) and `duration` (0 where absent or negative).

    `timed` says which have a start. `misfits` counts values of a type that no reader can use; they are read as absent. `negative`
    counts durations below zero, `quantised` starts written with fewer digits than microseconds need. `text` is a JSON array of the
    events, for what `extras` reads of some of them.
    """

    def __init__(self, text: bytes) -> None:
        """Decode the JSON array `text`. Raises msgspec.DecodeError when it is not one, or holds something other than objects."""
        self.text = text
        self.misfits = 0
        try:
            self.events = self._decode()
            start, self.timed = _numbers([e.ts for e in self.events])
            duration, _ = _numbers([e.dur for e in self.events])
            self.start, duration_ns = self._exact(start, duration)
        except RecursionError:
            raise msgspec.DecodeError("nested too deeply") from None
        self.negative = int((duration_ns < 0).sum())
        self.duration = np.maximum(duration_ns, 0)
        self.quantised = _quantised(text)

    def _decode(self) -> list[Event]:
        try:
            return _decoder.decode(self.text)
        except msgspec.ValidationError:
            return [self._event(raw) for raw in _raw_decoder.decode(self.text)]

    def _event(self, raw: msgspec.Raw) -> Event:
        try:
            return _event_decoder.decode(raw)
        except msgspec.ValidationError:
            event, unread = _loose_events.read(raw)
            self.misfits += unread
            return cast("Event", event)

    def _exact(self, start: Microseconds, duration: Microseconds) -> tuple[Times, Times]:
        """Both in ns; values that a float64 does not hold exactly are read again."""
        large = (np.abs(start) >= EXACT_FLOAT_US, np.abs(duration) >= EXACT_FLOAT_US)
        found = tuple(
            np.rint((np.where(again, 0.0, us) if again.any() else us) * NS_PER_US).astype(np.int64)
            for us, again in zip((start, duration), large, strict=True)
        )
        if large[0].any() or large[1].any():
            times = self._decimals()
            for row in np.flatnonzero(large[0]):
                found[0][row] = _ns(times[row].ts)
            for row in np.flatnonzero(large[1]):
                found[1][row] = _ns(times[row].dur)
        return found[0], found[1]

    def _decimals(self) -> list[_Times]:
        try:
            return _times_decoder.decode(self.text)
        except msgspec.ValidationError:
            return [_loose_times.read(raw)[0] for raw in _raw_decoder.decode(self.text)]


def _numbers(values: list[float | None]) -> tuple[Microseconds, npt.NDArray[np.bool_]]:
    """The numbers, 0 for None, and which of them are there."""
    # None gives NaN, and nothing else does: no number of JSON is one.
    found = np.fromiter(values, np.float64, len(values))
    absent = np.isnan(found)
    if absent.any():
        found[absent] = 0.0
    return found, ~absent


def _ns(value: Decimal | None) -> int:
    """Nearest ns; what an int64 cannot hold becomes its limit."""
    return 0 if value is None else int(max(min(value * NS_PER_US, _LATEST), -_LATEST).to_integral_value())


def _quantised(text: bytes) -> int:
    """How many starts have fewer digits than microseconds need."""
    # Plain searches first, the fastest before all: hardly a file holds a number like this.
    if b"+" not in text or b"e+" not in text:
        return 0
    return sum(len(digits) < int(exponent) for digits, exponent in _SCIENTIFIC.findall(text))
