"""A package of somebody else, as an installer leaves it: one addition of each sort, in one file or folder each, and entry points.

The kind of evidence and the format are those that docs/evidence.md shows. `Program` runs the command line in a process of its own that
finds the package.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_PAGE = ROOT / "docs" / "evidence.md"
_BLOCK = re.compile(r"\*\*`(?P<file>[\w./-]+)`\*\*(?P<words>.*?)\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
START_NS = 1_795_883_759_923_773_145
"""When the first sample of `power_log` was taken, since the epoch."""

TABLE = """
import pyarrow as pa
import pyarrow.compute as pc
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec

LONG = TableSpec("long_operations", "one long operation", (
    Column("rank", pa.int32(), None, "rank"), Column("device", pa.int32(), None, "GPU"),
    Column("start_ns", pa.int64(), "ns", "start"), Column("end_ns", pa.int64(), "ns", "end"),
    Column("times", pa.float64(), None, "of the mean"),
))

def made(ledger_ops):
    length = pc.cast(pc.subtract(ledger_ops["end_ns"], ledger_ops["start_ns"]), pa.float64())
    times = pc.divide(length, pc.mean(length))
    found = ledger_ops.select(["rank", "device", "start_ns", "end_ns"]).append_column("times", times)
    return found.filter(pc.greater(times, 2)).cast(LONG.schema)

DERIVED = [Derived(
    "long_operations", "strangers.long_operations:made", ("ledger_ops",), LONG,
    Needs("kernel_stats", "there are no kernels"), label="{duration}, {times} times the mean",
)]
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
recommend: [{any: Shorten them.}]
references: ["https://example.org"]
tests:
  - {name: fires, given: {long_operations: [{duration: 1ms}]}, expect: {says: up to 1 ms}}
  - {name: silent, given: {long_operations: []}, expect: clean}
"""
TEMPLATE = """{% from "macros.html.j2" import tip with context %}
<section id="weather"><h2>Weather</h2>{{ tip("x", words) }}</section>
"""
SECTION = """
from importlib.resources import files
from traceanalyzer.report.section import PageSection

SECTION = PageSection(
    name="weather", title="Weather", order=35, files=files("strangers.weather"), template="weather.html.j2", styles=("weather.css",),
    scripts=("weather.js",), needs=("charts",),
    view=lambda page: {"words": f"<b>{len(page.result.findings)} findings</b>"},
)
"""
OUTPUT = """
from traceanalyzer.render.output import Output

OUTPUT = Output("haiku", "for poets", lambda result, asked: f"Path: {result.inputs[0].path}\\n".encode())
CHECK = Output("haiku", "for poets", lambda check, asked: b"kept\\n", kind="check")
"""
COMMAND = """
from typing import Annotated
import typer

def greet(name: Annotated[str, typer.Argument(help="Whom.")]) -> None:
    \"\"\"Say hello to a trace.\"\"\"
    print(f"hello {name}")
"""


@dataclass(frozen=True)
class Addition:
    """What a package adds: the file or folder that does it, with the texts of its files, and its entry points by group."""

    place: str
    files: Mapping[str, str]
    points: Mapping[str, str]


def _of_the_page(name: str, group: str) -> Addition:
    texts = {found["file"]: found["text"] for found in _BLOCK.finditer(_PAGE.read_text())}
    own = {file: text for file, text in texts.items() if file.startswith(f"{name}/")}
    return Addition(name, own, {group: f"{name} = {name}:KIND"})


ADDITIONS = {
    "format": _of_the_page("kernel_csv", "traceanalyzer.formats"),
    "evidence": _of_the_page("power_log", "traceanalyzer.evidence"),
    "table": Addition(
        "strangers/long_operations.py",
        {"strangers/long_operations.py": TABLE},
        {"traceanalyzer.derived": "long = strangers.long_operations"},
    ),
    "rule": Addition(
        "strangers/rules",
        {"strangers/rules/__init__.py": "", "strangers/rules/compute/ACM001-long-operations.yaml": RULE},
        {"traceanalyzer.rules": "long = strangers.rules"},
    ),
    "section": Addition(
        "strangers/weather",
        {
            "strangers/weather/__init__.py": SECTION,
            "strangers/weather/weather.html.j2": TEMPLATE,
            "strangers/weather/weather.css": "#weather { color: red }\n",
            "strangers/weather/weather.js": '{ document.title += "!"; }\n',
        },
        {"traceanalyzer.sections": "weather = strangers.weather:SECTION"},
    ),
    "output": Addition(
        "strangers/haiku.py",
        {"strangers/haiku.py": OUTPUT},
        {"traceanalyzer.outputs": "haiku = strangers.haiku:OUTPUT\ncheck-haiku = strangers.haiku:CHECK"},
    ),
    "command": Addition(
        "strangers/greet.py",
        {"strangers/greet.py": COMMAND},
        {"traceanalyzer.commands": "greet = strangers.greet:greet"},
    ),
}


def install(site: Path, *names: str) -> Path:
    """The package with these additions (all, where none is named) in the folder `site`, which only has to be on the path; return it."""
    chosen = [ADDITIONS[name] for name in names or ADDITIONS]
    files = {"strangers/__init__.py": ""} | {file: text for one in chosen for file, text in one.files.items()}
    return install_package(
        site, "strangers", files, {group: text for one in chosen for group, text in one.points.items()}
    )


def install_package(site: Path, name: str, files: Mapping[str, str], points: Mapping[str, str]) -> Path:
    """Any package: its files, and lines of entry points by group."""
    for file, text in files.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    about = site / f"{name}-1.0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(f"[{group}]\n{lines}\n" for group, lines in points.items()))
    return site


@dataclass(frozen=True)
class Program:
    """The program in a process of its own, in a folder, with what is installed in `site`."""

    site: Path
    folder: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "traceanalyzer", *arguments)

    def python(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """The interpreter itself."""
        path = os.pathsep.join([str(self.site), str(ROOT)])
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def result(self, *arguments: object) -> dict[str, Any]:
        """The result document of inputs that can be judged."""
        done = self.run("analyze", *arguments, "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]


def power_log(path: Path, marks: str = "", watts: float = 90, start_ns: int = START_NS, count: int = 20) -> Path:
    """A log of power with a sample every millisecond."""
    lines = [f"{start_ns + number * 1_000_000} {watts}" for number in range(count)]
    path.write_text("\n".join([f"#power-log {marks}", *lines]) + "\n")
    return path


def kernel_table(path: Path) -> Path:
    """Four kernels with as much idle time between them."""
    rows = [f"{at * 2_000_000},{at * 2_000_000 + 1_000_000},0,7,gemm" for at in range(4)]
    path.write_text("\n".join(["start_ns,end_ns,device,stream,name", *rows]) + "\n")
    return path
