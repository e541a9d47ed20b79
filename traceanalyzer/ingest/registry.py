"""The one list of the kinds of files that are read: formats of traces and kinds of evidence, each found and none named.

A kind is a folder here (`ingest/formats/NAME`, `evidence/NAME`), or an object that another package names as an entry point of the group
`traceanalyzer.formats` or `traceanalyzer.evidence`. A file is asked once what it is, and the answer travels with its `Source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import cast

from traceanalyzer.errors import ConfigError, InputError
from traceanalyzer.ingest import foreign
from traceanalyzer.ingest.bytes.containers import Note
from traceanalyzer.ingest.bytes.kinds import Conversion
from traceanalyzer.ingest.bytes.source import HEAD_BYTES, Source
from traceanalyzer.ingest.bytes.sources import sources_behind
from traceanalyzer.ingest.contract import Format, Kind
from traceanalyzer.model.kinds import EVIDENCE, FORMATS, kinds_of
from traceanalyzer.records import dataclass

_PACKED = r"(?:\.(?:gz|zst|xz|bz2))?$"


@dataclass(frozen=True)
class Registry:
    """Kinds of files, of which no two have the same name or priority; the highest priority first."""

    kinds: Sequence[Kind]

    def __post_init__(self) -> None:
        for one, other in pairwise(sorted(self.kinds, key=lambda kind: kind.priority)):
            if one.priority == other.priority:
                raise ConfigError(
                    f"the kinds of files '{one.name}' and '{other.name}' have the same priority ({one.priority}), so that it is not "
                    "told which of them reads a file that both know; give one of them another"
                )
        for first, second in pairwise(sorted(self.kinds, key=lambda kind: kind.name)):
            if first.name == second.name:
                raise ConfigError(f"two kinds of files are called '{first.name}'; rename one of them")

    @cached_property
    def formats(self) -> list[Format]:
        """Formats of traces."""
        return [cast(Format, kind) for kind in self.kinds if kind.role == "trace"]

    @cached_property
    def evidence(self) -> list[Kind]:
        """Kinds of evidence."""
        return [kind for kind in self.kinds if kind.role != "trace"]

    def named(self, name: str) -> Kind:
        """The kind of that name. Raises InputError where no package here brings it."""
        found = next((kind for kind in self.kinds if kind.name == name), None)
        if found is None:
            raise InputError(f"no kind of file is called '{name}' here; install the package that reads it")
        return found

    def format_named(self, name: str) -> Format | None:
        """The format of that name; None where no package here brings it, as that of a store from elsewhere."""
        return next((one for one in self.formats if one.name == name), None)

    def known(self, source: Source, named: bool) -> Source | None:
        """As `bytes.kinds.Kinds`."""
        if foreign.is_own(source.head):
            if named:
                raise InputError(
                    f"{source.path}: written by traceanalyzer itself; name the trace, or the folder of the store"
                )
            return None
        words = foreign.is_own_page(source.head)
        if not words and (certain := next((kind for kind in self.kinds if kind.sniff(source)), None)):
            return replace(source, kind=certain.name)
        worth = [kind for kind in self.formats if kind.tries(source, named=True)]
        called = self.is_called_trace(source.path.name)
        if not words and not any(kind.vouches(source) for kind in worth):
            words = foreign.explain(source.path, source.head, self.record)
        if words:
            if named or (called and not foreign.starts_as_json(source.head)):
                raise InputError(f"{source.path}: {words}")
            return None
        found = next((kind for kind in worth if named or (called and kind.tries(source, named=False))), None)
        if found is not None:
            return replace(source, kind=found.name)
        if called and not worth and not named:
            raise InputError(self.explain_unknown(source.path))
        return source if named else None

    def is_own(self, source: Source) -> bool:
        """As `bytes.kinds.Kinds`."""
        return foreign.is_own(source.head) or foreign.is_own_page(source.head) is not None

    def kind_of(self, source: Source) -> Kind:
        """What reads a file. Raises InputError that says what to do when nothing does."""
        if source.kind:
            return self.named(source.kind)
        found = self.known(source, named=True)
        if found is None or not found.kind:
            raise InputError(self.explain_unknown(source.path))
        return self.named(found.kind)

    def explain_unknown(self, path: Path) -> str:
        """What to say of a file of which nothing is known. The suffix may choose the words, never the format."""
        about = (
            foreign.explain_suffix(path) or f"neither {' nor '.join(one.about for one in self._listed)}; {self.record}"
        )
        return f"{path}: {about}"

    @cached_property
    def record(self) -> str:
        """How to get what is read."""
        return ", or ".join(one.record for one in self._listed)

    @cached_property
    def listed(self) -> str:
        """The suffixes of traces, for messages."""
        return " or ".join(suffix for one in self._listed for suffix in one.suffixes)

    @cached_property
    def _listed(self) -> list[Format]:
        """Formats in the order in which messages name them."""
        return self.formats[::-1]

    @cached_property
    def _suffixes(self) -> re.Pattern[str]:
        return _ending(suffix for kind in self.kinds for suffix in kind.suffixes)

    @cached_property
    def _trace_suffixes(self) -> re.Pattern[str]:
        return _ending(suffix for kind in self.formats if not kind.may_be_others for suffix in kind.suffixes)

    def is_called(self, name: str) -> bool:
        """Whether a file is called as files of some kind are, packed or not."""
        return bool(self._suffixes.search(name)) or self.called(Path(name)) is not None

    def is_called_trace(self, name: str) -> bool:
        """Whether a file is called as traces are and little else."""
        return bool(self._trace_suffixes.search(name)) or self.called(Path(name)) is not None

    def called(self, path: Path) -> Conversion | None:
        """What converts files of this name; None for nearly all."""
        return next((way for one in self.formats if (way := one.conversion) and way.is_called(path)), None)

    def conversion(self, path: Path) -> Conversion | None:
        """What converts a file: it is called so, and nothing else that is known."""
        way = self.called(path)
        if way is None:
            return None
        try:
            with path.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
        except OSError:
            return None
        if not head or way.is_converted(head) or foreign.is_own_page(head):
            return None
        return way if foreign.explain(path, head, self.record) is None else None

    def explain_suffix(self, path: Path) -> str | None:
        """As `foreign.explain_suffix`."""
        return foreign.explain_suffix(path)

    def stale(self, source: Source) -> tuple[Note, ...]:
        """What to say of a file beside which a newer recording of itself lies."""
        way = next((one.conversion for one in self.formats if one.name == source.kind), None)
        return way.stale(source.path) if way else ()


def _ending(suffixes: Iterable[str]) -> re.Pattern[str]:
    told = "|".join(re.escape(suffix) for suffix in suffixes)
    return re.compile(f"(?:{told}){_PACKED}" if told else "(?!)", re.IGNORECASE)


@cache
def registry() -> Registry:
    """All kinds that are installed. Raises ConfigError for kinds that do not fit."""
    kinds: tuple[Kind, ...] = (*kinds_of(FORMATS), *kinds_of(EVIDENCE))
    return Registry(sorted(kinds, key=lambda kind: -kind.priority))


def find_sources(inputs: Sequence[Path], max_bytes: int | None = None) -> list[Source]:
    """The files of known kinds behind the given paths, as `sources_behind` finds them. Raises InputError as it does."""
    return sources_behind(inputs, registry(), max_bytes)


def kind_of(source: Source) -> Kind:
    """What reads a file. Raises InputError that says what to do when nothing does."""
    return registry().kind_of(source)
