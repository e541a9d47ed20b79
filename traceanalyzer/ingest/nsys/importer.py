"""The importer for Nsight Systems exports (`nsys export --type sqlite`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.errors import InputError
from traceanalyzer.ingest.contract import FileFacts, Progress, Sink
from traceanalyzer.ingest.nsys import about, gpu_ops, host, samples, tables
from traceanalyzer.ingest.nsys.database import Database, open_database
from traceanalyzer.ingest.nsys.extents import Extents
from traceanalyzer.ingest.nsys.lookups import Devices, Kinds, Strings
from traceanalyzer.ingest.sources import SQLITE_MAGIC, Source

_TELLTALES = ("StringIds", "NVTX_EVENTS", "META_DATA_EXPORT", "EXPORT_META_DATA")
_PREFIXES = ("cupti_activity_kind_", "nvtx_", "target_info_")
_STREAMED = (
    tables.KERNEL,
    tables.MEMCPY,
    tables.MEMSET,
    tables.GRAPH_TRACE,
    tables.RUNTIME,
    tables.NVTX,
    tables.OVERHEAD,
    tables.CUPTI_OVERHEAD,
    tables.DEVICE_MEMORY,
    tables.GPU_METRICS,
)


class NsysImporter:
    """Reads a SQLite export of Nsight Systems, of any version since 2021, in batches and without changing anything."""

    format = "nsys"

    def sniff(self, source: Source) -> bool:
        """Any SQLite file: of the formats that are read, only this one is."""
        return source.head.startswith(SQLITE_MAGIC)

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        """Read it all. Raises InputError for a damaged file and for SQLite that is not an export."""
        with open_database(source) as database:
            if not _is_export(database):
                raise InputError(
                    f"{source.path}: a SQLite file, but not an Nsight Systems export (no events of CUDA or NVTX); "
                    "make one with nsys export --type sqlite REPORT.nsys-rep"
                )
            return _Reading(database, sink, _Meter(database, source.size, progress)).run()


def _is_export(database: Database) -> bool:
    names = [name.lower() for name in database.table_names]
    return any(database.find(name) for name in _TELLTALES) or any(name.startswith(_PREFIXES) for name in names)


class _Meter:
    """Turns rows into bytes of the input: SQLite does not say where it reads."""

    def __init__(self, database: Database, size: int, progress: Progress) -> None:
        found = (tables.find(database, table) for table in _STREAMED)
        self._rows = max(sum(database.row_estimate(name) for name in found if name is not None), 1)
        self._size, self._progress, self._done, self._told = size, progress, 0, 0

    def add(self, rows: int) -> None:
        """Count rows that have been read."""
        self._done += rows
        self._tell(self._size * min(self._done, self._rows) // self._rows)

    def finish(self) -> None:
        """The whole input has been read."""
        self._tell(self._size)

    def _tell(self, total: int) -> None:
        if total > self._told:
            self._progress(total - self._told)
            self._told = total


class _Reading:
    """One pass over one export."""

    def __init__(self, database: Database, sink: Sink, meter: _Meter) -> None:
        self._database, self._sink, self._meter = database, sink, meter
        self._repairs = host.Repairs()
        # What was met on the way: processes with events, GPUs with work, rows with a peculiarity.
        self._processes: set[int] = set()
        self._gpus: set[int] = set()
        self._graphs = self._impossible = 0
        self._impossible_name: str | None = None

    def run(self) -> FileFacts:
        """Fill all tables, always in the same order."""
        database, repairs = self._database, self._repairs
        strings, devices, kinds = Strings(database), Devices(database), Kinds.read(database)
        facts = about.About.read(database)
        extents = Extents.read(database)
        last, owner = extents.last, extents.only_process

        self._stream("gpu_ops", gpu_ops.read_gpu_ops(database, strings, devices, kinds, extents), self._see_gpu_ops)
        self._stream("api_calls", host.read_api_calls(database, strings, repairs, last, owner), self._see_processes)
        self._stream("host_ranges", host.read_host_ranges(database, strings, repairs, last, owner), self._see_processes)
        self._stream("overheads", host.read_overheads(database, strings, repairs, last, owner))
        self._stream("memory_events", samples.read_memory_events(database, devices, kinds, owner))
        self._stream("counters", samples.read_counters(database))
        self._stream("devices", about.read_devices(database, self._gpus))
        self._stream("processes", about.read_processes(database, self._processes, facts.host))
        self._stream("threads", about.read_threads(database, strings, self._processes))
        self._meter.finish()

        facts.report(self._sink)
        about.report_diagnostics(database, self._sink)
        self._report()
        single = len(self._processes) == 1
        if len(self._processes) > 1:
            message = "several processes and no word of their ranks: GPUs are told apart by their device number"
            self._sink.health("TRC006", "info", message, len(self._processes))
        return FileFacts(
            producer=f"Nsight Systems {facts.version or ''}".strip(),
            process=min(self._processes) if single else None,
            rank=facts.rank if single else None,
            world_size=facts.world_size if single else None,
            clock_base_ns=facts.clock_base_ns,
        )

    def _stream(
        self, table: str, batches: Iterable[pa.Table], see: Callable[[pa.Table], None] = lambda batch: None
    ) -> None:
        for batch in batches:
            see(batch)
            self._sink.add(table, batch)
            self._meter.add(batch.num_rows)

    def _see_processes(self, batch: pa.Table) -> None:
        self._processes.update(batch["process"].unique().to_pylist())

    def _see_gpu_ops(self, batch: pa.Table) -> None:
        self._see_processes(batch)
        self._gpus.update(batch["device"].unique().to_pylist())
        self._graphs += pc.sum(pc.equal(batch["kind"].cast(pa.string()), "graph")).as_py()
        impossible = batch.filter(batch["quarantined"])
        if impossible.num_rows and self._impossible_name is None:
            self._impossible_name = impossible["name"][0].as_py()
        self._impossible += impossible.num_rows

    def _report(self) -> None:
        """Say what was met in the rows and what it means for the rules."""
        if self._graphs:
            self._sink.health(
                "TRC008",
                "low",
                "CUDA graphs were recorded as a whole: the kernels inside are hidden, and rules about kernels do not "
                "see them; record with nsys profile --cuda-graph-trace=node",
                self._graphs,
            )
        if self._impossible:
            message = "GPU operations with impossible times were set aside: they are not on the ledger"
            self._sink.health("TRC007", "low", message, self._impossible, self._impossible_name)
        if self._repairs.reversed:
            message = "host calls or ranges that end before they start were given no duration"
            self._sink.health("TRC007", "info", message, self._repairs.reversed)
        if self._repairs.opened:
            message = "ranges or calls were still open when recording stopped: they end with the last record"
            self._sink.health("TRC001", "info", message, self._repairs.opened)
