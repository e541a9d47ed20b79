"""Results of nccl-tests: the JSON of `-J FILE`, or what it prints.

Facts of the format: src/util.cu and doc/PERFORMANCE.md of nccl-tests. Bandwidths are GB/s of 10^9 bytes, times microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.nccl_records.reading.columns import Wrong, real, table, text, whole
from traceanalyzer.evidence.nccl_records.tables import LINKS
from traceanalyzer.ingest.bytes.source import Source

_MOST_BYTES = 256 << 20
_PROGRAM = re.compile(r"(?:^|[/\s])([a-z0-9_]+)_perf(?:_mpi)?\b")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\b")
_STARTS = re.compile(r"Collective test starting:\s*(\S+)")
_LIBRARY = re.compile(r"nccl-library=(\d+)|nccl_version[\"\s:]+(\d+)")


def read_link_tests(source: Source, progress: Callable[[int], None], wrong: Wrong) -> tuple[pa.Table, str | None]:
    """The rows of nccl_link_tests, and the version of NCCL. Raises InputError where there are no results."""
    with source.open(progress) as stream:
        parts, size = [], 0
        while block := stream.read(1 << 20):
            parts.append(block)
            size += len(block)
            if size > _MOST_BYTES:
                raise InputError(f"{source.path}: more than nccl-tests ever writes")
        found, damage = b"".join(parts), stream.damage
    content = found.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip().startswith(b"{"):
        rows, library = _json(source, content, wrong)
    else:
        rows, library = _printed(content.decode("utf-8", "replace"), wrong)
    if not rows:
        raise InputError(f"{source.path}: {damage or 'output of nccl-tests without any result; run it again'}")
    return table(
        LINKS, {name: [row.get(name) for row in rows] for name in LINKS.schema.names if name != "rank"}
    ), library


def _json(source: Source, content: bytes, wrong: Wrong) -> tuple[list[dict[str, Any]], str | None]:
    try:
        data = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source.path}: damaged JSON of nccl-tests; run it again, until it ends") from error
    if not isinstance(data, dict):
        raise InputError(f"{source.path}: no JSON as nccl-tests writes it")
    arguments = data.get("args")
    program = " ".join(str(one) for one in arguments[:1]) if isinstance(arguments, list) else ""
    operation = _operation(program)
    config = data.get("config")
    devices = config.get("devices") if isinstance(config, dict) else None
    devices = devices if isinstance(devices, list) else data.get("devices")
    gpus = len(devices) if isinstance(devices, list) and devices else None
    results = data.get("results")
    rows = []
    for one in results if isinstance(results, list) else []:
        if type(one) is not dict:
            wrong.count += 1
            continue
        for place in ("out_of_place", "in_place"):
            if type(measured := one.get(place)) is dict:
                name = one.get("experiment_name")
                rows.append(
                    _row(
                        operation or _operation(str(name) if type(name) is str else ""),
                        gpus,
                        whole(one.get("size"), wrong),
                        text(one.get("type"), wrong),
                        place == "in_place",
                        _number(measured.get("time", measured.get("cpu_time")), wrong),
                        _number(measured.get("alg_bw"), wrong),
                        _number(measured.get("bus_bw"), wrong),
                        _number(measured.get("nwrong"), wrong),
                    )
                )
    version = whole(data.get("nccl_version"), wrong, 1)
    return [row for row in rows if row], _version(version)


def _printed(content: str, wrong: Wrong) -> tuple[list[dict[str, Any]], str | None]:
    operation: str | None = None
    ranks: set[int] = set()
    rows: list[dict[str, Any]] = []
    library: int | None = None
    for line in content.splitlines():
        if line.lstrip().startswith("#"):
            if found := _STARTS.search(line):
                operation, ranks = _operation(found[1]), set()
            if found := _RANK.search(line):
                ranks.add(int(found[1]))
            if (found := _LIBRARY.search(line)) and found[1]:
                library = int(found[1])
            continue
        rows += _printed_row(line.split(), operation, len(ranks) or None, wrong)
    return rows, _version(library)


def _printed_row(words: list[str], operation: str | None, gpus: int | None, wrong: Wrong) -> list[dict[str, Any]]:
    """size, count, type, operation, root, and twice time, algorithm's and bus bandwidth and what was wrong."""
    if len(words) < 12 or not (words[0].isdigit() and words[1].isdigit()) or len(words[0]) > 18:
        # Before version 2.0 there was no column of the root.
        return []
    rest = words[5:]
    half = 4
    rows = []
    for at in range(0, min(len(rest), 2 * half), half):
        time, algorithm, bus, bad = (_parsed(word) for word in [*rest[at : at + half], "", "", "", ""][:4])
        rows.append(_row(operation, gpus, int(words[0]), words[2], at > 0, time, algorithm, bus, bad))
    found = [row for row in rows if row]
    wrong.count += len(rows) - len(found)
    return found


def _parsed(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _number(value: Any, wrong: Wrong) -> float | None:
    return None if type(value) is str else real(value, wrong)


def _row(
    operation: str | None,
    gpus: int | None,
    size: int | None,
    dtype: str | None,
    in_place: bool,
    micro: float | None,
    algorithm: float | None,
    bus: float | None,
    wrong: float | None,
) -> dict[str, Any]:
    if size is None or bus is None or micro is None or micro > 1e15:
        return {}
    return {
        "operation": operation,
        "gpus": gpus,
        "bytes": size,
        "dtype": dtype,
        "in_place": in_place,
        "duration": round(micro * 1000),
        "algorithm_bandwidth": algorithm,
        "bus_bandwidth": bus,
        "wrong": None if wrong is None else round(wrong),
    }


def _operation(program: str) -> str | None:
    found = _PROGRAM.search(program.strip())
    return found[1] if found else None


def _version(number: int | None) -> str | None:
    """2.28.9 of 22809; before 2.9 numbers had a digit less."""
    if number is None or not 1000 <= number < 10_000_000:
        return None
    if number < 10_000:
        return f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"
