"""The object around the event array: what it says, however damaged, and whether something follows its end.

It may hold anything, and much of it. Only the members that are read become objects.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.opening import EVENTS_KEY, TRAILING
from traceanalyzer.ingest.formats.kineto.text.repair import EVENT_START, Mended, mend
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter
from traceanalyzer.vocabulary.health import NOT_ALL_READ
from traceanalyzer.vocabulary.levels import INFO, LOW, MEDIUM

# The members that are read; they are sought one by one when the object cannot be read as a whole.
FACTS = (
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "cupti_version",
    "roctracer_version",
    "rocprofiler_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "hip_runtime_version",
    "hip_driver_version",
    "traceName",
)
_EVENTS = "traceEvents"
# What is read of the description of a job; its groups may list all ranks, many times over.
_OF_THE_JOB = ("rank", "world_size", "backend", "nccl_version")
# Some thousand GPUs take less.
_MOST_FACT_BYTES = 4 << 20
_FILLER = b" \t\r\n\0,"

_value = msgspec.json.Decoder(msgspec.Raw)


def _reading(*names: str) -> msgspec.json.Decoder[msgspec.Struct]:
    """A decoder of objects that reads these members, as text, and passes over all others."""
    fields = [(name, msgspec.Raw, msgspec.Raw()) for name in names]
    return msgspec.json.Decoder(msgspec.defstruct("Members", fields))


_object, _job = _reading(_EVENTS, *FACTS), _reading(*_OF_THE_JOB)


def read_surroundings(splitter: Splitter[Events], sink: Sink) -> dict[str, Any]:
    """The members that are read. What cannot be read of them, and what follows the object, is said in health."""
    if splitter.layout in ("list", "lines"):
        _say_what_follows(splitter.trailer, sink)
        return {}
    before = splitter.header + b'"traceEvents":[]'
    text = before + (b"}" if splitter.truncated else splitter.trailer)
    members, end = _members(text, sink)
    if bytes(members.pop(_EVENTS, msgspec.Raw())).strip() not in (b"", b"[]"):
        sink.health(NOT_ALL_READ, MEDIUM, "a second event array follows the first; it was not read")
    if end is None:
        # Where the object ends nobody knows; only events behind it are worth a word.
        following = EVENT_START.search(text, len(before))
        end = following.start() if following else len(text)
    _say_what_follows(text[end:], sink)
    return _values(members, sink)


def _members(text: bytes, sink: Sink) -> tuple[dict[str, msgspec.Raw], int | None]:
    """The members of the object at the start of `text`, and where it ends, None if that cannot be told."""
    is_object = text.startswith(b"{")
    if is_object and (end := _end(text)):
        return _present(_object, memoryview(text)[:end]), end
    mended = mend(text, 0, len(text), more=False, event=False) if is_object else None
    if isinstance(mended, Mended) and _end(mended.text):
        example = ", ".join(repair.value for repair in mended.repairs)
        sink.health(NOT_ALL_READ, INFO, "the metadata around the events was no valid JSON and was mended", 1, example)
        return _present(_object, mended.text), mended.end
    found = {name: value for name in FACTS if (value := _fact(text, name))}
    sink.health(
        NOT_ALL_READ,
        LOW,
        "the metadata around the events is not valid JSON; of it only single facts were read",
        1,
        f"read: {', '.join(found) or 'none'}",
    )
    return found, None


def _present(
    decoder: msgspec.json.Decoder[msgspec.Struct], text: bytes | memoryview | msgspec.Raw
) -> dict[str, msgspec.Raw]:
    return {name: value for name, value in msgspec.structs.asdict(decoder.decode(text)).items() if value}


def _end(text: bytes, start: int = 0) -> int:
    """Where the JSON value at `start` ends, 0 when there is none."""
    try:
        _value.decode(memoryview(text)[start:])
    except msgspec.DecodeError as error:
        found = TRAILING.search(str(error))
        return start + int(found[1]) - 1 if found else 0
    except RecursionError:
        return 0
    return len(text)


def _fact(text: bytes, name: str) -> msgspec.Raw | None:
    """The value of one member, mended if need be."""
    found = re.search(rb'"%b"\s*:\s*' % name.encode(), text)
    if not found:
        return None
    if end := _end(text, found.end()):
        return msgspec.Raw(text[found.end() : end].strip())
    if text[found.end() : found.end() + 1] in (b"{", b"["):
        mended = mend(text, found.end(), len(text), more=False, event=False)
        if isinstance(mended, Mended) and _end(mended.text):
            return msgspec.Raw(mended.text)
    return None


def _values(members: dict[str, msgspec.Raw], sink: Sink) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, raw in members.items():
        try:
            if name == "distributedInfo":
                values[name] = {key: _decoded(value) for key, value in _present(_job, raw).items()}
            else:
                values[name] = _decoded(raw)
        except (msgspec.DecodeError, RecursionError):
            sink.health(NOT_ALL_READ, INFO, "members of the metadata that cannot be read were left out", 1, name)
    return values


def _decoded(raw: msgspec.Raw) -> Any:
    if len(raw) > _MOST_FACT_BYTES:
        raise msgspec.DecodeError("too long")
    return msgspec.json.decode(raw)


def _say_what_follows(text: bytes, sink: Sink) -> None:
    text = text.strip(_FILLER)
    if not text:
        return
    example = text[:200].decode("utf-8", "replace")
    if EVENT_START.search(text) or EVENTS_KEY.search(text):
        message = "more events follow the end of the trace (a second trace, or the rest of an older, longer file); they were not read"
        sink.health(NOT_ALL_READ, MEDIUM, message, 1, example)
    else:
        sink.health(NOT_ALL_READ, LOW, "text after the end of the trace was not read", 1, example)
