"""NVTX domains and categories: whose a range is, by the names that libraries give.

The rows that name them stand among the ranges, in any order. They are looked for once the first range has a domain or a category, as
those of most programs have not.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.formats.nsys.lookups import Strings, integers, names_by_key, processes
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import Columns

CATEGORY, DOMAIN = 33, 75
"""Types of NVTX events: the name of a category, the creation of a domain."""
_MOST = 1 << 16

Key = tuple[int, int, int]
"""(process, domain, category); the category is 0 where a domain is meant."""


class Domains:
    """What the domains and categories of a file are called."""

    def __init__(self, database: Database, strings: Strings, process: int) -> None:
        self._database, self._strings, self._process = database, strings, process

    def of(self, columns: Columns) -> dict[str, pa.Array]:
        """The column `domain` of ranges, of which there is none where no row of these has a domain or a category."""
        count = len(columns["start"])
        domain, category = (integers(columns.get(name, pa.nulls(count, pa.int64()))) for name in ("domain", "category"))
        if not domain.any() and not category.any():
            return {}
        owner = processes(columns.get("owner", pa.nulls(count, pa.int64()))).fill_null(self._process)
        keys, number = np.unique(np.stack((integers(owner), domain, category)), axis=1, return_inverse=True)
        called = [self.name(*key) for key in keys.T.tolist()]
        return {"domain": names_by_key(pa.array(number.ravel()), called.__getitem__)}

    def name(self, process: int, domain: int, category: int) -> str | None:
        """ "NCCL", or "NCCL / tuning" with a category; None for the default domain without one."""
        outer = self._names.get((process, domain, 0), f"domain {domain}") if domain else "default domain"
        if not category:
            return outer if domain else None
        return f"{outer} / {self._names.get((process, domain, category), f'category {category}')}"

    @cached_property
    def _names(self) -> dict[Key, str]:
        where = f"type in ({CATEGORY}, {DOMAIN}) and start is not null"
        # Of several names of one thing the first given counts.
        sql = selects.select(self._database, tables.NVTX, where, "start, owner, text, text_id")
        found = self._database.table(f"{sql} limit {_MOST}") if sql else None
        if found is None:
            return {}
        columns = {name: found[name].combine_chunks() for name in found.column_names}
        owner = processes(columns["owner"]).fill_null(self._process).to_pylist()
        registered = self._strings.names(columns["text_id"], None).to_pylist()
        names: dict[Key, str] = {}
        rows = zip(owner, *(columns[c].to_pylist() for c in ("type", "domain", "category", "text")), strict=True)
        for (process, kind, domain, category, text), other in zip(rows, registered, strict=True):
            key = (process, domain or 0, (category or 0) if kind == CATEGORY else 0)
            if text or other:
                names.setdefault(key, text or other)
        return names
