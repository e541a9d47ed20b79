"""The JSON of an execution trace as nodes, of every version of its schema, and as much of a damaged one as is whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice, pairwise
from typing import Any

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.records import dataclass

Number = int | float | str | None
NO_RAW = msgspec.Raw()


class Values(msgspec.Struct, gc=False):
    """Inputs of a node from schema 1.0.2 on."""

    values: msgspec.Raw = NO_RAW
    shapes: msgspec.Raw = NO_RAW
    types: msgspec.Raw = NO_RAW


class Attribute(msgspec.Struct, gc=False):
    name: str = ""
    value: Number | bool | list[Any] = None


class Node(msgspec.Struct, gc=False):
    """A node: what stands in it up to schema 1.0.1, and what later ones have in `inputs` and `attrs`."""

    id: Number = None
    name: str = ""
    parent: Number = None
    ctrl_deps: Number = None
    rf_id: Number = None
    scope: Number = None
    tid: Number = None
    inputs: Values | list[Any] | None = None
    input_shapes: msgspec.Raw = NO_RAW
    input_types: msgspec.Raw = NO_RAW
    attrs: list[Attribute] | None = None
    exclusive_dur: Number = None


class _Document(msgspec.Struct):
    schema: str = ""
    pid: Number = None
    nodes: list[Node] = []
    finish_ts: Number = None


class _Head(msgspec.Struct):
    schema: str = ""
    pid: Number = None


@dataclass
class Nodes:
    """What was read. `lost` nodes could not be, `mended` numbers were no JSON, `cut` says that the end is missing, `more` that another
    execution trace follows, whose ids are others'."""

    schema: str
    pid: int | None
    nodes: list[Node] = field(default_factory=list)
    lost: int = 0
    mended: int = 0
    cut: bool = False
    more: bool = False


_document = msgspec.json.Decoder(_Document, strict=False)
_node = msgspec.json.Decoder(Node, strict=False)
_BARE = re.compile(rb"(?<=[\[,:])(\s*)(?:-?(?:nan|NaN|inf|Infinity)|N/A)(?=\s*[\],}])")
# Attributes of a node have a name and a type; a node has a name and an id, in either order.
_STARTS = re.compile(rb'\{\s*(?:"id"\s*:\s*\d+\s*,\s*"name"|"name"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"id")\s*:')
_BEGIN = re.compile(rb'\{\s*"schema"\s*:\s*"1\.')
_SCHEMA = re.compile(rb'"schema"\s*:\s*"([^"]{1,64})"')
_PID = re.compile(rb'"pid"\s*:\s*"?(\d{1,18})')


def nodes_of(source: Source, progress: Callable[[int], None]) -> Nodes:
    """Read them all. Raises InputError for a file without any."""
    with source.open(progress) as stream:
        parts = []
        while block := stream.read(1 << 20):
            parts.append(block)
        text = b"".join(parts).removeprefix(b"\xef\xbb\xbf")
        parts.clear()
        damaged = bool(stream.damage)
    with without_collection():
        found = _whole(text) or _pieces(text)
    found.cut = found.cut or damaged
    if not found.nodes:
        raise InputError(f"{source.path}: an execution trace without a node; record it again")
    return found


def _whole(text: bytes) -> Nodes | None:
    for mended, content in _attempts(text):
        try:
            document = _document.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        return Nodes(document.schema, _pid(document.pid), document.nodes, mended=mended)
    return None


def _attempts(text: bytes) -> Iterator[tuple[int, bytes]]:
    yield 0, text
    # Before PyTorch 2.2 numbers that are not finite were written bare.
    mended, count = _BARE.subn(rb"\1null", text)
    if count:
        yield count, mended


def _pieces(text: bytes) -> Nodes:
    """Node by node: those that are damaged are lost, and what follows is not."""
    text, mended = _BARE.subn(rb"\1null", text)
    another = next(islice(_BEGIN.finditer(text), 1, None), None)
    text = text[: another.start()] if another else text
    schema, pid = _SCHEMA.search(text[:4096]), _PID.search(text[:4096])
    found = Nodes(schema[1].decode("utf-8", "replace") if schema else "", int(pid[1]) if pid else None, mended=mended)
    starts = [one.start() for one in _STARTS.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        node = _one(text[start:end])
        if node is None:
            found.lost += 1
        else:
            found.nodes.append(node)
    found.more = another is not None
    found.cut = re.search(rb"\]\s*,?\s*(?:\"finish_ts\"[^}]*)?\}\s*$", text[-256:]) is None
    return found


def _one(text: bytes) -> Node | None:
    end = text.rfind(b"}")
    while end > 0:
        try:
            return _node.decode(text[: end + 1])
        except msgspec.ValidationError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The last node is followed by the end of the document.
            if b"]" not in text[end - 64 : end]:
                return None
            end = text.rfind(b"}", 0, end)
    return None


def _pid(value: Number) -> int | None:
    try:
        number = int(value) if value is not None else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and 0 <= number < 1 << 62 else None
