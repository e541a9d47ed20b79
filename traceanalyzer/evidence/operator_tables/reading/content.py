"""What a file is, told by how it begins: a text that holds a table of PyTorch's profiler, or the JSON of an execution trace."""

from __future__ import annotations

import re
from typing import Literal

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.source import HEAD_BYTES, Source

Form = Literal["averages", "nodes"]
_SEARCHED = 8 << 20
"""So far into a log a table is looked for."""
_BOM = b"\xef\xbb\xbf"
HEADER = re.compile(
    r"\bName {2,}(?:Overload Name {2,})?(?:Self (?:CPU|\w+)(?: total)?(?: %)?|CPU total(?: %)?) {2,}.*"
    r"(?:# of Calls|Number of Calls)"
)
"""The line of a table that names its columns, whichever of them were left out."""
_HEADER = re.compile(HEADER.pattern.encode())
_NODES = re.compile(rb'"schema"\s*:\s*"1\.\d+\.\d+(?:-chakra[\w.\-]*)?"')
_OBSERVER = b"[pytorch|profiler|execution_"


def form_of(source: Source) -> Form | None:
    """Which of both it is, for certain; None for neither."""
    head = source.head.removeprefix(_BOM)
    begin = head.lstrip()[:1]
    if begin == b"{":
        return "nodes" if _is_execution_trace(head) else None
    if begin == b"[" and head.lstrip()[1:2] in (b"{", b"[", b"]"):
        return None
    if b"\0" in head[:4096]:
        return None
    if _HEADER.search(head):
        return "averages"
    return "averages" if len(source.head) >= HEAD_BYTES and _holds_header(source) else None


def _is_execution_trace(head: bytes) -> bool:
    if b'"traceEvents"' in head or not _NODES.search(head[:4096]):
        return False
    return _OBSERVER in head or (b'"nodes"' in head[:4096] and b'"pid"' in head[:4096])


def _holds_header(source: Source) -> bool:
    """Whether a table comes later in a text."""
    before = b""
    read = 0
    try:
        with source.open() as stream:
            while read < _SEARCHED and (block := stream.read(1 << 20)):
                if b"\0" in block[:4096]:
                    return False
                if b"of Calls" in block and _HEADER.search(before + block):
                    return True
                before, read = block[-8192:], read + len(block)
    except InputError:
        return False
    return False
