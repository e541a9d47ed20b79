"""What a catalog gives back when it is told what will be asked for later."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.catalogs import tables_made
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.catalog.declarations import declared


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    trace = ta.load(KinetoTrace().op(0, 10, launch=(-5, -2)).op(20, 30, launch=(12, 14)).write(tmp_path / "t.json"))
    return Catalog(trace)


@pytest.fixture
def made(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return tables_made(monkeypatch)


def test_what_is_asked_for_later_is_not_made_twice(catalog: Catalog, made: list[str]) -> None:
    catalog.table("gaps")
    catalog.release(["gaps"])
    catalog.table("gaps")
    assert made.count("gaps") == 1


def test_what_later_tables_are_made_of_stays(catalog: Catalog, made: list[str]) -> None:
    catalog.table("gaps")
    assert {"gaps", "ledger_ops"} <= {*declared()["ledger_intervals"].inputs, "ledger_ops"}
    catalog.release(["ledger_intervals"])
    catalog.table("ledger_intervals")
    assert made.count("gaps") == 1


def test_the_rest_is_given_back_and_made_anew_when_asked_for(catalog: Catalog, made: list[str]) -> None:
    first = catalog.table("gaps")
    catalog.release([])
    assert catalog.table("gaps").equals(first)
    assert made.count("gaps") == 2


def test_what_was_given_stays(catalog: Catalog, made: list[str]) -> None:
    given = catalog.table("gaps").slice(0, 0)
    catalog.give({"gaps": given})
    catalog.release([])
    assert catalog.table("gaps") is given
    assert made.count("gaps") == 1
