"""Made-up pages of Nsight Compute, and a sink that keeps what is read of one."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.kernel_counters import KIND
from traceanalyzer.evidence.kernel_counters.answers.profiles import kernel_profiles
from traceanalyzer.evidence.kernel_counters.tables import LAUNCHES, RULES
from traceanalyzer.ingest.bytes.source import source_of
from traceanalyzer.model.schema import TableSpec

FIXTURES = Path(__file__).parents[2] / "fixtures" / "evidence" / "kernel_counters"
FACTS = {
    "ID": "0",
    "Process ID": "7",
    "Process Name": "app",
    "Host Name": "10.1.2.3",
    "Kernel Name": "void ns::scale<float>(T1 *, int)",
    "Context": "1",
    "Stream": "7",
    "Block Size": "(128, 1, 1)",
    "Grid Size": "(24, 2, 1)",
    "Device": "0",
    "CC": "9.0",
}
RULE_COLUMNS = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
SOL = "GPU Speed Of Light Throughput"
USUAL = (
    (SOL, "Compute (SM) Throughput", "%", "12.50"),
    (SOL, "Memory Throughput", "%", "85.25"),
    (SOL, "DRAM Throughput", "%", "85.25"),
    (SOL, "L2 Cache Throughput", "%", "60.00"),
    (SOL, "Duration", "us", "1,234.50"),
    ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "2.85"),
    ("Launch Statistics", "Waves Per SM", "", "2.50"),
)
RAW_ONE = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "12.500000"), "launch__sm_count": ("SM", "132")}


class Kept:
    """As `ingest.contract.Sink`."""

    def __init__(self) -> None:
        self.batches: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self.notes: list[tuple[str, str, str, int]] = []

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        self.batches[table].append(batch)

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message, count))

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.batches[table] for row in batch.to_pylist()]

    def table(self, spec: TableSpec) -> pa.Table:
        ranked = [
            batch.add_column(0, spec.schema.field("rank"), pa.array([0] * batch.num_rows, pa.int32()))
            for batch in self.batches[spec.name]
        ]
        return pa.concat_tables(ranked).unify_dictionaries() if ranked else spec.empty()


def quoted(rows: Sequence[Sequence[str]]) -> str:
    """As ncu writes CSV: everything between quotes."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def details(
    metrics: Sequence[tuple[str, str, str, str]] = USUAL,
    rules: Sequence[tuple[str, str, str, str, str]] = (),
    facts: Mapping[str, str] | None = None,
    *,
    without: Sequence[str] = (),
) -> str:
    """A details page of one launch."""
    told = {key: value for key, value in (FACTS | dict(facts or {})).items() if key not in without}
    own = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
    rows = [[*told, *own, *RULE_COLUMNS]]
    # Rows of counters end with a comma and have fewer fields than the header.
    rows += [[*told.values(), *metric] for metric in metrics]
    rows += [[*told.values(), "SpeedOfLight", "", "", "", *rule] for rule in rules]
    return quoted(rows)


def raw(metrics: Mapping[str, tuple[str, str]], facts: Mapping[str, str] | None = None) -> str:
    """A raw page of one launch: units and values by metric."""
    told = FACTS | dict(facts or {})
    units, values = zip(*metrics.values(), strict=True)
    return quoted([[*told, *metrics], [*([""] * len(told)), *units], [*told.values(), *values]])


def write(folder: Path, text: str | bytes, name: str = "page.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path) -> tuple[Kept, Marks]:
    """What is read of a file, which the kind must know."""
    source = source_of(path, path, None)
    assert KIND.sniff(source)
    sink = Kept()
    marks = KIND.read(source, sink, lambda size: None)
    for name, batches in sink.batches.items():
        spec = next(spec for spec in KIND.tables if spec.name == name)
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema.equals(pa.schema([field for field in spec.schema if field.name != "rank"])), name
    return sink, marks


def launch(path: Path) -> dict[str, Any]:
    """The only launch of a file."""
    (row,) = read(path)[0].rows(LAUNCHES.name)
    return row


def profiles(*paths: Path) -> list[dict[str, Any]]:
    """The profiles of some pages together."""
    sinks = [read(path)[0] for path in paths]
    launches, rules = (
        pa.concat_tables([sink.table(spec) for sink in sinks]).unify_dictionaries() for spec in (LAUNCHES, RULES)
    )
    rows: list[dict[str, Any]] = kernel_profiles(launches, rules).to_pylist()
    return rows
