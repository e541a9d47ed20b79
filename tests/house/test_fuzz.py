"""Damaged traces end in a result or in one line for the user: never in a traceback, never in a hang.

A case is a kind of input and a number. 2,500 run with the suite; any others: python -m tests.house.test_fuzz FIRST LAST [KIND]
"""

from __future__ import annotations

import bz2
import faulthandler
import gzip
import io
import json
import lzma
import random
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.nsys import nsys_export as export
from tests.support import slices
from tests.support.chrome import AROUND, every_kind
from traceanalyzer.analysis import ReportTables, analyze_parts, parts_of
from traceanalyzer.cli.common import Severity, exit_code
from traceanalyzer.config import Config
from traceanalyzer.doctor import diagnose
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.render.doctor import render_diagnosis
from traceanalyzer.render.text import render_text
from traceanalyzer.report.html import render_html

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CASES_PER_BATCH = 25
BATCHES = {"kineto": 52, "chrome": 12, "packed": 16, "nsys": 10, "cells": 10}
# How many changes a case makes. What is packed or has pages is lost from the first one on.
FEW, CHANGES = (1, 1, 2, 3, 5, 12), {"packed": (1,), "nsys": (1, 1, 2)}
# Every so many cases go through more than reading.
STORED, JUDGED = 20, 50
# A case takes some hundredths of a second. One that hangs ends the process; run its batch as above to see where it was.
HANGS_AFTER_S = 60
# Cases that once failed, of those that do not run anyway, and the gist of others.
ONCE_FAILED = [("chrome", 2732)]
GISTS = {
    "a key twice in a broken event": b'{"traceEvents": [{"ph": "X", "ph": "X", "ts": 1, "name": "a"b"}, {"ph": "X", "ts": 1}]}',
    "a broken first line": b'{"ph": "M", "na"b", "pid": 1}\n{"ph": "X", "name": "a", "ts": 1, "dur": 1}',
    "a counter beyond a float": b'{"traceEvents": [{"ph": "C", "name": "a", "ts": 1, "args": {"x": 1e999, "y": 2}}]}',
    "an id beyond a float": b'{"traceEvents": [{"ph": "b", "name": "a", "ts": 1, "id": 1e999}]}',
    "a GPU beyond a number": b'[{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/gpu:1/stream:99999999999999999999"}},'
    b'{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]',
}

KINDS_OF_CHANGE = ("flip", "bit", "number", "number", "token", "delete", "double", "insert", "swap", "cut", "zero")
# What stands in numbers' places or anywhere in a text: each is the edge of something.
NUMBERS = (
    b"-1 0 1 0.5 -0.0 1e3 1e19 1e999 -1e300 9223372036854775807 9223372036854775808 18446744073709551615 "
    b"-9223372036854775808 4294967295 2147483648 1000000000000000 1712600000000000.123 NaN inf N/A null true "
    b'"7" "stream 7" "x" "" [] {} [1,2,3] "\\ud800"'
).split(b" ")
TOKENS = (
    b'" \\ { } [ ] , : }, },{ }] ]} \\" \\u \\ud83d \\\\ \0 \n \t \x01 \xff \xc3 \xe2\x80\xa8 \xef\xbb\xbf // /* null {} '
    b'"ph" "ph":"X" "ph":"B" "ph":"E" "ph":"C" "ph":"b" "ph":"M" {"ph":"X"} "traceEvents":[ "args":{ "args":null '
    b'"ts": "dur":-5, "cat":"kernel" "cat":"gpu_memcpy"'
).split(b" ")


def damaged(data: bytes, chance: random.Random, changes: tuple[int, ...]) -> bytes:
    """A few small changes anywhere, now and then a large one."""
    broken = bytearray(data)
    for _ in range(chance.choice(changes)):
        at, length = chance.randrange(len(broken) or 1), chance.randint(1, chance.choice((2, 20, 200, 5000)))
        match chance.choice(KINDS_OF_CHANGE):
            case "flip":
                broken[at : at + 1] = bytes([chance.randrange(256)])
            case "bit" if broken:
                broken[at] ^= 1 << chance.randrange(8)
            case "number":
                _put_number(broken, at, chance.choice(NUMBERS))
            case "token":
                broken[at : at + chance.randint(0, 1)] = chance.choice(TOKENS)
            case "delete":
                del broken[at : at + length]
            case "double":
                broken[at:at] = broken[at : at + length] * chance.randint(1, 3)
            case "insert":
                broken[at:at] = chance.randbytes(length)
            case "swap":
                _swap(broken, at, chance.randrange(len(broken) or 1), length)
            case "cut" if chance.random() < 0.4:
                del broken[at:]
            case "zero":
                broken[at : at + length] = bytes(len(broken[at : at + length]))
    return bytes(broken)


