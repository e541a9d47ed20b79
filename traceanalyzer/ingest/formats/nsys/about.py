"""What an export says of itself: versions, clock, rank, hardware and processes."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import field
from typing import Any

import pyarrow as pa

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.lookups import Devices, Strings, processes, threads
from traceanalyzer.ingest.formats.nsys.repairs import Repairs
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.ingest.formats.nsys.sqlite.tables import PID_BITS, Table
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import NOT_ALL_READ, NOT_RECORDED
from traceanalyzer.vocabulary.levels import INFO, LOW

NEWEST_MAJOR = 3
_MOST_DIGITS = 18
# All names of tables together have some KB.
_LONGEST_LIST = 16 << 10
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_NPROCS")


@dataclass(frozen=True)
class About:
    """Facts of the whole file; None where it is silent.

    `exported` are the patterns of the tables that the export was limited to, `trimmed` the times. `environment` holds only
    the variables that tell ranks, `capture` are the facts of the recording as they stand. `recorded_ns` and
    `bounded` as in `FileFacts`.
    """

    version: str | None
    major: int | None
    exported: str | None
    trimmed: str | None
    cuda_traced: bool | None
    clock_base_ns: int | None
    host: str | None
    environment: dict[str, int] = field(default_factory=dict)
    driver: str | None = None
    capture: tuple[tuple[str, str], ...] = ()
    recorded_ns: tuple[int, int] | None = None
    bounded: bool = False

    @classmethod
    def read(cls, database: Database) -> About:
        """From the tables of metadata, any of which may be absent."""
        export = dict(_pairs(database, tables.EXPORT_FACTS))
        capture = _pairs(database, tables.CAPTURE_FACTS)
        system = {name.lower(): value for name, value in _pairs(database, tables.SYSTEM_FACTS)}
        return cls(
            version=export.get("EXPORT_PRODUCT_VERSION") or None,
            major=_integer(export.get("EXPORT_SCHEMA_VERSION_MAJOR") or export.get("EXPORT_SCHEMA_VERSION", "")),
            exported=export.get("EXPORT_PARAM_TABLES_TO_EXPORT") or None,
            trimmed=export.get("EXPORT_PARAM_TIMES_TO_EXPORT") or None,
            cuda_traced=_cuda_traced(capture),
            clock_base_ns=_clock_base(database, export),
            host=system.get("hostname") or None,
            environment=_environment(capture),
            driver=system.get("nvdriverversion") or None,
            capture=tuple(capture),
            recorded_ns=_recorded(database, export),
            bounded=bool(export.get("EXPORT_PARAM_TIMES_TO_EXPORT")) or _bounded(capture),
        )

    @property
    def rank(self) -> int | None:
        """The rank of the recorded process, if the recorded environment has it."""
        return next((self.environment[name] for name in _RANK if name in self.environment), None)

    @property
    def world_size(self) -> int | None:
        """The size of the job, if the recorded environment has it."""
        return next((self.environment[name] for name in _WORLD if name in self.environment), None)

    def left_out(self, table: Table) -> bool:
        """Whether the export was limited to tables that do not include this one."""
        patterns = [pattern.strip().lower() for pattern in (self.exported or "")[:_LONGEST_LIST].split(",")]
        return self.exported is not None and not any(
            fnmatch.fnmatchcase(name.lower(), pattern) for name in table.names for pattern in patterns
        )

    def report(self, sink: Sink) -> None:
        """Say what the rules must know of how the file was made."""
        if self.exported:
            sink.health(
                NOT_RECORDED,
                LOW,
                "the export holds only some tables: rules that need the others cannot judge; "
                "export again without --tables",
                example=self.exported,
            )
        if self.trimmed:
            message = "the export holds only a part of the recording: what lies outside of it is not judged"
            sink.health(NOT_RECORDED, INFO, message, example=self.trimmed)
        if self.major is not None and self.major > NEWEST_MAJOR:
            sink.health(
                NOT_ALL_READ,
                LOW,
                f"the export's schema is newer than the newest one known ({NEWEST_MAJOR}): "
                "some tables may be read wrongly",
                example=f"schema {self.major}",
            )


def read_devices(database: Database, devices: Devices, used: set[int], repairs: Repairs) -> list[pa.Table]:
    """The table `devices`: CUDA GPUs that the file describes; other display adapters only if something ran on them."""
    sql = selects.select(database, tables.GPU, "device is not null", "device")
    found = database.table(sql) if sql else None
    if found is None:
        return []
    for name in ("device", "compute_major", "compute_minor", "sm_count"):
        numbers = repairs.small(found[name].combine_chunks().cast(pa.int64()))
        found = found.set_column(found.schema.get_field_index(name), name, numbers)
    found = found.filter(found["device"].is_valid())
    rows: dict[int, dict[str, Any]] = {}
    adapters = found.select(_DEVICES.names).to_pylist()
    # Those of CUDA have their number, whatever else has the same.
    for row in sorted(
        adapters,
        key=lambda row: (not (row["sm_count"] or row["compute_major"]), [str(value) for value in row.values()]),
    ):
        row["device"] = devices.number(row["device"])
        if row["device"] in used or row["sm_count"] or row["compute_major"]:
            rows.setdefault(row["device"], {name: None if value == "" else value for name, value in row.items()})
    return [pa.Table.from_pylist([rows[device] for device in sorted(rows)], schema=_DEVICES)] if rows else []


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
    sql = selects.select(database, tables.PROCESSES, "owner is not null and name <> ''", "owner, name")
    found = database.table(sql) if sql else None
    ids = processes(found["owner"].combine_chunks()).to_pylist() if found else []
    names = dict(zip(ids, found["name"].to_pylist(), strict=True)) if found else {}
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
    sql = selects.select(
        database, tables.THREADS, "caller is not null and name is not null", "caller, priority desc, name"
    )
    found = database.table(sql) if sql else None
    if found is None:
        return []
    caller = found["caller"].combine_chunks()
    keys = zip(processes(caller).to_pylist(), threads(caller).to_pylist(), strict=True)
    names = strings.names(found["name"].combine_chunks(), None).to_pylist()
    rows: dict[tuple[int, int], str] = {}
    for key, name in zip(keys, names, strict=True):
        if key[0] in seen:
            rows.setdefault(key, name)
    columns = {
        "process": pa.array([process for process, _ in rows], pa.int64()),
        "thread": pa.array([thread for _, thread in rows], pa.int64()),
        "name": pa.array(list(rows.values()), pa.string()),
    }
    return [pa.table(columns)] if rows else []


def _pairs(database: Database, table: Table) -> list[tuple[str, str]]:
    sql = selects.select(database, table, order="name, value")
    found = database.table(sql) if sql else None
    return list(zip(found["name"].to_pylist(), found["value"].to_pylist(), strict=True)) if found else []


def _cuda_traced(capture: list[tuple[str, str]]) -> bool | None:
    """Whether CUDA was traced for any process; None when the file does not say."""
    told = {value.lower() == "true" for name, value in capture if name.endswith("COLLECT_CUDA_TRACE")}
    events = {value.lower() for name, value in capture if name == "CAPTURE_EVENT_TYPE"}
    if not told and not events:
        return None
    return True in told or "cuda" in events


def _integer(text: str) -> int | None:
    """The number that a text begins with; None where it has none, or one that no clock or version has."""
    match = re.match(rf"\s*(-?\d{{1,{_MOST_DIGITS}}})(?!\d)", text)
    return int(match.group(1)) if match else None


def _clock_base(database: Database, export: dict[str, str]) -> int | None:
    """Epoch time of the file's zero, in ns. An export may have been shifted, or put on the epoch itself."""
    shift = _integer(export.get("EXPORT_PARAM_TIME_SHIFT", "")) or 0
    if export.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() in ("true", "1"):
        return -shift
    sql = selects.select(database, tables.SESSION_START, "utc_ns > 0", "utc_ns")
    found = database.table(sql) if sql else None
    return int(found["utc_ns"][0].as_py()) - shift if found else None


