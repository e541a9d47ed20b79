"""Records of NCCL made by hand: dumps as PyTorch pickles and writes them, lines of Inspector, output of nccl-tests."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import traceanalyzer as ta
from traceanalyzer.analysis import Analysis, analyze_parts, load, parts_of
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.nccl_records import KIND
from traceanalyzer.ingest.bytes.source import source_of

START = 1_795_885_170_000_000_000
MS = 1_000_000


def frame(line: int, name: str = "step", file: str = "train.py") -> dict[str, Any]:
    return {"name": name, "filename": file, "line": line}


def entry(
    number: int,
    operation: str = "all_reduce",
    at: float = 0.0,
    state: str = "completed",
    sizes: Sequence[int] = (1024,),
    line: int | None = 12,
    group: tuple[str, str] | None = ("0", "default_pg"),
    **more: Any,
) -> dict[str, Any]:
    """The call `number` (from 1 on), made `at` ms; complete a millisecond later."""
    created = START + round(at * MS)
    found: dict[str, Any] = {
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": group,
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": created,
        "input_sizes": [list(sizes)],
        "input_dtypes": ["Float"],
        "output_sizes": [list(sizes)],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": created + MS if state == "completed" else None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": False,
    }
    if line is not None:
        library = frame(83, "wrapper", "/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py")
        found = {"frames": [library, frame(line)], **found}
    return found | more


def dump(
    entries: Sequence[dict[str, Any]] | None,
    groups: dict[str, Sequence[int]] | None = None,
    status: dict[str, tuple[int, int, int]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A dump of version 2.10; the default group has two ranks."""
    groups = {"0": (0, 1)} if groups is None else groups
    found: dict[str, Any] = {
        "version": "2.10",
        "pg_config": {
            name: {"name": name, "desc": "default_pg" if name == "0" else f"mesh_{name}", "ranks": str(list(ranks))}
            for name, ranks in groups.items()
        },
        "comm_lib_version": "2.28.9",
        "pg_status": {
            name: dict(
                zip(
                    ("last_enqueued_collective", "last_started_collective", "last_completed_collective"),
                    one,
                    strict=True,
                )
            )
            for name, one in (status or {}).items()
        },
    }
    if entries is not None:
        found["entries"] = list(entries)
    return found | more


def rounds(count: int = 18, late: float = 0.0, every: float = 10.0, **more: Any) -> list[dict[str, Any]]:
    """So many all-reduces, one `every` ms, each called `late` ms after that."""
    return [entry(n, at=n * every + late, **more) for n in range(1, count + 1)]


class _Torch:
    """Pickles as PyTorch's own pickler does: protocol 2, strings and frames numbered once each, integers of 1, 4 or 8 bytes."""

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.strings: dict[str, int] = {}
        self.frames: dict[tuple[str, ...], int] = {}
        self.count = 0

    def put(self) -> None:
        self.out += b"q" + bytes((self.count,)) if self.count < 256 else b"r" + struct.pack("<I", self.count)
        self.count += 1

    def write(self, value: Any) -> None:
        match value:
            case None | True | False:
                self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
            case int():
                self._int(value)
            case float():
                self.out += b"G" + struct.pack(">d", value)
            case str():
                self._text(value)
            case tuple():
                for one in value:
                    self.write(one)
                self.out += b"\x86"
            case list():
                self.out += b"]("
                for one in value:
                    self.write(one)
                self.out += b"e"
            case {"filename": _} if (key := tuple(map(str, value.values()))) in self.frames:
                self._get(self.frames[key])
            case dict():
                self.out += b"}("
                for key, one in value.items():
                    self.write(key)
                    self.write(one)
                self.out += b"u"
                if "filename" in value:
                    self.frames[tuple(map(str, value.values()))] = self.count
                    self.put()

    def _get(self, number: int) -> None:
        self.out += b"h" + bytes((number,)) if number < 256 else b"j" + struct.pack("<I", number)

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += b"K" + bytes((value,))
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def _text(self, value: str) -> None:
        if value in self.strings:
            self._get(self.strings[value])
            return
        data = value.encode()
        self.out += b"X" + struct.pack("<I", len(data)) + data
        self.strings[value] = self.count
        self.put()


def pickled(value: Any) -> bytes:
    torch = _Torch()
    torch.write(value)
    return bytes(torch.out + b".")


