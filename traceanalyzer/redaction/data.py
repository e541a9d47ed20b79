"""A result and its tables without what tells of a person or a machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.people import People, number_names
from traceanalyzer.redaction.texts import PASSES, Pass, redacted_names, redacted_text
from traceanalyzer.result.document import EvidenceInfo, InputInfo, Result

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check
    from traceanalyzer.result.comparing.comparison import Comparison
    from traceanalyzer.result.sections import Section

AUTHORED = frozenset({"recommend", "references", "false_positives", "tool", "sha256"})
"""What rules and the program say themselves."""

_WORD = re.compile(r"[^\s\"'`<>(),;|]++")
"""What may be a path in a text. Paths with other signs are looked for one by one."""

T = TypeVar("T")
Change = Callable[[str], str]


class Redaction:
    """What is taken out of a result and its tables: credentials, paths, and these people by name. Figures and other names stay, and
    names that differ go on differing."""

    def __init__(self, people: People, places: Sequence[str] = ()) -> None:
        """`places` are the inputs as the user named them."""
        self._people = people
        self._passes = (*PASSES, Pass(people.hint, people.without)) if people.hint else PASSES
        self._distinct = DistinctNames()
        self._files = dict(zip(places, number_names(map(people.file_name, places)), strict=True))
        count = Counter(end for place in self._files for end in _ends(place))
        ends = {
            end: name for place, name in self._files.items() for end in _ends(place) if count[end] == 1 or end == place
        }
        self._ends = {end: name for end, name in ends.items() if _WORD.fullmatch(end)}
        odd = sorted(ends.keys() - self._ends.keys(), key=lambda end: (-len(end), end))
        self._odd = re.compile("|".join(map(re.escape, odd))) if odd else None
        self._odd_ends = {end: ends[end] for end in odd}

    def text(self, text: str) -> str:
        """A text of a document, which may name inputs, or of a trace."""
        if self._files and ("/" in text or "\\" in text):
            if self._odd:
                text = self._odd.sub(lambda found: self._odd_ends[found[0]], text)
            text = _WORD.sub(self._file, text)
        return redacted_text(text, self._passes)

    def _file(self, word: re.Match[str]) -> str:
        """What is shown of a word that may be an input's path."""
        path = word[0].rstrip(".:")
        return self._ends[path] + word[0][len(path) :] if path in self._ends else word[0]

    def result(self, result: Result) -> Result:
        files = self._files or {one.path: self._people.file_name(one.path) for one in _files_of(result)}
        change = lru_cache(maxsize=65536)(self.text)
        inputs = [
            replace(_walked(one, change), path=files[one.path], versions=self._versions(one.versions))
            for one in result.inputs
        ]
        evidence = [replace(_walked(one, change), path=files[one.path]) for one in result.evidence]
        return replace(_walked(result, change), inputs=inputs, evidence=evidence)

    def comparison(self, comparison: Comparison) -> Comparison:
        base, new = (
            replace(_walked(side, self.text), name=self._people.file_name(side.name))
            for side in (comparison.base, comparison.new)
        )
        return replace(_walked(comparison, self.text), base=base, new=new)

    def check(self, check: Check) -> Check:
        return _walked(check, self.text)

    def sections(self, sections: Sequence[Section]) -> list[Section]:
        return [_walked(one, lru_cache(maxsize=65536)(self.text)) for one in sections]

    def labels(self, labels: Sequence[str]) -> list[str]:
        """What recordings are called: by rank or by file."""
        return number_names(self.text(label) for label in labels)

    def tables(self, tables: Tables) -> Tables:
        return RedactedTables(tables, self._passes, self._distinct)

    def _versions(self, versions: dict[str, str]) -> dict[str, str]:
        """Four numbers with dots are no address here."""
        return {
            self.text(name): text if re.fullmatch(r"[\d.]{1,40}", text) else self.text(text)
            for name, text in versions.items()
        }


def redact_result(result: Result, tables: Tables | None) -> tuple[Result, Tables | None]:
    """A result and its tables without paths, users, hosts and credentials."""
    redaction = redaction_of(tables, places=places_of(result))
    return redaction.result(result), None if tables is None else redaction.tables(tables)


def redaction_of(*tables: Tables | None, places: Iterable[str] = ()) -> Redaction:
    """What is taken out where these tables and whatever belongs to them stand together: the hosts of all of them, and the folders of
    the inputs that the user named."""
    return redaction_for([processes_of(one) for one in tables if one is not None], places)


