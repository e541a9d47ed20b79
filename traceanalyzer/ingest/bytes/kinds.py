"""What the byte layers ask about the kinds of files, of which they know none themselves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.source import Source


class Conversion(Protocol):
    """Recordings that are no file of a kind yet, but that a program of others makes into one."""

    def is_called(self, path: Path) -> bool:
        """Whether a file is called as such recordings are."""

    def is_unfinished(self, path: Path) -> bool:
        """Whether such a recording is only half of one, which is not converted."""

    def is_converted(self, head: bytes) -> bool:
        """Whether a file that is called so begins as what a conversion gives: somebody has converted it, and kept its name."""

    def results_of(self, path: Path) -> Iterable[Path]:
        """Where what it is converted to would lie."""

    def convert(self, path: Path) -> tuple[Path, object]:
        """The converted file, and what must live as long as it is needed. Raises InputError where that cannot be done."""

    def advice(self, path: Path) -> str:
        """What such a recording is, and the command that makes it readable."""

    def stale(self, converted: Path) -> tuple[Note, ...]:
        """What to say of a converted file beside which a newer recording lies."""


class Kinds(Protocol):
    """The kinds of files that are read."""

    def known(self, source: Source, named: bool) -> Source | None:
        """The source with its `kind`; None for one to pass over, which a file that the user `named` never is.

        Raises InputError for what is known to be none that is read, where it was named or is called like a trace.
        """

    def is_own(self, source: Source) -> bool:
        """Whether this program wrote a file itself: it lies there for good reason, and is no input."""

    def is_called(self, name: str) -> bool:
        """Whether a file is called as files of some kind are, packed or not."""

    def is_called_trace(self, name: str) -> bool:
        """Whether a file is called as traces are and little else."""

    def conversion(self, path: Path) -> Conversion | None:
        """What converts a file of this name and content; None for nearly all."""

    def called(self, path: Path) -> Conversion | None:
        """What converts files of this name; None for nearly all."""

    def explain_suffix(self, path: Path) -> str | None:
        """What a file is called as, where its content says nothing, and what to do about it."""

    def stale(self, source: Source) -> tuple[Note, ...]:
        """What to say of a file beside which a newer recording of itself lies."""

    @property
    def listed(self) -> str:
        """The suffixes of traces, for messages."""
