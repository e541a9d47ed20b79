"""What an export says of itself: versions, clock, rank, hardware, processes, and what went wrong while recording."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.nsys import tables
from traceanalyzer.ingest.nsys.database import Database
from traceanalyzer.ingest.nsys.lookups import Strings, integers
from traceanalyzer.ingest.nsys.tables import PID_BITS, Table

NEWEST_MAJOR = 3
_ERROR = 3
_LOSS = re.compile(r"drop|lost|los[es]|overflow|discard|miss(?:ed|ing)|not (?:all|every)|incomplete|exhausted", re.I)
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_NPROCS")


@dataclass(frozen=True)
class About:
    """Facts of the whole file; None where it is silent. `environment` holds only the variables that tell ranks."""

    version: str | None
    major: int | None
    excluded: str | None
    clock_base_ns: int | None
    host: str | None
    environment: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, database: Database) -> About:
        """From the tables of metadata, any of which may be absent."""
        export = dict(_pairs(database, tables.EXPORT_FACTS))
        system = {name.lower(): value for name, value in _pairs(database, tables.SYSTEM_FACTS)}
        return cls(
            version=export.get("EXPORT_PRODUCT_VERSION") or None,
            major=_integer(export.get("EXPORT_SCHEMA_VERSION_MAJOR") or export.get("EXPORT_SCHEMA_VERSION", "")),
            excluded=export.get("EXPORT_PARAM_TABLES_TO_EXPORT") or None,
            clock_base_ns=_clock_base(database, export),
            host=system.get("hostname") or None,
            environment=_environment(_pairs(database, tables.CAPTURE_FACTS)),
        )

    @property
    def rank(self) -> int | None:
        """The rank of the recorded process, if the recorded environment has it."""
        return next((self.environment[name] for name in _RANK if name in self.environment), None)

    @property
    def world_size(self) -> int | None:
        """The size of the job, if the recorded environment has it."""
        return next((self.environment[name] for name in _WORLD if name in self.environment), None)

    def report(self, sink: Sink) -> None:
        """Say what the rules must know of how the file was made."""
        if self.excluded:
            sink.health(
                "TRC009",
                "low",
                "the export holds only some tables: rules that need the others cannot judge; "
                "export again without --tables",
                example=self.excluded,
            )
        if self.major is not None and self.major > NEWEST_MAJOR:
            sink.health(
                "TRC001",
                "low",
                f"the export's schema is newer than the newest one known ({NEWEST_MAJOR}): "
                "some tables may be read wrongly",
                example=f"schema {self.major}",
            )


def report_diagnostics(database: Database, sink: Sink) -> None:
    """Pass on the errors that Nsight Systems met while recording. Its warnings are routine: every file has some."""
    sql = tables.select(database, tables.DIAGNOSTICS, f"severity = {_ERROR}")
    found = database.table(sql) if sql else None
    texts: list[str] = found["text"].to_pylist() if found else []
    lost = [text for text in texts if _LOSS.search(text)]
    other = [text for text in texts if not _LOSS.search(text)]
    if lost:
        message = "Nsight Systems lost records: idle time and counts may be wrong; record a shorter stretch"
        sink.health("TRC003", "low", message, len(lost), lost[0])
    if other:
        message = "Nsight Systems met errors while recording: something may be missing; see its diagnostics"
        sink.health("TRC003", "info", message, len(other), other[0])


def read_devices(database: Database, used: set[int]) -> list[pa.Table]:
    """The table `devices`: CUDA GPUs that the file describes; other display adapters only if something ran on them."""
    sql = tables.select(database, tables.GPU, "device is not null", "device")
    found = database.table(sql) if sql else None
    if found is None:
        return []
    rows: dict[int, dict[str, Any]] = {}
    for row in found.to_pylist():
        if row["device"] in used or row["sm_count"] or row["compute_major"]:
            rows.setdefault(row["device"], {name: None if value == "" else value for name, value in row.items()})
    return [pa.Table.from_pylist(list(rows.values()), schema=_DEVICES)] if rows else []


_DEVICES = pa.schema(
    [
        ("device", pa.int32()),
        ("name", pa.string()),
        ("compute_major", pa.int32()),
        ("compute_minor", pa.int32()),
        ("sm_count", pa.int32()),
        ("memory", pa.int64()),
        ("uuid", pa.string()),
    ]
)


def read_processes(database: Database, seen: set[int], host: str | None) -> list[pa.Table]:
    """The table `processes`: those with GPU or host events, of the hundreds on a machine."""
    sql = tables.select(database, tables.PROCESSES, "process is not null and name <> ''", "process, name")
    found = database.table(sql) if sql else None
    names = dict(zip(found["process"].to_pylist(), found["name"].to_pylist(), strict=True)) if found else {}
    order = sorted(seen)
    columns = {
        "process": pa.array(order, pa.int64()),
        "pid": pa.array([process & PID_BITS for process in order], pa.int64()),
        "name": pa.array([names.get(process) for process in order], pa.string()),
        "host": pa.array([host] * len(order), pa.string()),
    }
    return [pa.table(columns)] if order else []


def read_threads(database: Database, strings: Strings, seen: set[int]) -> list[pa.Table]:
    """The table `threads`: named threads of those processes; of several names the one with the highest priority."""
    sql = tables.select(
        database, tables.THREADS, "process is not null and name is not null", "process, thread, priority desc, name"
    )
    found = database.table(sql) if sql else None
    if found is None:
        return []
    keys = [integers(found[name].combine_chunks()) for name in ("process", "thread", "name")]
    rows: dict[tuple[int, int], int] = {}
    for process, thread, name in zip(*(column.tolist() for column in keys), strict=True):
        if process in seen:
            rows.setdefault((process, thread), name)
    columns = {
        "process": pa.array([process for process, _ in rows], pa.int64()),
        "thread": pa.array([thread for _, thread in rows], pa.int64()),
        "name": pa.array([strings.name(name) for name in rows.values()], pa.string()),
    }
    return [pa.table(columns)] if rows else []


def _pairs(database: Database, table: Table) -> list[tuple[str, str]]:
    sql = tables.select(database, table, order="name, value")
    found = database.table(sql) if sql else None
    return list(zip(found["name"].to_pylist(), found["value"].to_pylist(), strict=True)) if found else []


def _integer(text: str) -> int | None:
    match = re.match(r"\s*(-?\d+)", text)
    return int(match.group(1)) if match else None


def _clock_base(database: Database, export: dict[str, str]) -> int | None:
    """Epoch time of the file's zero, in ns. An export may have been shifted, or put on the epoch itself."""
    shift = _integer(export.get("EXPORT_PARAM_TIME_SHIFT", "")) or 0
    if export.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() in ("true", "1"):
        return -shift
    sql = tables.select(database, tables.SESSION_START, "utc_ns > 0", "utc_ns")
    found = database.table(sql) if sql else None
    return int(found["utc_ns"][0].as_py()) - shift if found else None


def _environment(rows: list[tuple[str, str]]) -> dict[str, int]:
    """Variables that tell ranks: rows named `RANK` or `...:RANK`, and values that hold `RANK=3`."""
    found: dict[str, int] = {}
    pattern = re.compile(rf"(?:^|[:=;,\s\"'])({'|'.join((*_RANK, *_WORLD))})=[\"']?(\d{{1,9}})(?![\w.])")
    for name, value in rows:
        for variable, number in pattern.findall(f"{name}={value}"):
            found.setdefault(variable, int(number))
    return found