def _put_number(text: bytearray, at: int, number: bytes) -> None:
    """Replace the next number, sign and point included."""
    is_number = bytes(b in b"+-.0123456789" for b in text[at : at + 300])
    start = is_number.find(1)
    if start >= 0:
        stop = is_number.find(0, start)
        text[at + start : at + stop if stop > 0 else at + len(is_number)] = number


def _swap(data: bytearray, one: int, other: int, length: int) -> None:
    one, other = sorted((one, other))
    length = min(length, other - one, len(data) - other)
    data[one : one + length], data[other : other + length] = data[other : other + length], data[one : one + length]


def _zip(name: str, *texts: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for number, text in enumerate(texts):
            archive.writestr(zipfile.ZipInfo(f"{number}/{name}"), text, method)
    return packed.getvalue()


def _tar(name: str, *texts: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for number, text in enumerate(texts):
            info = tarfile.TarInfo(f"{number}/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    return packed.getvalue()


@cache
def material(kind: str) -> list[bytes]:
    """The sound inputs that the cases of a kind start from."""
    if kind == "kineto":
        return [slices.kineto(file) for file in slices.KINETO]
    if kind == "chrome":
        return layouts()
    if kind == "nsys":
        return [slices.nsys(file) for file in slices.NSYS]
    text, rank0, rank3 = (slices.kineto(slices.KINETO[n]) for n in (8, 12, 13))
    tables = slices.nsys(slices.NSYS[0])
    compressed = [
        pack(text) for pack in (lambda t: gzip.compress(t, mtime=0), zstd.compress, lzma.compress, bz2.compress)
    ]
    archives = [
        _zip("t.json", rank0, rank3),
        _zip("t.json", text, method=zipfile.ZIP_STORED),
        _tar("t.json", rank0, rank3),
    ]
    nested = [_zip("t.json.gz", compressed[0]), gzip.compress(_tar("t.json", text), mtime=0), _zip("t.sqlite", tables)]
    return [*compressed, compressed[0] + compressed[0], gzip.compress(tables, mtime=0), *archives, *nested]


def layouts() -> list[bytes]:
    """Events of every kind in every layout of a file."""
    events = every_kind()
    return [
        json.dumps({**AROUND, "traceEvents": events}).encode(),
        json.dumps({"traceEvents": events, **AROUND}, indent=1).encode(),
        json.dumps(events).encode(),
        b"\n".join(json.dumps(event).encode() for event in events),
        json.dumps({**AROUND, "traceEvents": events[:90]}).encode("utf-16"),
    ]


ODD_CELLS = (None, -1, 0, 1, 2**31, 2**32 - 1, 2**63 - 1, -(2**63), 0.5, float("inf"), "", "x", "7", b"\xff\xfe", b"")


def odd_export(path: Path, chance: random.Random) -> None:
    """An export with cells, columns and tables that no release of Nsight Systems writes."""
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [export.kernel(n * 1000, n * 1000 + 700, 7 + n % 2, n) for n in range(1, 9)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            export.memcpy(n * 1000 + 750, n * 1000 + 800, n, correlationId=90 + n) for n in range(4)
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            export.runtime(n * 1000 - 90, n * 1000 - 80, 7 + n % 2, 8, n) for n in range(9)
        ],
        "NVTX_EVENTS": [export.nvtx(n * 1000, n * 1000 + 900, f"step_{n}", kind=(59, 60, 34)[n % 3]) for n in range(6)],
        "GPU_METRICS": [{"timestamp": n * 100, "typeId": 1, "metricId": n % 2, "value": n} for n in range(6)],
        "TARGET_INFO_GPU_METRICS": [{"typeId": 1, "metricId": n, "metricName": f"SM [{n}] [%]"} for n in range(2)],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA H100", "smCount": 132, "totalMemory": 2**36, "uuid": "GPU-1"}],
        "DIAGNOSTIC_EVENT": [{"timestamp": 1, "severity": 3, "text": "events were dropped"}],
        **export.facts("META_DATA_EXPORT", EXPORT_PRODUCT_VERSION="2025.1", EXPORT_SCHEMA_VERSION="3.1.0"),
        **export.facts("META_DATA_CAPTURE", RANK=3, WORLD_SIZE=8),
    }
    for _ in range(chance.randint(1, 8)):
        rows = tables[chance.choice([name for name in tables if tables[name]])]
        column = chance.choice(list(rows[0]))
        match chance.choice(("cell", "cell", "column", "without", "rows", "again")):
            case "cell":
                chance.choice(rows)[column] = chance.choice(ODD_CELLS)
            case "column":
                value = chance.choice(ODD_CELLS)
                for row in rows:
                    row[column] = value
            case "without" if len(rows[0]) > 1:
                for row in rows:
                    row.pop(column, None)
            case "rows":
                del rows[chance.randrange(len(rows)) :]
            case "again":
                rows += [dict(row) for row in rows]
    export.make_export(path, tables, typed=chance.random() < 0.5)


def write_case(kind: str, number: int, folder: Path) -> Path:
    """The file of one case. Its name has no suffix that could tell what it is."""
    chance = random.Random(f"{kind} {number}")
    path = folder / f"{kind}-{number}"
    if kind == "cells":
        odd_export(path, chance)
    else:
        path.write_bytes(damaged(chance.choice(material(kind)), chance, CHANGES.get(kind, FEW)))
    return path


def outcome_of(path: Path, number: int) -> int:
    """The exit code that the command line ends with. Raises what is no outcome."""
    try:
        trace = ta.load(path)
        if number % STORED == 0:
            for name, table in trace.tables.items():
                table.validate(full=True)
                assert table.schema == table_specs()[name].schema
            stored = path.with_name("store")
            ingest_to_store([path], stored, "test")
            again = ta.load(stored)
            assert all(again.table(name).equals(table) for name, table in trace.tables.items())
        if number % JUDGED == 0:
            parts = parts_of(trace)
            analysis = analyze_parts(parts)
            result = analysis.result
            assert [rule for rule in result.rules if rule.outcome == "error"] == []
            render_html(result, ReportTables(parts, Config(), analysis.tables))
            render_text(result)
            return exit_code(result, Severity.INFO)
        if number % JUDGED == JUDGED // 2:
            diagnosis = diagnose([path])
            render_diagnosis(diagnosis)
            return 0 if diagnosis.can_judge else 3
    except TraceAnalyzerError as error:
        message = str(error)
        assert str(path) in message and "\n" not in message
        return error.exit_code
    return 0


def check(kind: str, number: int, folder: Path) -> int:
    path = write_case(kind, number, folder)
    before = path.read_bytes()
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
    try:
        code = outcome_of(path, number)
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert code in (0, 1, 2, 3)
    assert path.read_bytes() == before
    path.unlink()
    return code


@pytest.mark.parametrize(
    "batch", [(kind, n) for kind, count in BATCHES.items() for n in range(count)], ids=lambda b: f"{b[0]}-{b[1]}"
)
def test_damage(tmp_path, batch):
    kind, number = batch
    codes = Counter()
    for case in range(number * CASES_PER_BATCH, (number + 1) * CASES_PER_BATCH):
        try:
            codes[check(kind, case, tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"case {kind} {case}: the file is {tmp_path / f'{kind}-{case}'}") from error
    # Damage costs what it touches: most traces of events can still be read.
    assert kind not in ("kineto", "chrome") or codes[2] <= CASES_PER_BATCH // 4


@pytest.mark.parametrize(("kind", "number"), ONCE_FAILED)
def test_what_once_failed(tmp_path, kind, number):
    check(kind, number, tmp_path)


@pytest.mark.parametrize("gist", GISTS)
def test_the_gist_of_what_once_failed(tmp_path, gist):
    path = tmp_path / "t"
    path.write_bytes(GISTS[gist])
    outcome_of(path, 0)


def run(first: int, last: int, kinds: list[str]) -> None:
    """All cases of these numbers; prints what fails, and what is slow."""
    for kind in kinds:
        codes, slow = Counter(), []
        with tempfile.TemporaryDirectory() as folder:
            for case in range(first, last):
                begin = time.perf_counter()
                try:
                    codes[check(kind, case, Path(folder))] += 1
                except Exception:
                    codes["failed"] += 1
                    print(f"case {kind} {case}")
                    traceback.print_exc(limit=-4)
                slow = sorted([*slow, (round(time.perf_counter() - begin, 2), case)])[-3:]
        print(kind, dict(codes), "slowest (seconds, case):", slow, flush=True)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(BATCHES))
