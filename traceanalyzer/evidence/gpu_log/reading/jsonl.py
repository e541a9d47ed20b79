"""Samples as JSON, a line each: what scripts around NVML write, with whatever keys, one GPU a line or all of them in a list."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log.reading.fields import bits_of, field_of
from traceanalyzer.evidence.gpu_log.reading.rows import Column, Ints, Notes, Samples, identities, measures_of, texts_of
from traceanalyzer.evidence.gpu_log.reading.times import NONE, times_of_numbers, times_of_texts
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.model.trace import Clock

TOOL = "NVML"
_CHUNK = 8 << 20
_LISTS = ("gpus", "devices", "gpu", "cards", "samples", "data")
_MOST_KEYS = 400
_WHO = ("gpu", "uuid", "bus", "model", "host")
_decoder = msgspec.json.Decoder(float_hook=float)
Row = dict[str, Any]


def sampled(row: Any) -> bool:
    """Whether a JSON object is a sample of a GPU: it has two measures or more, of which one is of no other device."""
    flat = list(_flat(row, 0)) if isinstance(row, dict) else []
    for one in flat[:1]:
        told = {found.what for key in list(one)[:_MOST_KEYS] if isinstance(key, str) and (found := field_of(key))}
        own = told & {"sm_clock", "utilization", "power", "reasons", "pcie_gen", "memory_utilization"}
        said = any(
            "gpu" in key.lower() or "sm_" in key.lower() or "cuda" in key.lower() or "nvidia" in key.lower()
            for key in one
        )
        return bool(len(told - {"time", *_WHO}) >= 2 and own and (said or told & {"reasons", "sm_clock", "uuid"}))
    return False


def is_jsonl(head: bytes) -> bool:
    """Whether the first line, or the first object of a list, is such a sample."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        text = text[1:].lstrip()
        end = _object_end(text)
        return end is not None and sampled(_decoded(text[:end]))
    if not text.startswith(b"{"):
        return False
    return sampled(_decoded(text.split(b"\n", 1)[0].strip()))


def _object_end(text: bytes) -> int | None:
    try:
        _, end = json.JSONDecoder().raw_decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return len(text.decode("utf-8", "replace")[:end].encode())


def _decoded(line: bytes) -> Any:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(line)  # which knows NaN and Infinity
    except (ValueError, RecursionError):
        return None


def read_jsonl(source: Source, content: bytes, notes: Notes) -> Iterator[Samples]:
    """Block by block. Raises InputError where no sample has a time."""
    text = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        whole = _decoded(text.strip())
        if not isinstance(whole, list):
            raise InputError(f"{source.path}: the list of samples is cut or damaged; write one sample a line")
        for at in range(0, len(whole), 50_000):
            yield from _samples(source, whole[at : at + 50_000], notes)
        return
    at = 0
    while at < len(text):
        end = text.rfind(b"\n", at, at + _CHUNK) + 1
        end = end if end > at else (text.find(b"\n", at) + 1 or len(text))
        yield from _samples(source, _rows(text[at:end], end == len(text), notes), notes)
        at = end


def _rows(block: bytes, last: bool, notes: Notes) -> list[Any]:
    try:
        return _decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    rows = []
    lines = block.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        row = _decoded(line)
        if isinstance(row, dict):
            rows.append(row)
        elif last and number == len(lines) - 1:
            notes.cut = True
        else:
            notes.bad_line(line[:80].decode("utf-8", "replace"))
    return rows


def _flat(row: Row, depth: int) -> Iterator[Row]:
    """The samples of one line: GPUs in a list, or each under a name of its own, have what stands beside them in common."""
    inner = [
        (key, value)
        for key, value in row.items()
        if isinstance(value, list) and value and isinstance(value[0], dict) and key.lower() in _LISTS
    ]
    if inner and depth < 2:
        key, gpus = inner[0]
        common = {name: value for name, value in row.items() if name != key}
        for number, gpu in enumerate(gpus):
            if isinstance(gpu, dict):
                yield from _flat({**common, "gpu": number, **gpu}, depth + 1)
        return
    named = [
        (key, value)
        for key, value in row.items()
        if isinstance(value, dict) and key.lower().startswith(("gpu", "cuda"))
    ]
    if named and depth < 2:
        common = {name: value for name, value in row.items() if not isinstance(value, dict)}
        for key, gpu in named:
            yield from _flat({**common, "gpu": key, **gpu}, depth + 1)
        return
    if any(isinstance(value, dict) for value in row.values()):
        flat: Row = {}
        for key, value in row.items():
            if isinstance(value, dict):
                flat |= {
                    f"{key}_{name}" if field_of(name) is None or field_of(f"{key}_{name}") else name: one
                    for name, one in value.items()
                    if isinstance(name, str)
                }
            else:
                flat[key] = value
        row = flat
    yield row


def _samples(source: Source, found: list[Any], notes: Notes) -> Iterator[Samples]:
    rows: list[Row] = []
    for row in found:
        if not isinstance(row, dict):
            notes.bad_line(str(row)[:80])
        elif any(isinstance(value, dict | list) for value in row.values()):
            rows += _flat(row, 0)
        else:
            rows.append(row)
    if not rows:
        return
    keys = list(dict.fromkeys(key for row in rows[:1000] + rows[-1000:] for key in row if isinstance(key, str)))[
        :_MOST_KEYS
    ]
    told = {key: field for key in keys if (field := field_of(key))}
    times = sorted((key for key in keys if key in told and told[key].what == "time"), key=lambda key: told[key].rank)
    if not times:
        raise InputError(
            f"{source.path}: its samples have no times, so that nothing can be told over time; write a timestamp with each"
        )
    time, clock = _times([row.get(times[0]) for row in rows])
    good = time != NONE
    if not good.all():
        notes.bad_line(str(rows[int(np.flatnonzero(~good)[0])])[:80], int((~good).sum()))
        rows, time = [row for row, ok in zip(rows, good.tolist(), strict=True) if ok], time[good]
    if not rows:
        return
    who = identities(
        {key: texts_of([row.get(key) for row in rows]) for key, field in told.items() if field.what in _WHO}
    )
    notes.unknown |= {key[:200] for key in keys if key not in told}
    columns = [
        _column(key, [row.get(key) for row in rows]) for key, field in told.items() if field.what not in ("time", *_WHO)
    ]
    yield Samples(TOOL, clock, time, who, measures_of(columns, notes))


def _times(values: list[Any]) -> tuple[Ints, Clock]:
    if any(isinstance(value, str) for value in values):
        return times_of_texts(
            pa.array(
                [None if value is None or isinstance(value, dict | list) else str(value) for value in values],
                pa.string(),
            )
        )
    return times_of_numbers(np.array([_number(value) for value in values]))


def _column(key: str, values: list[Any]) -> Column:
    """Values as numbers, or as texts where some are; a list of things counts them, and a list of reasons is these."""
    if any(isinstance(value, list) for value in values):
        values = [_of_list(value) for value in values]
    if any(isinstance(value, str) for value in values):
        return Column(key, texts_of(values))
    return Column(key, np.array([_number(value) for value in values]))


def _of_list(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if value and all(isinstance(one, str) for one in value):
        bits = bits_of(",".join(value))
        return len(value) if bits is None else bits
    return len(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0 if value is True else 0.0 if value is False else math.nan
    return float(value) if abs(value) < 1e30 else math.nan
