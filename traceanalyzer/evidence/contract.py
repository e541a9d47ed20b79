"""What a kind of evidence is: how it is told from other files, what it is read into, whose it is, and what it adds to the report.

A kind imports `model`, the contract of `ingest`, `result`, and never another kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.model.trace import Input
from traceanalyzer.result.document import Result
from traceanalyzer.result.recording.diagnosis import Setting
from traceanalyzer.result.sections import Section

Role = Literal["trace", "beside", "series"]
"""A part of a job; something beside a part; something that spans captures."""
Clock = Literal["trace", "epoch", "none"]


@dataclass(frozen=True, kw_only=True)
class Marks(FileFacts):
    """Whose file it is; None or empty where it is silent.

    `pids` are of the operating system, `gpus` UUIDs. `clock` says what its times count from: as its trace's do, nanoseconds since the
    epoch less `clock_base_ns`, or nothing that others share.
    """

    host: str | None = None
    pids: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    clock: Clock = "none"


class Evidence(Protocol):
    """One kind of evidence. `priority` is unique among all kinds and formats: the highest that knows a file reads it."""

    name: str
    role: Role
    priority: int
    tables: Sequence[TableSpec]
    derived: Sequence[Derived]

    def sniff(self, source: Source) -> bool:
        """Whether the content (never the suffix) is of this kind."""

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        """Read it all into its own tables. Raises InputError when nothing can be read."""

    def place(self, marks: Marks, parts: Sequence[Input]) -> int | None:
        """Which of the parts it is beside, by position; None where that cannot be told, and never a guess."""

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        """What it adds to the report."""

    def recording_advice(self, tables: Mapping[str, pa.Table]) -> Iterable[Setting]:
        """What to record next time, for `doctor`."""
