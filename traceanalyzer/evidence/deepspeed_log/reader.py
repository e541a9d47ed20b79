"""Reads a log of DeepSpeed's into its tables: each line is looked at for what DeepSpeed prints, and everything else passes by."""

from __future__ import annotations

import re

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.deepspeed_log import tables
from traceanalyzer.evidence.deepspeed_log.reading.comms import HEADER as COMMS_HEADER
from traceanalyzer.evidence.deepspeed_log.reading.comms import Comms
from traceanalyzer.evidence.deepspeed_log.reading.lines import LONGEST, lines_of, plain
from traceanalyzer.evidence.deepspeed_log.reading.profiles import HEADER as PROFILE_HEADER
from traceanalyzer.evidence.deepspeed_log.reading.profiles import Profiles
from traceanalyzer.evidence.deepspeed_log.reading.rows import Rows
from traceanalyzer.evidence.deepspeed_log.reading.settings import Settings
from traceanalyzer.evidence.deepspeed_log.reading.timers import MARK, Timers, call_row, progress_row
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress, Sink
from traceanalyzer.vocabulary.health import NOT_ALL_READ, TOO_LITTLE
from traceanalyzer.vocabulary.levels import LOW, MEDIUM

PRODUCER = "DeepSpeed log"
_PROGRESS = re.compile(r"step=\d|SamplesPerSec=|iter time \(s\): |elapsed time per iteration|comm op: ")
_SETTING = re.compile(r"DeepSpeed info: version=|CONFIG: micro_batches=| ZeRO stage \d| \.{2,} |\"\w+\"\s*:")
_MOST_RANKS = 1 << 20


class _Log:
    """What the lines of one file give."""

    def __init__(self, sink: Sink) -> None:
        self.times, self.progress, self.calls = (
            Rows(sink, spec) for spec in (tables.TIMES, tables.PROGRESS, tables.CALLS)
        )
        self.timers, self.comms, self.profiles, self.settings = Timers(), Comms(), Profiles(), Settings()
        self.ranks: set[int] = set()

    def read(self, at: int, line: str) -> None:
        if MARK in line:
            rows = self.timers.rows(at, plain(line))
            if rows:
                self.times.extend(rows)
                self._rank(rows[0][1])
        elif self._begins(line):
            return
        elif _PROGRESS.search(line):
            line = plain(line)
            if call := call_row(at, line):
                self.calls.add(*call)
                self._rank(call[1])
            elif progress := progress_row(at, line):
                self.progress.add(*progress)
                self._rank(progress[1])
        else:
            self._other(line)

    def _begins(self, line: str) -> bool:
        """Whether it is the first line of a report that is printed over many lines."""
        if PROFILE_HEADER in line:
            return self.profiles.begins(plain(line))
        return COMMS_HEADER in line and self.comms.begins(plain(line))

    def _other(self, line: str) -> None:
        if self.profiles.inside:
            self.profiles.read(plain(line))
            return
        if self.comms.inside:
            self.comms.read(plain(line))
        if _SETTING.search(line):
            self.settings.read(plain(line))

    def _rank(self, rank: object) -> None:
        if isinstance(rank, int) and rank < _MOST_RANKS:
            self.ranks.add(rank)


def read_log(source: Source, sink: Sink, progress: Progress) -> Marks:
    """Read it all. Raises InputError where none of DeepSpeed's reports is in it."""
    log = _Log(sink)
    with source.open(progress) as stream:
        for at, line in enumerate(lines_of(stream)):
            log.read(at, line if len(line) <= LONGEST else line[:LONGEST])
        damage = stream.damage
    _add_small(sink, log)
    for rows in (log.times, log.progress, log.calls):
        rows.flush()
    if damage:
        sink.health(NOT_ALL_READ, MEDIUM, f"{damage}: what comes after was not read")
    _tell(sink, log)
    if not (log.times.count or log.progress.count or log.calls.count or log.comms.entries or _said(log)):
        raise InputError(
            f"{source.path}: a log of DeepSpeed without timers, flops profile or comms summary; "
            'switch on "wall_clock_breakdown": true in its configuration'
        )
    version = log.settings.values.get("version")
    return Marks(
        producer=f"DeepSpeed {version}" if version else PRODUCER,
        rank=_rank(log),
        rank_source="content" if _rank(log) is not None else None,
        versions={"deepspeed": version} if version else {},
    )


def _said(log: _Log) -> bool:
    return any(report.values or report.modules for report in log.profiles.reports)


def _rank(log: _Log) -> int | None:
    """The lowest rank that the lines name; the engine's flops profiler runs on rank 0 alone."""
    if log.ranks:
        return min(log.ranks)
    return 0 if any("world_size" in report.values for report in log.profiles.reports) else None


def _add_small(sink: Sink, log: _Log) -> None:
    """The settings, the summaries of the comms logger and the reports of the flops profiler."""
    settings = Rows(sink, tables.SETTINGS)
    settings.extend(sorted(log.settings.values.items()))
    comms = Rows(sink, tables.COMMS)
    columns = [column.name for column in tables.COMMS.columns[5:]]
    for one in log.comms.entries:
        comms.add(one.summary, one.op, one.bytes, one.calls, *(one.values.get(name) for name in columns))
    profiles, modules = Rows(sink, tables.PROFILES), Rows(sink, tables.MODULES)
    columns = [column.name for column in tables.PROFILES.columns[2:-1]]
    for number, report in enumerate(log.profiles.reports):
        profiles.add(number, *(report.values.get(name) for name in columns), "world_size" in report.values)
        for order, one_module in enumerate(report.modules):
            m = one_module
            modules.add(
                *(number, order, m.parent, m.depth, m.name, m.path, m.kind, m.repeat),
                *(m.params, m.macs, m.latency, m.seconds, m.rate, m.shape),
            )
    for rows in (settings, comms, profiles, modules):
        rows.flush()


def _tell(sink: Sink, log: _Log) -> None:
    """What could not be read, and what is cut off."""
    unread = log.timers.unread + log.comms.unread + log.profiles.unread
    if unread:
        sink.health(NOT_ALL_READ, LOW, "figures of DeepSpeed's log could not be read, and are left out", unread)
    open_ones = sum(not report.ended for report in log.profiles.reports)
    if open_ones:
        sink.health(
            TOO_LITTLE,
            LOW,
            "a report of the flops profiler has no end: the log was cut, or others wrote into it",
            open_ones,
        )
