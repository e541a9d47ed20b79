"""Tables of a store of another minor version in the form of this one, and the health notes that say what that cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns.lean import repeated
from traceanalyzer.model.schema import EVENT_TABLES, HEALTH, TableSpec
from traceanalyzer.model.stores.versions import is_older, not_recorded, passed_over
from traceanalyzer.vocabulary.health import NOT_ALL_READ


class Conforming:
    """For the parts of one store, of a `version` of the schema, whose manifest names `tables`."""

    def __init__(self, version: str, tables: Collection[str]) -> None:
        self._version = version
        self._older = is_older(version)
        self._absent = [name for name in EVENT_TABLES if name not in tables]
        self._lacking: dict[int, list[str]] = {}
        self._unknown: dict[int, list[str]] = {}

    def table(self, ordinal: int, rows: pa.Table, spec: TableSpec) -> pa.Table:
        """The rows of one part with the columns of `spec`: what an older version lacks is null. Raises KeyError for another one."""
        has = set(rows.column_names)
        if self._older:
            for name in spec.schema.names:
                if name not in has:
                    rows = rows.append_column(name, repeated(pa.nulls(1, spec.schema.field(name).type), rows.num_rows))
                    self._lacking.setdefault(ordinal, []).append(f"{spec.name}.{name}")
        more = [f"{spec.name}.{name}" for name in rows.column_names if spec.column(name) is None]
        self._unknown.setdefault(ordinal, []).extend(more)
        return rows.select(spec.schema.names).cast(spec.schema)

    def pass_over(self, ordinal: int, tables: Iterable[str]) -> None:
        """Tables of one part that are not read."""
        self._unknown.setdefault(ordinal, []).extend(tables)

    def with_notes(self, health: pa.Table, ordinals: Iterable[int]) -> pa.Table:
        """The table `health` of these parts with what became of theirs."""
        pieces, noted = [], False
        for ordinal in ordinals:
            told = (
                not_recorded(self._version, [*self._absent, *self._lacking.get(ordinal, ())]),
                passed_over(self._version, self._unknown.get(ordinal, ())),
            )
            rows = [
                {"rank": ordinal, "code": NOT_ALL_READ, "severity": note[0], "message": note[1], "count": 1}
                for note in told
                if note is not None
            ]
            noted |= bool(rows)
            own = health.filter(pc.equal(health["rank"], ordinal))
            pieces += [own, pa.Table.from_pylist(rows, schema=HEALTH.schema)]
        return pa.concat_tables(pieces).combine_chunks() if noted else health
