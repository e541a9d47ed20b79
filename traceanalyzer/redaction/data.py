"""A result and its tables without what tells of a person or a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.texts import HINT, file_name, redacted_text, without_hosts
from traceanalyzer.result.check import Check
from traceanalyzer.result.comparison import Comparison
from traceanalyzer.result.document import Result

AUTHORED = frozenset({"recommend", "references", "false_positives", "tool", "sha256"})
"""What rules and the program say themselves."""

T = TypeVar("T")
Change = Callable[[str], str]


class Redaction:
    """What is taken out of a result and its tables: paths, users, credentials, and these `hosts` by name. Figures and other names
    stay."""

    def __init__(self, hosts: set[str]) -> None:
        self._hosts = without_hosts(hosts)
        self._all_texts = bool(hosts)

    def text(self, text: str) -> str:
        return self._hosts(redacted_text(text))

    def result(self, result: Result) -> Result:
        inputs = [replace(_walked(one, self.text), path=self._hosts(file_name(one.path))) for one in result.inputs]
        return replace(_walked(result, self.text), inputs=inputs)

    def comparison(self, comparison: Comparison) -> Comparison:
        base, new = (
            replace(_walked(side, self.text), name=self._hosts(file_name(side.name)))
            for side in (comparison.base, comparison.new)
        )
        return replace(_walked(comparison, self.text), base=base, new=new)

    def check(self, check: Check) -> Check:
        return _walked(check, self.text)

    def tables(self, tables: Tables) -> Tables:
        return RedactedTables(tables, self.text, self._all_texts)


def redacted(result: Result, tables: Tables | None) -> tuple[Result, Tables | None]:
    """A result and its tables without paths, users, hosts and credentials."""
    redaction = redaction_of(tables)
    return redaction.result(result), None if tables is None else redaction.tables(tables)


def redaction_of(*tables: Tables | None) -> Redaction:
    """What is taken out where these tables and whatever belongs to them stand together: the hosts of all of them."""
    return Redaction({host for one in tables for host in _hosts(one)})


class RedactedTables:
    """Tables whose texts went through `change`; each is made once. `all_texts`: a text may change that HINT does not tell."""

    def __init__(self, tables: Tables, change: Change, all_texts: bool = False) -> None:
        self._tables = tables
        self._change = change
        self._all_texts = all_texts
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
        plain = pa.types.is_string(column.type)
        if plain and not self._all_texts and not pc.any(pc.match_substring_regex(column, HINT)).as_py():
            return column
        encoded = column.dictionary_encode() if plain else column.unify_dictionaries()
        if not encoded.num_chunks:
            return column
        before = encoded.chunk(0).dictionary
        after = self._distinct(before)
        if after is None:
            return column
        # Two texts may have become one: then their rows share a code.
        codes = pc.dictionary_encode(after)
        chunks = [
            pa.DictionaryArray.from_arrays(codes.indices.take(chunk.indices), codes.dictionary)
            for chunk in encoded.chunks
        ]
        return pa.chunked_array(chunks).cast(column.type)

    def _distinct(self, texts: pa.Array) -> pa.Array | None:
        """The distinct texts, changed; None when none of them is."""
        if self._all_texts:
            rows = range(len(texts))
        else:
            rows = pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(texts, HINT), False)).to_pylist()
        found = {row: text for row in rows if (text := texts[row].as_py()) is not None}
        changed = {row: new for row, text in found.items() if (new := self._change(text)) != text}
        if not changed:
            return None
        whole = texts.to_pylist()
        for row, text in changed.items():
            whole[row] = text
        return pa.array(whole, texts.type)


def _hosts(tables: Tables | None) -> set[str]:
    try:
        return set() if tables is None else {host for host in tables.table("processes")["host"].to_pylist() if host}
    except KeyError:
        return set()


def _walked(value: T, change: Change) -> T:
    """The same value with every text in it changed, but for those that are AUTHORED."""
    made: Any = value
    if isinstance(value, str):
        made = change(value)
    elif isinstance(value, list):
        made = [_walked(item, change) for item in value]
    elif isinstance(value, dict):
        made = {key: _walked(item, change) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        own: dict[str, Any] = {field.name: getattr(value, field.name) for field in fields(value)}
        made = replace(
            value, **{name: item if name in AUTHORED else _walked(item, change) for name, item in own.items()}
        )
    found: T = made
    return found
