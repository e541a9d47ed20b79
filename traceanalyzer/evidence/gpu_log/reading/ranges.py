"""The JSON that Prometheus answers a range query with (`/api/v1/query_range`): one list of moments and values a series."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log.reading.prometheus import Points, known, samples_of
from traceanalyzer.evidence.gpu_log.reading.rows import Floats, Notes, Samples
from traceanalyzer.evidence.gpu_log.reading.times import times_of_numbers
from traceanalyzer.ingest.bytes.source import Source

_START = re.compile(
    rb'\s*\{[^{}]{0,200}"data"\s*:\s*\{[^{}\[\]]{0,200}"result(?:Type"\s*:\s*"(?:matrix|vector)"|"\s*:\s*\[)', re.DOTALL
)
_NAMED = re.compile(rb'"__name__"\s*:\s*"([A-Za-z_:][\w:]*)"')


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: msgspec.Raw = msgspec.Raw(b"")
    value: msgspec.Raw = msgspec.Raw(b"")


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data


def is_range(head: bytes) -> bool:
    """Whether it is such an answer, of a metric of GPUs that is known."""
    if not _START.match(head.lstrip(b"\xef\xbb\xbf")):
        return False
    return any(known(found.decode()) for found in _NAMED.findall(head))


def read_range(source: Source, content: bytes, notes: Notes) -> Iterator[Samples]:
    """Raises InputError for an answer that is cut, or has no metric that is known."""
    try:
        answer = msgspec.json.decode(content.lstrip(b"\xef\xbb\xbf"), type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{source.path}: an answer of Prometheus that is cut or damaged ({error}); ask for it again"
        ) from error
    series, of, times, values = [], [], [], []
    for one in answer.data.result:
        name = one.metric.get("__name__", "")
        pairs = _pairs(bytes(one.values) or bytes(one.value))
        if not name:
            notes.said.append(
                "series without a name, as expressions give them, are left out: ask for the metric itself"
            )
            continue
        if pairs is None:
            notes.bad_line(f"values of {name}")
            continue
        series.append((name, {label: text for label, text in one.metric.items() if label != "__name__"}))
        of.append(np.full(len(pairs), len(series) - 1))
        times.append(pairs[:, 0])
        values.append(pairs[:, 1])
    if not series:
        raise InputError(f"{source.path}: an answer of Prometheus without any series; ask for another time")
    time, clock = times_of_numbers(np.concatenate(times))
    notes.said[:] = list(dict.fromkeys(notes.said))
    yield from samples_of(source, Points(series, np.concatenate(of), time, np.concatenate(values), clock), notes)


def _pairs(raw: bytes) -> Floats | None:
    """Moments and values as two columns; None for what are no such pairs."""
    plain = (
        raw.translate(None, b'[]" \n\r\t').replace(b"+Inf", b"inf").replace(b"-Inf", b"-inf").replace(b"NaN", b"nan")
    )
    if not plain:
        return np.zeros((0, 2))
    try:
        flat = np.array(plain.split(b","), dtype=np.float64)
    except ValueError:
        return None
    return flat.reshape(-1, 2) if len(flat) % 2 == 0 else None
