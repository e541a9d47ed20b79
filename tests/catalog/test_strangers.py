"""A package of somebody else that declares a derived table, and a user's rule over it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kineto import KinetoTrace
from traceanalyzer.exit_codes import ERROR

TABLES = """
import pyarrow as pa
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

LONG = TableSpec("long_operations", "one long operation", (
    Column("rank", pa.int32(), None, "rank"), Column("device", pa.int32(), None, "GPU"),
    Column("start_ns", pa.int64(), "ns", "start"), Column("end_ns", pa.int64(), "ns", "end"),
    Column("times", pa.float64(), None, "of the mean"),
))
DERIVED = [Derived(
    "long_operations", "long_operations.making:made", ("ledger_ops",), LONG,
    Needs("kernel_stats", "there are no kernels"), label="{duration}, {times} times the mean",
)]
"""
MAKING = """
import pyarrow as pa
import pyarrow.compute as pc
from long_operations.tables import LONG

def made(ledger_ops):
    length = pc.cast(pc.subtract(ledger_ops["end_ns"], ledger_ops["start_ns"]), pa.float64())
    times = pc.divide(length, pc.mean(length))
    found = ledger_ops.select(["rank", "device", "start_ns", "end_ns"]).append_column("times", times)
    return found.filter(pc.greater(times, 2)).cast(LONG.schema)
"""
RULE = """\
id: ACM001
slug: long-operations
title: Long operations
status: preview
category: compute
why: a rule over the table of another package
requires: {tables: [long_operations]}
from: long_operations
group_by: [rank, device]
metrics: {longest: max(duration), operations: count()}
having: operations > 0
order_by: duration
message: "{operations} operations are long, up to {longest}."
recommend: [{user: Shorten them.}]
references: ["https://example.org"]
tests:
  - {name: fires, given: {long_operations: [{duration: 1ms}]}, expect: {says: up to 1 ms}}
  - {name: silent, given: {long_operations: []}, expect: clean}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "long_operations").mkdir(parents=True)
    (folder / "long_operations" / "__init__.py").write_text("")
    (folder / "long_operations" / "tables.py").write_text(TABLES)
    (folder / "long_operations" / "making.py").write_text(MAKING)
    info = folder / "long_operations-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: long-operations\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[traceanalyzer.derived]\nlong = long_operations.tables\n")
    (tmp_path / "rule.yaml").write_text(RULE)
    trace = KinetoTrace()
    for at in range(9):
        trace.op(at * 100, at * 100 + (80 if at == 4 else 10), launch=(at * 100 - 8, at * 100 - 4))
    trace.write(tmp_path / "t.json")
    return folder


def ran(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package), str(Path(__file__).parents[2])])
    command = [sys.executable, "-m", "traceanalyzer", *words]
    return subprocess.run(
        command, cwd=package.parent, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def test_a_rule_over_the_table_of_another_package_fires(package):
    done = ran(package, "analyze", "t.json", "--rules", "rule.yaml", "--format", "text")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "1 operation" in done.stdout and "up to 80 us" in done.stdout
    assert "80 us, 4.05 times the mean" in done.stdout


def test_its_rule_is_linted_tested_and_told(package):
    assert ran(package, "rules", "test", "rule.yaml").stdout.endswith("2 passed, 0 failed\n")
    assert ran(package, "rules", "lint", "rule.yaml").returncode == 0
    assert '"long_operations"' in ran(package, "rules", "schema").stdout


@pytest.mark.parametrize(
    ("point", "says"),
    [
        (
            "long_operations.nothing",
            "entry point 'long' (long_operations.nothing) of traceanalyzer.derived cannot be loaded",
        ),
        ("long_operations.tables:LONG", "is neither a sequence of Derived nor a module"),
        ("traceanalyzer.derive.copies.tables", "declares a table 'copies', and there is one of that name already"),
    ],
)
def test_an_entry_point_that_gives_no_declarations_is_told(package, point, says):
    (package / "long_operations-1.0.dist-info" / "entry_points.txt").write_text(
        f"[traceanalyzer.derived]\nlong = {point}\n"
    )
    done = ran(package, "analyze", "t.json")
    assert done.returncode == ERROR and done.stderr.startswith("error: ") and says in done.stderr
