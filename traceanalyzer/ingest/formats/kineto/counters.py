"""Counter events: one sampled value for every number among the arguments of each."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto.extras import Extra
from traceanalyzer.ingest.formats.kineto.notes import Notes
from traceanalyzer.ingest.formats.kineto.text.decode import Event, Times

_DEVICE_KEYS = ("device", "Device Id", "device_id", "gpu")
_UNIT_KEYS = ("unit", "units")
# Kineto's hardware counters lie in processes of such names.
_GPU_PROCESS = re.compile(r"GPU (\d+)\b")
# Reads what no float64 holds as infinite, where msgspec would fail.
_args_decoder = msgspec.json.Decoder(float_hook=float)
_UNIT = re.compile(r"[(\[]([A-Za-z%µ°/]{1,12})[)\]](?:$|\.)")


class Counters:
    """Turns counter events into rows of `counters`."""

    def __init__(self, sink: Sink, ids: col.Integers, notes: Notes) -> None:
        self._sink, self._ids, self._notes = sink, ids, notes

    def take(self, events: list[Event], time: Times, extra: list[Extra]) -> None:
        row: list[int] = []
        metrics: list[str] = []
        units: list[str | None] = []
        values: list[float] = []
        devices: list[Any] = []
        for index, (event, more) in enumerate(zip(events, extra, strict=True)):
            series, device, unit = _series(event, more)
            if not series:
                self._notes.unread([event], "without a value")
            for metric, value in series:
                row.append(index)
                metrics.append(metric)
                units.append(unit or _unit(metric))
                values.append(value)
                devices.append(device)
        if not row:
            return
        process = [None if _on_gpu(events[r]) else events[r].pid for r in row]
        data = {
            "time_ns": pa.array(time[row]),
            "process": self._ids.identities(process),
            "device": self._ids.column(devices, col.INT32),
            "metric": col.texts(metrics),
            "unit": col.texts(units),
            "value": pa.array(values, pa.float64()),
        }
        self._sink.add("counters", pa.table(data))


def _series(event: Event, extra: Extra) -> tuple[list[tuple[str, float]], Any, str | None]:
    """(metric, value) of each number of one event, the device it names and its unit."""
    args = _args_decoder.decode(extra.args) if extra.args else None
    if not isinstance(args, dict):
        return [], None, None
    device: Any = _on_gpu(event)
    for key in _DEVICE_KEYS:
        device = args.pop(key, device)
    units = [args.pop(key, None) for key in _UNIT_KEYS]
    name = event.name or ""
    found = [(name if key in ("value", "", name) else f"{name}.{key}", _number(value)) for key, value in args.items()]
    unit = next((u for u in units if isinstance(u, str)), None)
    return [(metric, value) for metric, value in found if value is not None], _plain(device), unit


def _on_gpu(event: Event) -> str | None:
    found = _GPU_PROCESS.match(event.pid) if isinstance(event.pid, str) else None
    return found[1] if found else None


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _unit(metric: str) -> str | None:
    found = _UNIT.search(metric)
    return found[1] if found else None