def redaction_for(known: Sequence[tuple[set[str], set[int]]], places: Iterable[str] = ()) -> Redaction:
    """The same by the hosts and process ids of each of the tables."""
    places = list(dict.fromkeys(places))
    hosts = {host for one, _ in known for host in one}
    return Redaction(People(hosts, places, {pid for _, pids in known for pid in pids}), places)


def places_of(*results: Result | None) -> list[str]:
    """The inputs of these results, as the user named them."""
    return [one.path for result in results if result for one in _files_of(result)]


def _files_of(result: Result) -> list[InputInfo | EvidenceInfo]:
    return [*result.inputs, *result.evidence]


def processes_of(tables: Tables) -> tuple[set[str], set[int]]:
    """The hosts and process ids that tables name."""
    try:
        processes = tables.table("processes")
    except KeyError:
        return set(), set()
    hosts, pids = (
        {one for one in processes[name].to_pylist() if one} if name in processes.column_names else set()
        for name in ("host", "pid")
    )
    return hosts, pids


def _ends(place: str) -> Iterator[str]:
    """How texts name an input that lies in a folder: by its path, or by the end of it that no other input has."""
    parts = PurePath(place).parts
    yield from {place, *(str(PurePath(*parts[at:])) for at in range(len(parts) - 1))} if len(parts) > 1 else ()


class DistinctNames:
    """Keeps names apart that differed: the second that would look like another gets a number. A name is the same in all tables."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._taken: set[str] = set()
        self._count: dict[str, int] = {}

    def apart(self, changed: dict[str, str], kept: AbstractSet[str]) -> dict[str, str]:
        """What becomes of names that change: none of `kept`, which stand beside them and stay as they are."""
        for name, wanted in changed.items():
            if name not in self._shown or self._shown[name] in kept:
                self._shown[name] = self._free(wanted, kept)
        return {name: self._shown[name] for name in changed}

    def _free(self, wanted: str, kept: AbstractSet[str]) -> str:
        free = wanted
        while free in self._taken or free in kept:
            self._count[wanted] = self._count.get(wanted, 1) + 1
            free = f"{wanted} ({self._count[wanted]})"
        self._taken.add(free)
        return free


class RedactedTables:
    """Tables whose texts went through `passes`; each is made once."""

    def __init__(self, tables: Tables, passes: Sequence[Pass], distinct: DistinctNames) -> None:
        self._tables = tables
        self._passes = passes
        self._distinct = distinct
        self._made: dict[str, pa.Table] = {}

    def table(self, name: str) -> pa.Table:
        """Raises KeyError for an unknown name."""
        if name not in self._made:
            self._made[name] = self._cleaned(name, self._tables.table(name))
        return self._made[name]

    def _cleaned(self, name: str, table: pa.Table) -> pa.Table:
        for at, column in enumerate(table.schema):
            if name == "processes" and column.name == "host":
                table = table.set_column(at, column, pa.nulls(table.num_rows, column.type))
            elif pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
                table = table.set_column(at, column, self._texts(table.column(at)))
        return table

    def _texts(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        encoded = column.dictionary_encode() if pa.types.is_string(column.type) else column.unify_dictionaries()
        if not encoded.num_chunks:
            return column
        names = encoded.chunk(0).dictionary
        changed = redacted_names(names, self._passes)
        if not changed:
            return column
        whole = names.to_pylist()
        shown = self._distinct.apart(changed, set(whole).difference(changed))
        after = pa.array([shown.get(name, name) for name in whole], names.type)
        chunks = [pa.DictionaryArray.from_arrays(chunk.indices, after) for chunk in encoded.chunks]
        return pa.chunked_array(chunks).cast(column.type)


def _walked(value: T, change: Change) -> T:
    """The same value with every text in it changed, but for those that are AUTHORED."""
    made: Any = value
    if isinstance(value, str):
        made = change(value)
    elif value is None or isinstance(value, int | float):  # as most are
        pass
    elif isinstance(value, list):
        made = [_walked(item, change) for item in value]
    elif isinstance(value, tuple):
        made = tuple(_walked(item, change) for item in value)
    elif isinstance(value, dict):
        made = {_walked(key, change): _walked(item, change) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        own: dict[str, Any] = {name: getattr(value, name) for name in _walked_fields(type(value))}
        after = {name: _walked(item, change) for name, item in own.items()}
        changed = {name: item for name, item in after.items() if item is not own[name]}
        made = replace(value, **changed) if changed else value
    found: T = made
    return found


@cache
def _walked_fields(kind: type[Any]) -> list[str]:
    """The names of a dataclass' fields that hold more than what is AUTHORED."""
    return [field.name for field in fields(kind) if field.name not in AUTHORED]
