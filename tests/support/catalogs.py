"""What catalogs make."""

from __future__ import annotations

import pytest

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.model.derived import Derived


def tables_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tables and values that catalogs make from now on in this process, in their order."""
    names: list[str] = []
    make = Catalog._make

    def noted(self: Catalog, one: Derived) -> object:
        names.append(one.name)
        return make(self, one)

    monkeypatch.setattr(Catalog, "_make", noted)
    return names