def as_json(content: dict[str, Any]) -> bytes:
    """As `_dump_nccl_trace_json` writes it: keys by the alphabet, no frames, 0 for no time, and text for the numbers of `pg_status`."""
    found = json.loads(json.dumps(content))
    for one in found.get("entries", []):
        one.pop("frames", None)
        for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            one[name] = one.get(name) or 0
    for one in found.get("pg_status", {}).values():
        one.update({name: str(value) for name, value in one.items()})
    if not found.get("entries"):
        found.pop("entries", None)
    return json.dumps(found, sort_keys=True).encode()


def inspector(
    version: str, calls: Sequence[tuple[int, int, int]], rank: int = 0, ranks: int = 2, start: bool = False
) -> bytes:
    """Lines of Inspector of all-reduces of (number, bytes, microseconds), with times of calls where `start` asks for them."""
    header = {"id": "0x7f8c496ae9f661", "comm_name": "unknown", "rank": rank, "n_ranks": ranks, "nnodes": 1}
    metadata = {
        "inspector_output_format_version": version,
        "git_rev": "",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": START // 1000 + 1_000_000,
        "hostname": "node0",
        "pid": 4242 + rank,
    }
    lines: list[dict[str, Any]] = []
    if version == "v4.3":
        stats = {"coll_records": len(calls), "coll_dropped_since_last_dump": 0, "p2p_records": 0}
        lines.append({"header": header, "metadata": metadata, "dump_stats": stats})
    for number, size, took in calls:
        perf: dict[str, Any] = {
            "coll": "AllReduce",
            "coll_sn": number,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": took,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": size / took / 1000,
            "coll_busbw_gbs": size / took / 1000,
        }
        if start:
            began = START // 1000 + number * 10_000
            kernel = {"channel_id": 0, "kernel_start_ts": began + 5, "kernel_stop_ts": began + 5 + took}
            perf["event_trace_ts"] = {"coll_start_ts": began, "coll_stop_ts": began + 3, "kernel_events": [kernel]}
        lines.append(
            {"coll_perf": perf} if version == "v4.3" else {"header": header, "metadata": metadata, "coll_perf": perf}
        )
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def link_json(
    rows: Sequence[tuple[int, float, float]], program: str = "./build/all_reduce_perf", gpus: int = 2
) -> bytes:
    """What `-J` writes, of (bytes, microseconds, GB/s)."""
    devices = [{"rank": rank, "group": 0, "pid": 1, "hostname": "node0", "device": rank} for rank in range(gpus)]
    return json.dumps(
        {
            "version": 2,
            "start_time": "2026-11-29 10:00:00",
            "args": [program, "-b", "8"],
            "env": ["SECRET=hidden"],
            "nccl_version": 22809,
            "config": {"nthreads": 1, "ngpus": gpus, "devices": devices},
            "results": [
                {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1"}
                | {
                    place: {"time": took, "alg_bw": rate, "bus_bw": rate, "nwrong": 0.0}
                    for place in ("out_of_place", "in_place")
                }
                for size, took, rate in rows
            ],
        }
    ).encode()


LINK_TEXT = b"""\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  10 on      node0 device  0 [0000:01:00] NVIDIA H200
#  Rank  1 Group  0 Pid  10 on      node0 device  1 [0000:02:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    18.51   56.64   56.64       0    17.90   58.58   58.58       0
    33554432       8388608     float     sum      -1    142.0  236.30  236.30       0    140.1  239.50  239.50       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 147.7
#
"""


class Sink:
    """Keeps what a reader hands on."""

    def __init__(self) -> None:
        self.tables: dict[str, list[pa.Table]] = {}
        self.notes: list[tuple[str, str, str]] = []

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        self.tables.setdefault(table, []).append(pa.table(batch))

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.tables.get(table, []) for row in batch.to_pylist()]


def read(path: Path) -> tuple[Sink, Marks]:
    sink = Sink()
    source = source_of(path, path, None)
    assert KIND.sniff(source)
    return sink, KIND.read(source, sink, lambda size: None)


def written(folder: Path, *contents: dict[str, Any] | bytes, names: Sequence[str] = ()) -> Path:
    """A folder with these dumps."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(contents):
        name = names[number] if names else f"trace_rank{number}"
        (folder / name).write_bytes(content if isinstance(content, bytes) else pickled(content))
    return folder


def analysed(*paths: Path) -> Analysis:
    return analyze_parts(parts_of(load(list(paths))))


def said(result: ta.Result, rule: str) -> list[str]:
    return [finding.message for finding in result.findings if finding.rule == rule]
