"""What is fuzzed: for each target a function of bytes that may only end well or with an error for the user.

"Well" is more than no crash: figures add up, inputs are as they were, and nothing lies beside them that was not there.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import traceanalyzer as ta
from fuzz import seeds
from tests.evidence import memory_snapshots
from tests.evidence.cpu_profile import makers as cpu_profiles
from tests.evidence.deepspeed_log import logs as deepspeed_logs
from tests.evidence.gpu_log import logs as gpu_logs
from tests.evidence.kernel_counters import pages
from tests.evidence.operator_tables import made as operator_tables
from traceanalyzer.analysis import parts_of
from traceanalyzer.budgets.assertions import assertions
from traceanalyzer.budgets.files import budgets_in
from traceanalyzer.config import Config
from traceanalyzer.engine.rules.library import load_rules, shipped_ids
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.evidence.gpu_log import KIND as GPU_LOG
from traceanalyzer.evidence.kernel_counters import KIND as KERNEL_COUNTERS
from traceanalyzer.evidence.kernel_counters.answers.limiter import limit_of
from traceanalyzer.evidence.operator_tables import KIND
from traceanalyzer.ingest.bytes.source import source_of
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.opening import NoEventsError
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter
from traceanalyzer.model.stores.store import MANIFEST
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.result.document import Result

# All rules run on every so many of the traces that can be read; they take most of the time and have tests of their own.
_JUDGED = 16


@dataclass(frozen=True)
class Target:
    """`run` takes bytes and an empty folder. `seeds` are inputs to begin with, by name; `words`, apart by spaces, are what mutations
    may put in."""

    run: Callable[[bytes, Path], None]
    seeds: Callable[[], dict[str, bytes]]
    words: str = ""


def check(target: str, data: bytes) -> None:
    """Run one input. Raises whatever should not have been."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        TARGETS[target].run(data, Path(folder))


def _mender(data: bytes, folder: Path) -> None:
    """The same events, repairs and losses whatever the size of a chunk."""
    told = []
    for chunk_bytes in (64, 1 << 20):
        splitter = Splitter(io.BytesIO(data), Events, chunk_bytes)
        try:
            events = [
                event for chunk in splitter for event in zip(chunk.events, chunk.start, chunk.duration, strict=True)
            ]
        except NoEventsError:
            events = []
        told.append((events, splitter.repairs, splitter.dropped, splitter.commas, splitter.mixed, splitter.truncated))
    assert told[0] == told[1]


def _kineto(data: bytes, folder: Path) -> None:
    _read(folder / "trace", data)


def _nsys(data: bytes, folder: Path) -> None:
    _read(folder / "export", data)


def _read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _unchanged(path.parent, lambda: _judge(ta.load(path), data), (path,))


