"""Reports of Nsight Compute (.ncu-rep), which NVIDIA's package ncu-report reads, in a process of its own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.kernel_counters.reading.collected import Collected
from traceanalyzer.evidence.kernel_counters.reading.content import PACKAGE
from traceanalyzer.evidence.kernel_counters.reading.metrics import meaning
from traceanalyzer.evidence.kernel_counters.reading.numbers import scale
from traceanalyzer.evidence.kernel_counters.tables import AXES
from traceanalyzer.ingest.bytes.source import Source

MOST_SECONDS = 120
MOST_MEMORY = 8 << 30
MOST_OUTPUT = 1 << 30
CHILD = Path(__file__).with_name("report_child.py")


def read_report(source: Source, found: Collected) -> None:
    """All launches of a report. Raises InputError where the package fails, takes too long or too much memory."""
    found.page = "report"
    with ExitStack() as stack:
        place = source.place
        if source.packed:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traceanalyzer-"))) / "report.ncu-rep"
            with source.open() as stream, place.open("wb") as copy:
                while block := stream.read(1 << 20):
                    copy.write(block)
        output = stack.enter_context(tempfile.TemporaryFile())
        _run(source, place, output)
        output.seek(0)
        for line in output:
            _take(source, found, line)


def _run(source: Source, place: Path, output: Any) -> None:
    limits = [str(most) for most in (MOST_MEMORY, MOST_SECONDS, MOST_OUTPUT)]
    command = [sys.executable, "-I", str(CHILD), str(_package_folder()), str(place.absolute()), *limits]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{source.path}: reading it took more than {MOST_SECONDS} s; {_export(source)}") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1][:200] if lines else f"it ended with {done.returncode}"
        raise InputError(f"{source.path}: the package ncu-report could not read it ({why}); {_export(source)}")


def _package_folder() -> Path:
    """Where the package, or its one file, lies."""
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1 if spec.submodule_search_locations else 0]


def _take(source: Source, found: Collected, line: bytes) -> None:
    try:
        action = json.loads(line)
        name, values, rules = str(action["name"]), action["metrics"], action["rules"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{source.path}: the package ncu-report gave what is not understood; {_export(source)}"
        ) from error
    ordinal = found.count
    numbers = {key: value for key, (value, _) in values.items()}
    major, minor = (numbers.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    facts: dict[str, Any] = {
        "launch": ordinal,
        "launches": 1,
        "pid": action.get("pid"),
        "device": numbers.get("launch__device_id"),
        "name": name,
        "compute_capability": None if major is None else float(f"{major:.0f}.{minor or 0:.0f}"),
    }
    for axis in AXES:
        size = numbers.get(f"launch__{axis[:-2]}_dim_{axis[-1]}")
        facts[axis] = None if size is None else int(size)
    launch = found.launch(ordinal, facts)
    for key, (value, unit) in values.items():
        if told := meaning(key):
            # `repr` has a point, and no separators of thousands.
            launch.values.append((told, value if isinstance(value, str) else f"{float(value)!r}", scale(unit)))
    for rule in rules:
        found.rule(
            launch, *(str(rule[key] or "") for key in ("section", "name", "kind", "message", "scope", "estimate"))
        )


def _export(source: Source) -> str:
    report = shlex.quote(str(source.path))
    table = shlex.quote(source.path.with_suffix(".csv").name)
    return f"print it instead: ncu --import {report} --csv --page raw > {table}"
