"""The rows of an export come in no particular order: any order gives the same tables."""

from __future__ import annotations

import lzma
import random
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from tests.nsys.nsys_export import Row, Tables, global_id, kernel, make_export, memcpy, nvtx, read, runtime
from tests.nsys.test_directives import NAMES, construct, domain_rows, region
from traceanalyzer.model.schema import EVENT_TABLES

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "nsys"
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "nsys"
EXPORTS = [*sorted(FIXTURES.glob("*.sqlite*")), *(sorted(CORPUS.glob("*.sqlite")) if CORPUS.is_dir() else ())]
SEEDS = (1, 2)


def shuffled(path: Path, place: Path, seed: int) -> Path:
    """A copy of an export with the rows of every table in another order; without keys, by which SQLite would sort them."""
    draw = random.Random(seed)
    source, target = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True), sqlite3.connect(place)
    names = [name for (name,) in source.execute("select name from sqlite_master where type = 'table'")]
    draw.shuffle(names)
    for name in names:
        columns = source.execute(f'select name, type from pragma_table_info("{name}")').fetchall()
        target.execute(f'create table "{name}" ({", ".join(f""""{c}" {kind}""" for c, kind in columns)})')
        rows = source.execute(f'select * from "{name}"').fetchall()
        draw.shuffle(rows)
        target.executemany(f'insert into "{name}" values ({", ".join("?" * len(columns))})', rows)
    target.commit()
    source.close()
    target.close()
    return place


def check(path: Path, folder: Path) -> None:
    first = read(path)
    for seed in SEEDS:
        other = read(shuffled(path, folder / f"{seed}.sqlite", seed))
        assert other.facts == first.facts
        for name in EVENT_TABLES:
            one, two = (found.table(name) for found in (first, other))
            if not decoded(one).equals(decoded(two)):
                rows = zip(one.to_pylist(), two.to_pylist(), strict=True)
                assert (name, *next((a, b) for a, b in rows if a != b)) == (name, None, None)


def decoded(table: pa.Table) -> pa.Table:
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[field.name].cast(field.type.value_type))
    return table


@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.name)
def test_recorded_exports(tmp_path: Path, path: Path) -> None:
    if path.suffix == ".xz":
        unpacked = tmp_path / path.stem
        unpacked.write_bytes(lzma.decompress(path.read_bytes()))
        path = unpacked
    check(path, tmp_path)


def alike() -> Tables:
    """Rows that differ in little but what they are called: the same times, threads and streams."""
    here: Row = {"globalTid": global_id(7, 8)}
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(demangledName=name, correlation=c) for name in (1, 2) for c in (1, 1, 2)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [memcpy(bytes=n, correlationId=2) for n in (64, 128, 1)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime(name=name) for name in (3, 4, 6)],
        "NVTX_EVENTS": [*domain_rows(), *({"category": None} | nvtx(100, 200, text) for text in "bac")],
        "CUPTI_ACTIVITY_KIND_OPENACC_DATA": [construct(30, varName=v) for v in (34, 33, None)],
        "OPENMP_EVENT_KIND_WORKSHARE": [region(kind=kind) for kind in (3, 1, 2)],
        "CUDA_HOST_CALLBACK": [construct(name) for name in (37, 31)],
        "OSRT_API": [here | {"start": 1, "end": 2, "nameId": name} for name in (30, 31, 35)],
        "PROFILER_OVERHEAD": [here | {"start": 5, "end": 9, "nameId": name} for name in (31, 30)],
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [
            {"start": 7, "globalPid": global_id(7), "deviceId": 0, "address": 4096, "bytes": n, "memKind": 2, "memoryOperationType": o}
            for n, o in ((8, 0), (8, 1), (16, 0))
        ],
        "GPU_METRICS": [{"timestamp": 5, "typeId": 0, "metricId": m, "value": v} for m in (2, 1) for v in (9, 3)],
        "NET_NIC_METRIC": [
            {"start": 5, "globalId": d, "portId": 1, "metricsListId": 5, "metricsIdx": i, "value": v}
            for d in (1, 2)
            for i in (1, 2)
            for v in (7, 8)
        ],
        "GPU_CONTEXT_SWITCH_EVENTS": [
            {"tag": 8, "timestamp": 1500, "globalPid": global_id(pid), "gpuId": 0} for pid in (7, 98, 99)
        ],
        "ThreadNames": [here | {"nameId": name, "priority": 1} for name in (9, 30)],
        "PROCESSES": [{"globalPid": global_id(7), "name": name} for name in ("b", "a")],
        "TARGET_INFO_GPU": [{"id": 0, "name": "B", "uuid": None}, {"id": 0, "name": "A", "uuid": "u"}],
    }  # fmt: skip


def test_rows_that_are_nearly_alike(tmp_path: Path) -> None:
    check(make_export(tmp_path / "a.sqlite", alike(), NAMES), tmp_path)