def _store(data: bytes, folder: Path) -> None:
    """The first byte says which file of a store the rest becomes."""
    if not data:
        return
    place = folder / "store"
    shutil.copytree(_whole_store(), place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    files[data[0] % len(files)].write_bytes(data[1:])
    _unchanged(place, lambda: _judge(ta.load(place), data), (place,))


def _memory_snapshot(data: bytes, folder: Path) -> None:
    """Whatever the content, rows are as declared and the totals do not contradict each other."""
    path = folder / "snapshot.pickle"
    path.write_bytes(data)

    def run() -> None:
        if data:
            sink, _ = memory_snapshots.read(path)
            for row in sink.rows("snapshot_totals"):
                assert row["allocated_bytes"] <= row["active_bytes"], row

    _unchanged(folder, run, (path,))


def _deepspeed_log(data: bytes, folder: Path) -> None:
    """What is taken for a log is read into rows as declared, and judged without a rule that fails."""
    path = folder / "log.txt"
    path.write_bytes(data)

    def run() -> None:
        if data and (deepspeed_logs.knows(path) or _rarely(data)):
            sink, _ = deepspeed_logs.read(path)
            times = [row["duration"] for row in sink.rows("deepspeed_times")]
            assert all(took >= 0 for took in times)
            if deepspeed_logs.knows(path):
                _judge(ta.load(path), data)

    _unchanged(folder, run, (path,))


def _kernel_counters(data: bytes, folder: Path) -> None:
    """Whatever the content, rows are as declared, and each launch has a limit with gains within what is left."""
    path = folder / "page.csv"
    path.write_bytes(data)

    def run() -> None:
        if data and KERNEL_COUNTERS.sniff(source_of(path, path, None)):
            for row in map(limit_of, pages.profiles(path)):
                assert 0 <= row.least <= row.gain <= row.most <= 1, row

    _unchanged(folder, run, (path,))


def _gpu_log(data: bytes, folder: Path) -> None:
    """Whatever the content, rows are as declared, and what is told of them can be worked out."""
    path = folder / "gpu.log"
    path.write_bytes(data)

    def run() -> None:
        if data and GPU_LOG.sniff(source_of(path, path, None)):
            sink, _ = gpu_logs.read(path)
            assert all(0 <= (row.get("utilization") or 0) <= 1 for row in sink.rows())
            _result_adds_up(ta.analyze(ta.load(path)))

    _unchanged(folder, run, (path,))


def _nccl_records(data: bytes, folder: Path) -> None:
    """Whatever the content, rows are as declared."""
    path = folder / "records"
    path.write_bytes(data)

    def run() -> None:
        if data:
            _judge(ta.load(path), data)

    _unchanged(folder, run, (path,))


def _operator_tables(data: bytes, folder: Path) -> None:
    """Whatever the content, rows are as declared, and what is told of them can be worked out."""
    path = folder / "table.txt"
    path.write_bytes(data)

    def run() -> None:
        if data:
            operator_tables.read(path)
            if KIND.sniff(source_of(path, path, None)):
                _result_adds_up(ta.analyze(ta.load(path)))

    _unchanged(folder, run, (path,))


def _cpu_profile(data: bytes, folder: Path) -> None:
    """Whatever the content, what is told of threads adds up to what they ran, and that to all samples."""
    path = folder / "profile.json"
    path.write_bytes(data)

    def run() -> None:
        try:
            _, sink = cpu_profiles.read(path)
        except cpu_profiles.NoProfileError:
            return
        threads = cpu_profiles.threads(sink)
        total = sum(sink.tables()["profile_samples"]["weight"].to_pylist())
        assert sum(row["weight"] for row in threads) == total > 0, threads
        for row in threads:
            assert 0 <= row["startup"] + row["own"] <= row["weight"], row
        assert sum(weight for _, weight in cpu_profiles.functions(sink)) <= sum(row["own"] for row in threads)

    if data:
        _unchanged(folder, run, (path,))


def _rules(data: bytes, folder: Path) -> None:
    path = folder / "rules.yaml"
    path.write_bytes(data)

    def run() -> None:
        text = data.decode("utf-8", "ignore")
        problems = lint_rules([(str(path), text)], _shipped())
        assert all(problem.line > 0 and problem.column > 0 for problem in problems)
        load_rules([path])
        if _rarely(data):
            _judge(seeds.small_trace(), data, Config(rules=(path,)))

    _unchanged(folder, run, (path,))


def _budgets(data: bytes, folder: Path) -> None:
    """The first byte says whether the rest is YAML or TOML."""
    path = folder / ("pyproject.toml" if data[:1] == b"t" else "budgets.yaml")
    path.write_bytes(data[1:])

    def run() -> None:
        found = budgets_in(path)
        if found.entries:
            assertions(found, list(_shipped()), "median")

    _unchanged(folder, run, (path,))


TARGETS: dict[str, Target] = {
    "mender": Target(_mender, seeds.kineto, seeds.KINETO_WORDS),
    "kineto": Target(_kineto, seeds.kineto, seeds.KINETO_WORDS),
    "nsys": Target(_nsys, seeds.nsys),
    "memory_snapshot": Target(_memory_snapshot, seeds.memory_snapshot, seeds.SNAPSHOT_WORDS),
    "cpu_profile": Target(_cpu_profile, seeds.cpu_profile, seeds.PROFILE_WORDS),
    "deepspeed_log": Target(_deepspeed_log, seeds.deepspeed_log, seeds.DEEPSPEED_WORDS),
    "kernel_counters": Target(_kernel_counters, seeds.kernel_counters, seeds.COUNTERS_WORDS),
    "gpu_log": Target(_gpu_log, seeds.gpu_log, seeds.LOG_WORDS),
    "nccl_records": Target(_nccl_records, seeds.nccl_records, seeds.RECORD_WORDS),
    "operator_tables": Target(_operator_tables, seeds.operator_tables, seeds.TABLE_WORDS),
    "store": Target(_store, seeds.store, seeds.STORE_WORDS),
    "rules": Target(_rules, seeds.rules, seeds.RULE_WORDS),
    "budgets": Target(_budgets, seeds.budgets, seeds.BUDGET_WORDS),
}


def _unchanged(folder: Path, run: Callable[[], None], named: tuple[Path, ...]) -> None:
    """Run; an error is one line that names the input, and the folder is as it was."""
    before = _digests(folder)
    try:
        run()
    except TraceAnalyzerError as error:
        message = str(error)
        assert "\n" not in message, message
        assert any(str(path) in message for path in named), message
    assert _digests(folder) == before


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _judge(trace: ta.Trace, data: bytes, config: Config | None = None) -> None:
    """The tables are what the schema says, and every nanosecond of a window is on one line."""
    for name, table in trace.tables.items():
        table.validate(full=True)
        assert table.schema == table_specs()[name].schema, name
    if not _rarely(data):
        for part in parts_of(trace):
            for row in part.catalog(Config()).table("ledger").to_pylist():
                _adds_up({key.removesuffix("_ns"): value for key, value in row.items()})
        return
    result = ta.analyze(trace, config)
    assert [rule for rule in result.rules if rule.outcome == "error" and config is None] == []
    _result_adds_up(result)


def _rarely(data: bytes) -> bool:
    """Whether an input goes through all rules."""
    return hashlib.sha256(data).digest()[0] % _JUDGED == 0


def _adds_up(row: dict[str, int]) -> None:
    exposed = row["exposed_communication"] + row["exposed_memcpy"] + row["exposed_memset"]
    assert row["duration"] == row["busy"] + row["idle"] == row["compute"] + exposed + row["idle"], row


def _result_adds_up(result: Result) -> None:
    for one in result.devices:
        exposed = one.exposed_communication_ns + one.exposed_memcpy_ns + one.exposed_memset_ns
        assert one.window_ns == one.compute_ns + exposed + one.idle_ns, one
        assert sum(one.idle_by_cause_ns.values()) == one.idle_ns, one
    assert Result.from_json(result.to_json()) == result


@cache
def _shipped() -> dict[str, str]:
    return shipped_ids()


@cache
def _whole_store() -> Path:
    """A store of a small trace, made once a process."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-store-"))
    seeds.write_store(folder / "store")
    assert (folder / "store" / MANIFEST).is_file()
    return folder / "store"