def _recorded(database: Database, export: dict[str, str]) -> tuple[int, int] | None:
    """From when to when was recorded, in the file's time, whose zero is the start of the recording unless the export was shifted."""
    sql = selects.select(database, tables.ANALYSIS, "duration > 0", "duration desc")
    found = database.table(sql) if sql else None
    if not found:
        return None
    start = _integer(export.get("EXPORT_PARAM_TIME_SHIFT", "")) or 0
    if export.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() in ("true", "1"):
        begun = selects.select(database, tables.SESSION_START, "utc_ns > 0", "utc_ns")
        started = database.table(begun) if begun else None
        if not started:
            return None
        start += int(started["utc_ns"][0].as_py())
    return start, start + int(found["duration"][0].as_py())


def _bounded(capture: list[tuple[str, str]]) -> bool:
    """Whether a call or a range of the program began the recording (`--capture-range`)."""
    told = {name: value.lower() for name, value in capture}
    return told.get("START_TRIGGER", "immediate") not in ("immediate", "none", "")


def _environment(rows: list[tuple[str, str]]) -> dict[str, int]:
    """Variables that tell ranks: rows named `RANK` or `...:RANK`, and values that hold `RANK=3`."""
    found: dict[str, int] = {}
    pattern = re.compile(rf"(?:^|[:=;,\s\"'])({'|'.join((*_RANK, *_WORLD))})=[\"']?(\d{{1,9}})(?![\w.])")
    for name, value in rows:
        for variable, number in pattern.findall(f"{name}={value}"):
            found.setdefault(variable, int(number))
    return found
