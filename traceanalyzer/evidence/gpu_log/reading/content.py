"""How a log is written, told from its start; and all of its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from traceanalyzer.evidence.gpu_log.reading.dmon import is_dmon, read_dmon
from traceanalyzer.evidence.gpu_log.reading.jsonl import is_jsonl, read_jsonl
from traceanalyzer.evidence.gpu_log.reading.prometheus import is_text, read_text
from traceanalyzer.evidence.gpu_log.reading.ranges import is_range, read_range
from traceanalyzer.evidence.gpu_log.reading.rows import Notes, Samples
from traceanalyzer.evidence.gpu_log.reading.smi import header_of, is_bare, read_smi
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.records import dataclass

Read = Callable[[Source, bytes, Notes], Iterator[Samples]]


@dataclass(frozen=True)
class Writing:
    """One way to write such a log: whether it begins so, and what reads it (None for one that cannot be read)."""

    knows: Callable[[bytes], bool]
    read: Read | None


def _has_header(head: bytes) -> bool:
    return header_of(head.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0]) is not None


WRITINGS = (
    Writing(is_dmon, read_dmon),
    Writing(is_range, read_range),
    Writing(is_jsonl, read_jsonl),
    Writing(is_text, read_text),
    Writing(_has_header, read_smi),
    Writing(is_bare, None),
)


def writing_of(head: bytes) -> Writing | None:
    """How a file is written that begins so; None for one that is no such log."""
    return next((one for one in WRITINGS if one.knows(head)), None)
