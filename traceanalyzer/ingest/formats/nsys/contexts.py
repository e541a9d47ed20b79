"""Whose contexts a GPU switched to: it is shared where another process had it, and busy where nothing was recorded."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.lookups import Devices
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PID_BITS
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import LOW

_MOST = 1 << 12
_NAMED = 3


@dataclass
class Contexts:
    """Switches while the GPU worked, by (GPU as it is shown, process id)."""

    switches: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def read(cls, database: Database, devices: Devices, start: int, end: int) -> Contexts:
        """Count them within [start, end]."""
        where = f"time between {start} and {end} and owner is not null and gpu is not null"
        sql = selects.select(database, tables.CONTEXT_SWITCHES, where)
        if sql is None:
            return cls()
        pid = f"(owner >> 24) & {PID_BITS}"
        found = database.table(
            f"select gpu, {pid} as pid, count(*) as n from ({sql}) group by gpu, pid order by gpu, pid limit {_MOST}"
        )
        rows = found.to_pylist() if found else []
        return cls({(devices.number(row["gpu"]), row["pid"]): row["n"] for row in rows})

    def report(self, own: set[int], sink: Sink) -> None:
        """Say where others had a GPU. `own` are the ids of the recorded processes that used one.

        In a container the recorded processes have other ids than the switches: where none of them is known, nothing can be told.
        """
        others: set[int] = set()
        count = 0
        for gpu in {gpu for gpu, _ in self.switches}:
            here = {pid: n for (where, pid), n in self.switches.items() if where == gpu}
            if own & here.keys():
                strange = here.keys() - own - {0}
                others |= strange
                count += sum(here[pid] for pid in strange)
        if others:
            message = (
                "contexts of other processes ran on the GPU meanwhile, and what they did was not recorded: it may be busy where it "
                "looks idle, and what took long may have shared it"
            )
            named = ", ".join(map(str, sorted(others)[:_NAMED])) + (", ..." if len(others) > _NAMED else "")
            sink.health(RANKS_IN_DOUBT, LOW, message, count, f"process {named}")
