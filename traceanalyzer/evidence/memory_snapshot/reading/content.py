"""What a snapshot file holds, as plain data of a known outline: told by its head, read from a pickle or from JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.pickles import Budget, is_pickle, unpickled
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.records import dataclass

MOST_DEVICES = 1024
"""GPUs of one process; no host has as many."""
_SPACES = b" \t\r\n\xef\xbb\xbf"
_IN_JSON = re.compile(rb'\{\s*"(?:segments|device_traces)"\s*:|\[\s*\{\s*"(?:device|address)"\s*:')
_SEGMENT = (b"total_size", b"blocks")
_TRACES = b"device_traces"


@dataclass
class Content:
    """The parts of a snapshot. `segments` and the traces of each device hold dictionaries of anything; `device` is a list's place."""

    segments: list[dict[str, Any]]
    traces: list[list[dict[str, Any]]]
    annotations: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    recorded: bool = True
    strange: int = 0
    budget: Budget = field(default_factory=lambda: Budget(0))


def is_snapshot(source: Source) -> bool:
    """Whether the head is that of a snapshot: a pickle or JSON with its keys, and with no other format's."""
    head = source.head
    if is_pickle(head):
        return _named(head, b"segments") and (_named(head, _TRACES) or all(_named(head, key) for key in _SEGMENT))
    text = head.lstrip(_SPACES)
    if not _IN_JSON.match(text):
        return False
    return b'"%b"' % _TRACES in text or all(b'"%b"' % key in text for key in _SEGMENT)


def _named(head: bytes, key: bytes) -> bool:
    """Whether a string is pickled in the head, in the short form or the long one."""
    return bytes((0x8C, len(key))) + key in head or b"X" + len(key).to_bytes(4, "little") + key in head


def content_of(source: Source, progress: Callable[[int], None]) -> Content:
    """Read it all. Raises InputError for what is damaged or no snapshot."""
    data, size = unpickled(source, progress) if is_pickle(source.head) else _from_json(source, progress)
    if isinstance(data, list):
        data = {"segments": data}
    if not isinstance(data, dict) or not isinstance(data.get("segments"), list):
        raise InputError(f"{source.path}: no memory snapshot of PyTorch: it has no list of segments")
    content = Content([], [], budget=Budget(size))
    try:
        _fill(content, data)
    except OverflowError as error:
        raise InputError(f"{source.path}: {error}; this is no memory snapshot as PyTorch writes it") from error
    if len(content.traces) > MOST_DEVICES:
        raise InputError(f"{source.path}: a history of {len(content.traces):,} GPUs, more than any process has")
    return content


def _fill(content: Content, data: dict[Any, Any]) -> None:
    content.segments = _dicts(content, data["segments"])
    traces = data.get("device_traces")
    content.recorded = isinstance(traces, list)
    if isinstance(traces, list):
        content.budget.spend(traces)
        if len(traces) <= MOST_DEVICES:
            content.traces = [_dicts(content, trace) for trace in traces]
        else:
            content.traces = [[]] * len(traces)
    content.annotations = _dicts(content, data.get("external_annotations", []))
    settings = data.get("allocator_settings")
    content.settings = settings if isinstance(settings, dict) else {}


def _dicts(content: Content, found: Any) -> list[dict[str, Any]]:
    """The dictionaries of a list, in order; what else there is counts as strange."""
    if not isinstance(found, list):
        content.strange += found is not None
        return []
    content.budget.spend(found)
    if set(map(type, found)) <= {dict}:
        return found
    kept = [one for one in found if type(one) is dict]
    content.strange += len(found) - len(kept)
    return kept


def blocks_of(content: Content, segment: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a segment, by address as the allocator lists them."""
    return _dicts(content, segment.get("blocks"))


def _from_json(source: Source, progress: Callable[[int], None]) -> tuple[Any, int]:
    with source.open(progress) as stream:
        parts = []
        while block := stream.read(1 << 20):
            parts.append(block)
        text = b"".join(parts)
        parts.clear()
        if stream.damage:
            raise InputError(f"{source.path}: {stream.damage}")
    try:
        with without_collection():
            return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf")), len(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source.path}: damaged JSON of a memory snapshot; copy or dump it again") from error
