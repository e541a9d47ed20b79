"""What an export holds and what it lacks, and why: work that was not recorded must not look like a GPU that stood idle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.about import About
from traceanalyzer.ingest.formats.nsys.contexts import Contexts
from traceanalyzer.ingest.formats.nsys.diagnostics import Diagnostic, doubting, report_diagnostics
from traceanalyzer.ingest.formats.nsys.events.stacks import Seen
from traceanalyzer.ingest.formats.nsys.graphics import Graphics
from traceanalyzer.ingest.formats.nsys.lookups import Devices, integers
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PID_BITS, Table
from traceanalyzer.ingest.formats.nsys.unread import count_unread
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import (
    GPU_WORK_MISSING,
    GRAPHS_HIDDEN,
    NOT_ALL_READ,
    NOT_RECORDED,
    RANKS_IN_DOUBT,
    HealthCode,
)
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW, MEDIUM, Severity

_NAMED = 3
# Tables of other recordings than ours, and what is in them.
_OTHERS = {
    "SAMPLING_CALLCHAINS": "CPU samples",
    "COMPOSITE_EVENTS": "CPU samples",
    "SCHED_EVENTS": "CPU scheduling",
    "OSRT_API": "calls of the operating system",
    "GPU_METRICS": "GPU metrics",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": "constructs of OpenACC",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "constructs of OpenACC",
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": "constructs of OpenACC",
    "OPENMP_EVENT_KIND_PARALLEL": "regions of OpenMP",
    "CUDA_HOST_CALLBACK": "host functions of streams",
    "NET_NIC_METRIC": "counters of network cards",
    "GPU_CONTEXT_SWITCH_EVENTS": "switches of the GPU's context",
}
_NO_WORK = (
    *("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
    # A stream that waits for a host function; the function is read.
    "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH",
)


@dataclass
class Coverage:
    """Counts what the rows were, while they go by in batches that are not empty."""

    gpu_ops: int = 0
    whole_graphs: int = 0
    graph_nodes: int = 0
    calls: int = 0
    launches: int = 0
    graph_launches: int = 0
    ranges: int = 0
    last_ns: int | None = None
    window_ns: tuple[int, int] | None = None
    """From the first to the last GPU operation."""
    processes: set[int] = field(default_factory=set)
    places: set[tuple[int | None, int | None]] = field(default_factory=set)
    """(process, GPU) of GPU operations."""
    samples: Seen = field(default_factory=Seen)

    def see_gpu_ops(self, batch: pa.Table) -> None:
        """Take a batch of `gpu_ops`."""
        self._see(batch)
        self.gpu_ops += batch.num_rows
        times = [pc.min(batch["start_ns"]).as_py(), pc.max(batch["end_ns"]).as_py(), *(self.window_ns or ())]
        self.window_ns = min(times), max(times)
        self.whole_graphs += _count(batch["kind"], lambda kind: kind == "graph")
        if "graph_node_id" in batch.column_names:
            self.graph_nodes += batch.num_rows - batch["graph_node_id"].null_count
        for process in batch["process"].unique().to_pylist():
            own = pc.equal(batch["process"], process) if process is not None else pc.is_null(batch["process"])
            self.places.update((process, gpu) for gpu in batch["device"].filter(own).unique().to_pylist())

    def see_api_calls(self, batch: pa.Table) -> None:
        """Take a batch of `api_calls`."""
        self._see(batch)
        self.calls += batch.num_rows
        self.launches += _count(batch["class"], lambda kind: kind == "launch")
        self.graph_launches += _count(batch["name"], lambda name: "GraphLaunch" in name)

    def see_ranges(self, batch: pa.Table) -> None:
        """Take a batch of `host_ranges`."""
        self._see(batch)
        self.ranges += batch.num_rows

    def _see(self, batch: pa.Table) -> None:
        self.processes.update(batch["process"].unique().drop_null().to_pylist())
        last = pc.max(batch["end_ns"]).as_py()
        self.last_ns = last if self.last_ns is None else max(self.last_ns, last)

    def report(self, database: Database, about: About, devices: Devices, said: list[Diagnostic], sink: Sink) -> None:
        """Say what is missing, why as far as the file tells, and what to do. `said` is what the profiler says of it."""
        for table in _EVENTS:
            _report_unreadable(database, table, sink)
            _report_versions(database, table, sink)
        _report_unknown(database, sink)
        graphics = Graphics.read(database)
        if not self.gpu_ops:
            why = self._why_no_gpu_work(about, graphics, doubting(said))
            if why is not None:
                sink.health(why[0], HIGH, why[1], example=self._contents(database, graphics))
                said = [one for one in said if one.quoted not in why[1]]
        else:
            graphics.report(sink)
            if not self.calls:
                sink.health(NOT_RECORDED, LOW, _why_no_calls(about))
        if self.graph_launches and not self.whole_graphs and not self.graph_nodes and _tells_graphs(database):
            message = (
                "CUDA graphs were launched, but nothing that they ran is in the file: the GPU was busy where it looks idle; "
                "export all tables, or record with nsys profile --cuda-graph-trace=node"
            )
            sink.health(GRAPHS_HIDDEN, HIGH, message, self.graph_launches)
        report_diagnostics(said, sink)
        if rest := count_unread(database):
            message = (
                "what else the file holds is not read: what is said of the host and the machine knows nothing of it"
            )
            sink.health(
                NOT_RECORDED, INFO, message, sum(rest.values()), ", ".join(f"{n:,} {kind}" for kind, n in rest.items())
            )
        if self.window_ns is not None:
            own = {process & PID_BITS for process, _ in self.places if process is not None}
            Contexts.read(database, devices, *self.window_ns).report(own, sink)
        _report_samples(self.samples, database, bool(self.gpu_ops), sink)
        self._report_places(devices, sink)

    def _why_no_gpu_work(
        self, about: About, graphics: Graphics, doubts: list[Diagnostic]
    ) -> tuple[HealthCode, str] | None:
        """The code of the cause and what to say. None: that launches left no work is said of traces of all formats."""
        if about.left_out(tables.KERNEL):
            return NOT_RECORDED, "the tables of GPU work were left out at export; export again without --tables"
        if self.launches and not (graphics.rows or about.cuda_traced is False or about.trimmed or doubts):
            return None
        if graphics.rows:
            why = f"the file holds graphics work ({graphics}), which is not read, and no work of CUDA"
        elif about.cuda_traced is False:
            why = "CUDA was not traced, so no GPU work was recorded; record with nsys profile --trace=cuda,nvtx"
        elif about.trimmed:
            why = "no GPU work lies in the part of the recording that was exported; export all of it"
        elif doubts:
            calls = f"{self.calls:,} CUDA calls were recorded, but" if self.calls else "CUDA was traced, but"
            ran = "what these ran is missing" if self.launches else "whether any ran cannot be told"
            if any("driver" in one.text.lower() for one in doubts):
                ran += "; record with an nsys as new as the driver"
            words = ", ".join(one.quoted for one in doubts)
            why = f"{calls} no work of the GPU, and {ran}. Nsight Systems says: {words}"
        elif about.cuda_traced or self.calls:
            why = "CUDA was traced, but nothing was launched: the GPU was not used while nsys recorded"
        else:
            why = (
                "no GPU work was recorded, and the file does not say whether CUDA was traced; "
                "record with nsys profile --trace=cuda,nvtx"
            )
        return GPU_WORK_MISSING, why

    def _contents(self, database: Database, graphics: Graphics) -> str:
        """What the file does hold, for one who wonders."""
        counted = ((self.ranges, "NVTX ranges"), (self.calls, "CUDA API calls"))
        held = [f"{count:,} {what}" for count, what in counted if count]
        held += [str(graphics)] if graphics.rows else []
        held += _others(database)
        return f"the file holds {', '.join(held) or 'no events'}"

    def _report_places(self, devices: Devices, sink: Sink) -> None:
        users: dict[int | None, set[int]] = {}
        for process, gpu in self.places:
            if process is not None:
                users.setdefault(gpu, set()).add(process)
        if any(len({process >> PID_BITS.bit_length() for process in found}) > 1 for found in users.values()):
            message = (
                "GPUs of several hosts have the same number in this file, so their work cannot be told apart; "
                "export the report of each host on its own"
            )
            sink.health(RANKS_IN_DOUBT, HIGH, message)
        shared = sum(len(found) > 1 for found in users.values())
        if shared and devices.told:
            message = "several processes ran on the same GPU: it counts as idle only where none of them used it"
            sink.health(RANKS_IN_DOUBT, INFO, message, shared)
        elif shared:
            message = (
                "several processes used a GPU of the same number, and the file does not say whether it was the same GPU: "
                "it counts as idle only where none of them used it, which hides idle time if there were several"
            )
            sink.health(RANKS_IN_DOUBT, LOW, message, shared)


# What is read, and waits and marks on streams; each also with the number of a later version.
_KNOWN = re.compile(
    rf"(?:{'|'.join([*(name for table in tables.GPU_WORK for name in table.names), *_NO_WORK])})(?:_V\d+)?",
    re.IGNORECASE,
)
_ON_STREAMS = """
    select cast(m.name as text) as name from sqlite_master m, pragma_table_info(m.name) c
    where m.type = 'table' and lower(c.name) in ('start', 'end', 'deviceid', 'streamid')
    group by m.name having count(distinct lower(c.name)) = 4
