"""Lines of NCCL Inspector: one JSON object for each completed collective, send or receive.

Facts of the format: plugins/profiler/inspector of NCCL (`README.md`, `inspector_json.cc`). To version 4.2 each line has its
communicator (`header`) and the process (`metadata`); in 4.3 a line with `dump_stats` has them once, and the lines that follow belong to
it. Before that, `dump_stats` may stand alone. Numbers of collectives count from the communicator's first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

import msgspec
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.nccl_records.reading.columns import Wrong, few, real, table, text, time_of, whole
from traceanalyzer.evidence.nccl_records.tables import CALLS, COMPLETED, GROUPS
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.records import dataclass

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_LINE = 64 << 20
_LONGEST_US = 10**12


class _Trace(msgspec.Struct):
    """Times in microseconds since the epoch."""

    coll_start_ts: Any = None
    p2p_start_ts: Any = None
    kernel_events: Any = None


class _Coll(msgspec.Struct):
    coll: Any = None
    coll_sn: Any = None
    coll_msg_size_bytes: Any = None
    coll_exec_time_us: Any = None
    coll_busbw_gbs: Any = None
    event_trace_ts: Any = None


class _P2p(msgspec.Struct):
    p2p: Any = None
    p2p_sn: Any = None
    p2p_peer: Any = None
    p2p_msg_size_bytes: Any = None
    p2p_exec_time_us: Any = None
    p2p_busbw_gbs: Any = None
    event_trace_ts: Any = None


class _Line(msgspec.Struct):
    header: Any = None
    metadata: Any = None
    dump_stats: Any = None
    coll_perf: _Coll | None = None
    p2p_perf: _P2p | None = None


@dataclass
class Inspected:
    """What a file of Inspector holds; `ranks` are by communicator (name, ranks in it) the rank that wrote."""

    version: str | None = None
    calls: pa.Table = field(default_factory=lambda: table(CALLS, {"entry": []}))
    groups: pa.Table = field(default_factory=lambda: table(GROUPS, {"group": []}))
    member: int | None = None
    world_size: int | None = None
    host: str | None = None
    pids: tuple[int, ...] = ()
    dropped: int = 0
    unread: int = 0
    latest_ns: int | None = None


def read_inspector(source: Source, progress: Callable[[int], None], wrong: Wrong) -> Inspected:
    """Raises InputError where not a single line can be read."""
    reader = _Reader(wrong)
    with source.open(progress) as stream:
        rest = b""
        while block := stream.read(1 << 20):
            *lines, rest = (rest + block).split(b"\n")
            reader.take(lines)
            if len(rest) > _MOST_LINE:
                raise InputError(f"{source.path}: a line of NCCL Inspector that is longer than any it writes")
        reader.take([rest])
        if stream.damage and not reader.rows["group"]:
            raise InputError(f"{source.path}: {stream.damage}")
        reader.found.unread += bool(stream.damage)
    if not reader.rows["group"] and not reader.known:
        raise InputError(f"{source.path}: no line of NCCL Inspector could be read; copy it again")
    return reader.finish()


class _Reader:
    def __init__(self, wrong: Wrong) -> None:
        self.found = Inspected()
        self.rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.known: dict[str, tuple[int | None, int | None, str | None]] = {}
        self.hosts: set[str] = set()
        self.pids: set[int] = set()
        self._wrong = wrong
        self._decode = msgspec.json.Decoder(_Line).decode
        self._header: Any = None
        self._left = 0

    def take(self, lines: list[bytes]) -> None:
        for line in lines:
            if not line or line.isspace():
                continue
            try:
                one = self._decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.found.unread += 1
                continue
            self._line(one)

    def _line(self, one: _Line) -> None:
        if one.metadata is not None:
            self._process(one.metadata)
        if one.dump_stats is not None:
            self._stats(one)
            return
        header = one.header
        if header is None:
            if self._header is None or self._left <= 0:
                # A line without its communicator, as when a file was cut in the middle.
                self.found.unread += one.coll_perf is not None or one.p2p_perf is not None
                return
            header, self._left = self._header, self._left - 1
        group = self._group(header)
        if one.coll_perf is not None:
            self._add(group, one.coll_perf)
        elif one.p2p_perf is not None:
            self._add_p2p(group, one.p2p_perf)

    def _process(self, metadata: Any) -> None:
        if type(metadata) is not dict:
            self._wrong.count += 1
            return
        self.found.version = self.found.version or text(metadata.get("inspector_output_format_version"), self._wrong)
        if (host := text(metadata.get("hostname"), self._wrong)) is not None:
            self.hosts.add(host)
        if (pid := whole(metadata.get("pid"), self._wrong, 1)) is not None:
            self.pids.add(pid)
        if (stamp := self._time(metadata.get("dump_timestamp_us"))) is not None:
            self.found.latest_ns = max(self.found.latest_ns or 0, stamp)

    def _stats(self, one: _Line) -> None:
        stats = one.dump_stats if type(one.dump_stats) is dict else {}
        self._header = one.header if type(one.metadata) is dict and _newer(one.metadata) else None
        counts = [whole(stats.get(f"{kind}_records"), self._wrong) or 0 for kind in ("coll", "p2p", "proxy")]
        self._left = sum(counts)
        dropped = [whole(stats.get(f"{kind}_dropped_since_last_dump"), self._wrong) or 0 for kind in ("coll", "p2p")]
        self.found.dropped += sum(dropped)
        if one.header is not None:
            self._group(one.header)

    def _group(self, header: Any) -> str | None:
        if type(header) is not dict:
            self._wrong.count += header is not None
            return None
        name = header.get("id")
        if type(name) is str and name in self.known:
            return name
        name = text(name, self._wrong)
        if name is not None and name not in self.known:
            described = text(header.get("comm_name"), self._wrong)
            size = few(header.get("n_ranks"), self._wrong, 1)
            rank = few(header.get("rank"), self._wrong)
            self.known[name] = (rank, size, described if described != "unknown" else None)
        return name

    def _add(self, group: str | None, perf: _Coll) -> None:
        took = whole(perf.coll_exec_time_us, self._wrong)
        self._row(
            group,
            sequence=whole(perf.coll_sn, self._wrong),
            operation=perf.coll,
            size=whole(perf.coll_msg_size_bytes, self._wrong),
            took=took,
            rate=real(perf.coll_busbw_gbs, self._wrong),
            trace=perf.event_trace_ts,
        )

    def _add_p2p(self, group: str | None, perf: _P2p) -> None:
        self._row(
            group,
            p2p=whole(perf.p2p_sn, self._wrong),
            operation=perf.p2p,
            peer=few(perf.p2p_peer, self._wrong),
            size=whole(perf.p2p_msg_size_bytes, self._wrong),
            took=whole(perf.p2p_exec_time_us, self._wrong),
            rate=real(perf.p2p_busbw_gbs, self._wrong),
            trace=perf.event_trace_ts,
        )

    def _row(
        self,
        group: str | None,
        operation: Any,
        size: int | None,
        took: int | None,
        rate: float | None,
        trace: Any,
        sequence: int | None = None,
        p2p: int | None = None,
        peer: int | None = None,
    ) -> None:
        asked, began, ended = self._times(trace)
        name = text(operation, self._wrong)
        values = (
            group,
            sequence,
            p2p,
            None if name is None else _WORDS.sub("_", name).lower(),
            peer,
            size,
            None if took is None or took > _LONGEST_US else took * 1000,
            rate,
            asked,
            began,
            ended,
        )
        for column, value in zip(self.rows.values(), values, strict=True):
            column.append(value)

    def _times(self, trace: Any) -> tuple[int | None, int | None, int | None]:
        """When it was asked for, began and ended, in ns since the epoch; of a verbose file alone."""
        if type(trace) is not dict:
            return None, None, None
        asked = self._time(trace.get("coll_start_ts", trace.get("p2p_start_ts")))
        channels = trace.get("kernel_events")
        kernels = [one for one in channels if type(one) is dict] if type(channels) is list else []
        began = [t for one in kernels if (t := self._time(one.get("kernel_start_ts"))) is not None]
        ended = [t for one in kernels if (t := self._time(one.get("kernel_stop_ts"))) is not None]
        return asked, min(began, default=None), max(ended, default=None)

    def _time(self, micro: Any) -> int | None:
        found = whole(micro, self._wrong, 1) if micro != 0 else None
        return None if found is None else time_of(found * 1000, self._wrong)

    def finish(self) -> Inspected:
        found, rows = self.found, self.rows
        count = len(rows["group"])
        found.calls = table(
            CALLS,
            {"entry": range(count), **rows, "state": [COMPLETED] * count},
        )
        names = list(self.known)
        found.groups = table(
            GROUPS,
            {
                "group": names,
                "description": [self.known[name][2] for name in names],
                "size": [self.known[name][1] for name in names],
            },
        )
        self._tell()
        times = found.calls["completed_ns"].drop_null()
        if len(times):
            found.latest_ns = max(found.latest_ns or 0, *times.to_pylist())
        return found

    def _tell(self) -> None:
        """The largest communicator is taken for the job's, where its ranks agree: that one counts as ranks of the job do."""
        sizes = [size for _, size, _ in self.known.values() if size is not None]
        if sizes and max(sizes) > 1:
            ranks = {rank for rank, size, _ in self.known.values() if size == max(sizes)}
            self.found.world_size = max(sizes)
            self.found.member = next(iter(ranks)) if len(ranks) == 1 else None
        self.found.host = next(iter(self.hosts)) if len(self.hosts) == 1 else None
        self.found.pids = tuple(sorted(self.pids))


_COLUMNS = (
    *("group", "sequence", "p2p_sequence", "operation", "peer", "bytes", "duration", "bus_bandwidth"),
    *("created_ns", "started_ns", "completed_ns"),
)


def _newer(metadata: dict[str, Any]) -> bool:
    """Whether the lines after a marker belong to it: from version 4.3 on."""
    version = re.match(r"v?(\d+)\.(\d+)", str(metadata.get("inspector_output_format_version"))[:20])
    return version is not None and (int(version[1]), int(version[2])) >= (4, 3)
