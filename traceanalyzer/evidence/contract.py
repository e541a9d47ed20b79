"""What a kind of evidence is: how it is told from other files, what it is read into, whose it is, and what it adds to the report.

A kind imports `model`, the contract of `ingest`, `result`, and never another kind. It is found by its folder here, in which `KIND` is
one, or as an entry point of the group `traceanalyzer.evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from traceanalyzer.evidence.placing import Whereabouts, place, places
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Kind, Marks, Progress, Sink
from traceanalyzer.model.derived import Derived
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.tables import Tables
from traceanalyzer.model.trace import Clock, Role
from traceanalyzer.result.captures.figure import Figure
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.recording.diagnosis import Setting
    from traceanalyzer.result.sections import Section

__all__ = [
    "Clock",
    "Evidence",
    "Figure",
    "Marks",
    "Progress",
    "Role",
    "Section",
    "Setting",
    "Sink",
    "Source",
    "Whereabouts",
]

_LATE = {"Section": "traceanalyzer.result.sections", "Setting": "traceanalyzer.result.recording.diagnosis"}
"""What is imported when a kind first has something to say."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class Evidence(Kind):
    """One kind of evidence; what most kinds have in common is here.

    Columns of `tables` called `…_ns` are moments: they are moved onto the clock of the trace that a file is placed beside. Each table
    has the column `rank`, which is filled in later. `several` says that more than one file may be beside one trace, and `spans` that
    one file may be beside several traces, as the log of a node is of all its ranks; `fits_by` is what `fits` tells by. `rules` is a
    folder of rules (FAMILY/ID-slug.yaml), for kinds of other packages: the others have theirs in `rules/NAME`.

    `figures` are what `measure` gives, by the name that follows the kind's and a dot: what `compare` shows and `check` holds budgets
    against. A measured name may end with whose it is between brackets (`peak[train.py:33]`): `compare` then says of whom a figure grew
    or fell most, and one without is 0.
    """

    role: Role = "beside"
    about: str = ""
    told: str = ""
    suffixes: Sequence[str] = ()
    tables: Sequence[TableSpec] = ()
    derived: Sequence[Derived] = ()
    figures: Mapping[str, Figure] = {}
    rules: Traversable | None = None
    several: bool = False
    spans: bool = False
    fits_by: str = "what it holds"

    def sniff(self, source: Source) -> bool:
        """Whether the content (never the suffix) is of this kind, for certain."""
        raise NotImplementedError

    def read(self, source: Source, sink: Sink, progress: Progress) -> Marks:
        """Read it all into its own tables. Raises InputError when nothing can be read."""
        raise NotImplementedError

    def place(self, own: Whereabouts, parts: Sequence[Whereabouts]) -> Sequence[int]:
        """Which of the traces it is beside, by position; none where that cannot be told, and never a guess."""
        if self.spans:
            return places(own, parts)
        at = place(own, parts)
        return () if at is None else (at,)

    def fits(self, own: Tables, trace: Tables) -> bool | None:
        """Whether what it holds tells that it is of the same run as a trace (True), or of another (False); None where that tells
        nothing. It is never beside a trace of another run, and beside one of the same where `place` knows of none."""
        return None

    def joins(self, own: Tables, other: Tables) -> bool:
        """Whether two files that are beside no trace are of one recording, such as two pages of one profile, so that they are judged as
        one; asked of kinds of which several files may be beside one trace."""
        return False

    def shift(self, tables: Tables, trace: Tables) -> tuple[int, int | None] | None:
        """What to add to the file's times for the clock of its trace, where no clock of both says so, and how far that may be off, in
        ns; None where it cannot be told."""
        return None

    def enrich(self, own: Tables, trace: Tables, on_clock: bool) -> Mapping[str, pa.Table]:
        """Event tables of the trace that it is beside with what it adds to them: more rows, or values where the trace has none.

        `own` are its own tables with the rank of the trace, and, if `on_clock`, with times on the trace's clock.
        """
        return {}

    def headline(self, tables: Tables) -> str | None:
        """What it shows where no rule about it found anything: a sentence without its stop. The same tables are there as for
        `sections`."""
        return None

    def sections(self, result: Result, tables: Tables) -> Iterable[Section]:
        """What it adds to the report. Of derived tables, those that are declared `small` are there."""
        return ()

    def measure(self, tables: Tables) -> Mapping[str, int | float]:
        """The figures, as far as they are known, by name, of all ranks together. The same tables are there as for `sections`."""
        return {}

    def recording_advice(self, tables: Tables) -> Iterable[Setting]:
        """What to record next time, for `doctor`."""
        return ()