"""
_EVENTS = (
    *tables.GPU_WORK,
    *(tables.RUNTIME, tables.NVTX, *tables.MPI_CALLS, tables.OS_CALLS),
    *(*tables.OPENACC, *tables.OPENMP.values(), tables.CALLBACKS),
    *(tables.DEVICE_MEMORY, tables.GPU_METRICS, *tables.NETWORK, tables.CONTEXT_SWITCHES),
    *(tables.SAMPLES, tables.SAMPLE_STACKS, tables.OS_STACKS, tables.SWITCHES, tables.HOST_FAULTS, tables.GPU_FAULTS),
)


def _others(database: Database) -> list[str]:
    """What else the file holds, each kind once."""
    named = ((database.find(name), what) for name, what in _OTHERS.items())
    return list(dict.fromkeys(what for name, what in named if name is not None and database.has_rows(name)))


def _report_samples(seen: Seen, database: Database, used: bool, sink: Sink) -> None:
    """Say which CPU samples tell nothing, and why. `used` says that the file holds GPU work."""
    stacks = selects.find(database, tables.SAMPLE_STACKS)
    if not seen.samples:
        if stacks is not None and selects.spelling(database, tables.SAMPLES) is None and database.has_rows(stacks):
            message = "the stacks of CPU samples are in the file, but not the samples; export again without --tables"
            sink.health(NOT_RECORDED, INFO, message)
    elif used and not seen.own:
        message = "CPU samples are those of processes that use no GPU, and were not read"
        sink.health(NOT_RECORDED, INFO, message, seen.samples)
    elif seen.own and not seen.with_stack:
        message = "CPU samples have no stacks, and so name nothing; record with nsys profile --backtrace=dwarf, and export all tables"
        sink.health(NOT_RECORDED, INFO, message, seen.own)


def _report_unreadable(database: Database, table: Table, sink: Sink) -> None:
    """Say that a table with rows could not be read, because a column is missing."""
    name = selects.spelling(database, table)
    missing = selects.lacking(database, table, name) if name is not None else []
    if name is None or not missing or not database.has_rows(name):
        return
    message = "a table without a needed column was not read: what it holds is missing; export the report again"
    severity: Severity = HIGH if table in tables.GPU_WORK else LOW
    sink.health(NOT_ALL_READ, severity, message, example=f"{name} without {', '.join(missing)}")


def _report_versions(database: Database, table: Table, sink: Sink) -> None:
    """Say that only one of several tables of one kind was read."""
    found = [version for name in table.names for version in database.versions(name)]
    others = [version for version in found[1:] if database.has_rows(version)]
    if others:
        message = "of several versions of one table only one was read: what the others hold is missing"
        sink.health(NOT_ALL_READ, MEDIUM, message, len(others), f"{found[0]}, not {', '.join(others[:_NAMED])}")


def _report_unknown(database: Database, sink: Sink) -> None:
    """Say that tables whose rows lie on streams of GPUs could not be read, because nobody knows what they hold."""
    found = database.table(_ON_STREAMS)
    names = [str(name) for name in found["name"].to_pylist()] if found else []
    rows = {name: database.row_count(name) for name in names if not _KNOWN.fullmatch(name)}
    if unknown := [name for name in sorted(rows) if rows[name]]:
        message = "tables of work on streams of a GPU that are not known were not read: the GPU may be busy where it looks idle"
        sink.health(NOT_ALL_READ, MEDIUM, message, sum(rows.values()), ", ".join(unknown)[:200])


def _why_no_calls(about: About) -> str:
    effect = "why the GPU waited cannot be told, and launches are not judged"
    if about.left_out(tables.RUNTIME):
        return f"the table of CUDA API calls was left out at export: {effect}; export again without --tables"
    return f"the file has GPU work but no CUDA API calls: {effect}; export all of the report"


def _tells_graphs(database: Database) -> bool:
    """Whether this version of the export marks kernels inside of graphs."""
    name = selects.find(database, tables.KERNEL)
    return name is None or "graph_node" in selects.plain(database, tables.KERNEL, name)


def _count(names: pa.ChunkedArray, counts: Callable[[str], bool]) -> int:
    """How many rows have a name that counts."""
    encoded = names.combine_chunks()
    flags = np.array([counts(name) for name in encoded.dictionary.to_pylist()], bool)
    return int(flags[integers(encoded.indices)].sum())
