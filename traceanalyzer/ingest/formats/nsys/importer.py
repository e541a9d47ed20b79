"""The importer for Nsight Systems exports (`nsys export --type sqlite`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Progress, Sink
from traceanalyzer.ingest.formats.nsys import about, program
from traceanalyzer.ingest.formats.nsys.about import About
from traceanalyzer.ingest.formats.nsys.coverage import Coverage
from traceanalyzer.ingest.formats.nsys.diagnostics import read_diagnostics
from traceanalyzer.ingest.formats.nsys.events import faults, mpi, samples, stacks, stream_events, switches
from traceanalyzer.ingest.formats.nsys.events.directives import Directives
from traceanalyzer.ingest.formats.nsys.events.domains import Domains
from traceanalyzer.ingest.formats.nsys.events.gpu_ops import GpuOps
from traceanalyzer.ingest.formats.nsys.events.host import Host
from traceanalyzer.ingest.formats.nsys.events.nccl import Nccl
from traceanalyzer.ingest.formats.nsys.events.network import read_network_counters
from traceanalyzer.ingest.formats.nsys.lookups import Devices, Kinds, Strings
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database, open_database
from traceanalyzer.ingest.formats.nsys.sqlite.rows import EventReader
from traceanalyzer.vocabulary.health import GRAPHS_HIDDEN, NOT_ALL_READ, RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import INFO, LOW

_WITH_PROCESS = (*tables.GPU_WORK, tables.RUNTIME, tables.NVTX, tables.DEVICE_MEMORY)
STREAMED = (
    *_WITH_PROCESS,
    *tables.MPI_CALLS,
    tables.OS_CALLS,
    *tables.OPENACC,
    *tables.OPENMP.values(),
    tables.CALLBACKS,
    tables.SYNCHRONIZATIONS,
    tables.CUDA_EVENTS,
    tables.STREAMS,
    tables.OVERHEAD,
    tables.CUPTI_OVERHEAD,
    tables.SAMPLES,
    tables.SAMPLE_STACKS,
    tables.OS_STACKS,
    tables.SWITCHES,
    tables.HOST_FAULTS,
    tables.GPU_FAULTS,
    tables.GPU_METRICS,
    *tables.NETWORK,
    tables.STRINGS,
)


class NsysImporter:
    """Reads a SQLite export of Nsight Systems, of any version since 2021, in batches and without changing anything."""

    def read(self, source: Source, sink: Sink, progress: Progress) -> FileFacts:
        """Read it all. Raises InputError for a damaged file and for SQLite that is not an export."""
        with open_database(source) as database:
            for note in database.notes:
                sink.health(*note)
            return _Reading(database, sink, _Meter(database, source.size, progress)).run()


class _Meter:
    """Turns rows into bytes of the input: SQLite does not say where it reads."""

    def __init__(self, database: Database, size: int, progress: Progress) -> None:
        found = (selects.find(database, table) for table in STREAMED)
        # No row takes less than a byte, whatever its number claims.
        self._rows = min(max(sum(database.row_estimate(name) for name in found if name is not None), 1), size)
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
        self._reader = EventReader(database, sink, meter.add)
        self._repairs, self._coverage = Repairs(), Coverage()

    def run(self) -> FileFacts:
        """Fill all tables, always in the same order."""
        database, reader, repairs, seen = self._database, self._reader, self._repairs, self._coverage
        strings, devices, kinds = Strings(reader), Devices(database), Kinds.read(database)
        facts = About.read(database)
        nameless = selects.only_process(database, _WITH_PROCESS)
        host = Host(reader, strings, repairs, nameless, Domains(database, strings, nameless))

        self._stream("api_calls", host.api_calls(), seen.see_api_calls)
        self._stream("host_ranges", host.ranges(), seen.see_ranges)
        calls = mpi.Calls(database, host)
        self._stream_mpi(calls, None)
        self._stream("host_ranges", host.os_calls())
        self._stream("host_ranges", Directives(reader, strings, repairs, host).read())
        self._stream("gpu_ops", GpuOps(strings, devices, kinds, repairs).read(reader), seen.see_gpu_ops)
        last = seen.last_ns or 0
        self._stream("api_calls", host.api_calls(last), seen.see_api_calls)
        self._stream("host_ranges", host.ranges(last), seen.see_ranges)
        self._stream_mpi(calls, last)
        self._stream("host_ranges", host.os_calls(last))
        users = host.using_gpu | {process for process, _ in seen.places if process is not None}
        self._stream("cpu_samples", stacks.read_samples(reader, database, strings, users, host.launching, seen.samples))
        self._stream("thread_runs", switches.read_runs(reader, users, repairs))
        self._stream("page_faults", faults.read_faults(reader, devices, kinds, repairs, nameless))
        self._stream("overheads", host.overheads(last))
        nccl = Nccl(database, strings, nameless)
        self._stream("collectives", nccl.read())
        nccl.report(self._sink)
        self._stream("stream_events", stream_events.read(reader, devices))
        self._stream("stream_events", stream_events.kinds(reader))
        self._stream("memory_events", samples.read_memory_events(reader, devices, kinds, repairs, nameless))
        self._stream("counters", samples.read_counters(reader, database, devices, repairs))
        self._stream("counters", read_network_counters(reader, database, repairs))
        processes = seen.processes or ({nameless} if seen.gpu_ops else set())
        used = {gpu for _, gpu in seen.places if gpu is not None}
        self._stream("devices", about.read_devices(database, devices, used, repairs))
        described = about.read_processes(database, processes, facts.host)
        self._stream("processes", described)
        self._stream("threads", about.read_threads(database, strings, processes))
        self._meter.finish()
        calls.report(self._sink)
        self._report(facts, strings, devices, processes, calls.world)

        single = len(processes) == 1
        by_mpi = calls.world.rank_of(min(processes)) if single and facts.rank is None else None
        names = [name for batch in described for name in batch["name"].to_pylist()]
        return FileFacts(
            producer=f"Nsight Systems {facts.version or ''}".strip(),
            process=min(processes) if single else None,
            rank=(facts.rank if by_mpi is None else by_mpi) if single else None,
            world_size=(facts.world_size or calls.world.size) if single else None,
            clock_base_ns=facts.clock_base_ns,
            rank_source="content"
            if by_mpi is not None
            else "environment"
            if single and facts.rank is not None
            else None,
            several=len(processes) > 1,
            versions={"NVIDIA driver": facts.driver} if facts.driver else {},
            traits=program.traits(database, names, facts.capture, strings),
            traced=program.traced_kinds(database, facts.capture),
            recorded_ns=facts.recorded_ns,
            bounded=facts.bounded,
        )

    def _stream(
        self, table: str, batches: Iterable[pa.Table], see: Callable[[pa.Table], None] = lambda batch: None
    ) -> None:
        for batch in batches:
            if batch.num_rows:
                see(batch)
                self._sink.add(table, batch)

    def _stream_mpi(self, calls: mpi.Calls, last: int | None) -> None:
        for ranges, arguments in calls.read(last):
            self._stream("host_ranges", [ranges])
            self._stream("mpi_calls", [arguments])

    def _report(self, facts: About, strings: Strings, devices: Devices, processes: set[int], world: mpi.World) -> None:
        """Say what was met and what it means for the rules."""
        sink, seen = self._sink, self._coverage
        facts.report(sink)
        seen.report(self._database, facts, devices, read_diagnostics(self._database), sink)
        if seen.whole_graphs:
            sink.health(
                GRAPHS_HIDDEN,
                LOW,
                "CUDA graphs were recorded as a whole: the kernels inside are hidden, and rules about kernels do not "
                "see them; record with nsys profile --cuda-graph-trace=node",
                seen.whole_graphs,
            )
        self._repairs.report(sink)
        if strings.doubled:
            message = "ids of the string table stand for several strings: names that have them may be wrong"
            sink.health(NOT_ALL_READ, LOW, message, strings.doubled)
        if len(processes) > 1:
            known = [rank for process in processes if (rank := world.rank_of(process)) is not None]
            message = "several processes and no word of their ranks: GPUs are told apart by their device number"
            if known:
                message = (
                    "several ranks of MPI in one file: GPUs stand for ranks, and who waits for whom is told only where each has a GPU "
                    "of its own; one report a rank says more (nsys started under mpirun or srun)"
                )
            sink.health(RANKS_IN_DOUBT, LOW if known else INFO, message, len(processes))
