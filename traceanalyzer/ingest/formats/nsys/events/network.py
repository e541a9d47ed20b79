"""Counters of network cards and InfiniBand switches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.ingest.formats.nsys.lookups import integers, names_by_key
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader

_KEYS = ("list", "place", "device", "port")
_CALLED = ("network card", "InfiniBand switch")


def read_network_counters(reader: EventReader, database: Database, repairs: Repairs) -> Iterator[pa.Table]:
    """Batches of `counters`, with the unit that the file gives; the time is when the counting began that gave a value."""
    names = _Names(database)
    for table, device in zip(tables.NETWORK, _CALLED, strict=True):
        for raw in reader.read(table):
            columns = repairs.complete(raw, "start", "value")
            nothing = pa.nulls(len(columns["start"]), pa.int64())
            keys = np.stack([integers(columns.get(name, nothing), -1) for name in _KEYS])
            distinct, at = np.unique(keys, axis=1, return_inverse=True)
            told = [names.of(device, *key) for key in distinct.T.tolist()]
            number = pa.array(at.ravel())
            yield pa.table(
                {
                    "time_ns": columns["start"],
                    "metric": names_by_key(number, [metric for metric, _ in told].__getitem__),
                    "unit": names_by_key(number, [unit for _, unit in told].__getitem__),
                    "value": columns["value"].cast(pa.float64(), safe=False),
                }
            )


class _Names:
    """What metrics and cards are called."""

    def __init__(self, database: Database) -> None:
        self._metrics = {
            (row["list"], row["place"]): (row["name"], row["unit"] or None)
            for row in _rows(database, tables.NETWORK_METRICS, "list, place, name, unit")
        }
        own = {row["card"]: row["name"] for row in _rows(database, tables.NETWORK_CARDS, "card, name")}
        self._cards = {
            row["device"]: own[row["card"]]
            for row in _rows(database, tables.NETWORK_MAP, "device, card")
            if row["card"] in own
        }

    def of(self, device: str, listed: int, place: int, where: int, port: int) -> tuple[str, str | None]:
        """ "mlx5_0 port 1: IB: Bytes sent" and its unit; -1 stands for what is not recorded."""
        metric, unit = self._metrics.get((listed, place), (f"metric {place}", None))
        card = self._cards.get(where, device)
        return f"{card}{f' port {port}' if port >= 0 else ''}: {metric}", unit


def _rows(database: Database, table: tables.Table, order: str) -> list[dict[str, Any]]:
    sql = selects.select(database, table, order=order)
    found = database.table(sql) if sql else None
    return found.to_pylist() if found else []
