"""What must not change the tables: the order of events, the zero of the clock, ids, chunks, memory, packing and the way to disk."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import random
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.analysis.test_findings import inputs
from tests.house.test_fuzz import write_case
from tests.support import forms, slices
from tests.support.chrome import AROUND, every_kind, random_run
from tests.support.forms import PACKINGS
from tests.support.places import FIXTURES
from traceanalyzer.ingest.formats.kineto.text import splitter
from traceanalyzer.ingest.rows import external_sort
from traceanalyzer.ingest.rows.order import KEYS, key_columns
from traceanalyzer.ingest.storing import ingest_to_store
from traceanalyzer.model.schema import EVENT_TABLES

GENERATED = {"every kind": json.dumps({**AROUND, "traceEvents": every_kind()}).encode()} | {
    f"random {seed}": random_run(seed).text().encode() for seed in range(6)
}
KINETO = (*slices.KINETO, *GENERATED)
NSYS = slices.NSYS


def data_of(name: str) -> bytes:
    if name in NSYS:
        return slices.nsys(name)
    return GENERATED[name] if name in GENERATED else slices.kineto(name)


def load(path: Path, data: bytes) -> ta.Trace:
    path.write_bytes(data)
    return ta.load(path)


@cache
def whole(name: str) -> ta.Trace:
    """The trace as it is, which every other form of it is held against."""
    with tempfile.TemporaryDirectory() as folder:
        return load(Path(folder) / "t", data_of(name))


@cache
def expected(name: str) -> dict[str, Any]:
    """The findings of the trace as it is; not to be changed."""
    return findings(whole(name))


def plain(table: pa.Table) -> pa.Table:
    """Names as texts: which number stands for a name does not matter."""
    types = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def same(one: ta.Trace, other: ta.Trace) -> None:
    """All tables are equal, row by row."""
    for name, table in one.tables.items():
        assert plain(table).equals(plain(other.table(name))), name


def rows(name: str, table: pa.Table) -> list[Any]:
    """The rows in their order; of those that are equal in every key, the contents in any order. Health without examples.

    Depth and parent follow from the keys, so they stay where they are.
    """
    by_place = [c for c in ("depth", "parent") if c in table.column_names]
    contents = [
        repr(row)
        for row in plain(table.drop_columns([*by_place, *(["example"] if name == "health" else [])])).to_pylist()
    ]
    keys = np.array(key_columns(table, KEYS.get(name, ()))).T.tolist() or [[]] * table.num_rows
    grouped = [sorted(contents[n] for n in group) for _, group in groupby(range(len(keys)), lambda n: keys[n])]
    return [grouped, table.select(by_place).to_pylist()]


def same_but_for_ties(one: ta.Trace, other: ta.Trace) -> None:
    for name, table in one.tables.items():
        assert rows(name, table) == rows(name, other.table(name)), name


def findings(trace: ta.Trace, shift_ns: int = 0) -> dict[str, Any]:
    """The result without what names the file, with its times moved back."""
    document = ta.analyze(trace).to_dict()
    del document["inputs"]
    for finding in document["findings"]:
        for evidence in finding["evidence"]:
            evidence["start_ns"] -= shift_ns
            evidence["end_ns"] -= shift_ns
    for recording in document["recordings"]:
        recording["start_ns"] -= shift_ns
        recording["end_ns"] -= shift_ns
    return document


# --- order ---


@pytest.mark.parametrize("name", KINETO)
def test_the_order_of_events(tmp_path, name):
    document = json.loads(data_of(name))
    for seed in range(2):
        random.Random(seed).shuffle(document["traceEvents"])
        shuffled = load(tmp_path / "t", json.dumps(document).encode())
        same_but_for_ties(whole(name), shuffled)
        assert expected(name) == findings(shuffled)


def edited(path: Path, data: bytes, edit: Callable[[sqlite3.Connection, str, list[str]], None]) -> ta.Trace:
    """An export after `edit(connection, table, columns)` of every table."""
    path.write_bytes(data)
    connection = sqlite3.connect(path)
    for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
        columns = [row[1] for row in connection.execute(f'pragma table_info("{table}")')]
        edit(connection, table, columns)
    connection.commit()
    connection.close()
    return ta.load(path)


def shuffle(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
    found = connection.execute(f'select * from "{table}"').fetchall()
    random.Random(1).shuffle(found)
    connection.execute(f'delete from "{table}"')
    connection.executemany(f'insert into "{table}" values ({", ".join("?" * len(columns))})', found)


@pytest.mark.parametrize("name", NSYS)
def test_the_order_of_rows(tmp_path, name):
    shuffled = edited(tmp_path / "t", data_of(name), shuffle)
    same_but_for_ties(whole(name), shuffled)
    assert expected(name) == findings(shuffled)


def test_the_order_of_files(tmp_path):
    folder = FIXTURES / "multirank/pipeline_bubble.slow"
    files = sorted(folder.iterdir())
    trace = ta.load(folder)
    for order in (files[::-1], files[2:] + files[:2]):
        again = ta.load(order)
        same(trace, again)
        assert (again.inputs, findings(again)) == (trace.inputs, findings(trace))


# --- the clock ---


def moved_back(trace: ta.Trace, shift_ns: int) -> ta.Trace:
    tables = {}
    for name, table in trace.tables.items():
        times = {c: pc.subtract(table[c], shift_ns) for c in table.column_names if c.endswith("_ns")}
        tables[name] = pa.table({c: times.get(c, table[c]) for c in table.column_names}, schema=table.schema)
    return ta.Trace(trace.inputs, tables)


# To and fro across 2^43 µs, where a float64 no longer holds three decimals.
@pytest.mark.parametrize("shift_us", ["1234567.891", "1712600000000000.001", "-4958000000000.5"])
@pytest.mark.parametrize("name", KINETO)
def test_the_zero_of_the_clock(tmp_path, name, shift_us):
    def later(found: re.Match[bytes]) -> bytes:
        return found[1] + str(Decimal(found[2].decode()) + Decimal(shift_us)).encode()

    shifted = load(tmp_path / "t", re.sub(rb'("ts": )([-\d.]+)', later, data_of(name)))
    shift_ns = int(Decimal(shift_us) * 1000)
    same(whole(name), moved_back(shifted, shift_ns))
    assert expected(name) == findings(shifted, shift_ns)


@pytest.mark.parametrize("name", NSYS)
def test_the_zero_of_the_clock_of_an_export(tmp_path, name):
    shift_ns = 987_654_321_000

    def later(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for column in {"start", "end", "timestamp"} & set(columns):
            connection.execute(f'update "{table}" set "{column}" = "{column}" + {shift_ns}')
        if table == "META_DATA_EXPORT":
            # As nsys says of an export that it shifted.
            connection.execute(f"update \"{table}\" set value = '{shift_ns}' where name = 'EXPORT_PARAM_TIME_SHIFT'")

    shifted = edited(tmp_path / "t", data_of(name), later)
    same(whole(name), moved_back(shifted, shift_ns))
    assert expected(name) == findings(shifted, shift_ns)


# --- ids of processes and threads ---


GPU_PROCESSES = range(16)
"""The pids of GPU events are the numbers of GPUs."""


def renumbered(data: bytes, pid: Callable[[int], int], tid: Callable[[int], int]) -> bytes:
    """The trace with other ids of processes and threads on the host."""
    document = json.loads(data)
    for event in document["traceEvents"]:
        if isinstance(event.get("pid"), int) and event["pid"] not in GPU_PROCESSES and event["pid"] >= 0:
            event["pid"] = pid(event["pid"])
            if isinstance(event.get("tid"), int):
                event["tid"] = tid(event["tid"])
    return json.dumps(document).encode()


def with_ids(trace: ta.Trace, pid: Callable[[int], int], tid: Callable[[int], int]) -> ta.Trace:
    """The trace with other ids in its tables."""

    def renamed(table: pa.Table, column: str, of: Callable[[int], int]) -> pa.Array:
        owners = table["process"].to_pylist()
        ids = zip(owners, table[column].to_pylist(), strict=True)
        return pa.array([i if p is None or p in GPU_PROCESSES or i is None else of(i) for p, i in ids], pa.int64())

    tables = {}
    for name, table in trace.tables.items():
        known = {"process": pid, "pid": pid, "thread": tid} if name in EVENT_TABLES else {}
        columns = {c: renamed(table, c, of) for c, of in known.items() if c in table.column_names}
        tables[name] = pa.table({c: columns.get(c, table[c]) for c in table.column_names}, schema=table.schema)
    tables["threads"] = tables["threads"].sort_by([("process", "ascending"), ("thread", "ascending")])
    return ta.Trace(trace.inputs, tables)


@pytest.mark.parametrize("name", [n for n in KINETO if n != "every kind"])
def test_ids_of_processes_and_threads(tmp_path, name):
    def later(number: int) -> int:
        return number + 70_000

    again = load(tmp_path / "t", renumbered(data_of(name), later, later))
    same(with_ids(whole(name), later, later), again)
    assert expected(name) == findings(again)


@pytest.mark.parametrize("seed", range(6))
def test_ids_in_another_order(tmp_path, seed):
    """Rows follow their threads, so they lie elsewhere; what they say is the same."""

    def reversed_(tid: int) -> int:
        return 1000 - tid

    def contents(trace: ta.Trace) -> dict[str, list[str]]:
        tables = {n: t.drop_columns({"parent"} & set(t.column_names)) for n, t in trace.tables.items()}
        return {name: sorted(map(repr, plain(table).to_pylist())) for name, table in tables.items()}

    text = random_run(seed).text().encode()
    trace = load(tmp_path / "t", text)
    again = load(tmp_path / "t", renumbered(text, lambda pid: pid, reversed_))
    assert contents(with_ids(trace, lambda pid: pid, reversed_)) == contents(again)
    assert findings(trace) == findings(again)


@pytest.mark.parametrize("pid", GPU_PROCESSES[:2])
@pytest.mark.parametrize("name", [n for n in KINETO if n != "every kind"])
def test_a_process_with_the_number_of_a_gpu(tmp_path, name, pid):
    """As in containers, where the trained process is the first one."""
    again = load(tmp_path / "t", renumbered(data_of(name), lambda _: pid, lambda tid: tid))
    same_but_for_ties(with_ids(whole(name), lambda _: pid, lambda tid: tid), again)
    assert expected(name) == findings(again)


@pytest.mark.parametrize("name", NSYS)
def test_ids_of_processes_in_an_export(tmp_path, name):
    def later(process: int) -> int:
        return process + 5

    def renumber(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for column in {"globalPid", "globalTid", "endGlobalTid"} & set(columns):
            connection.execute(f'update "{table}" set "{column}" = "{column}" + (5 << 24)')
        for column in {"pid", "processId"} & set(columns):
            connection.execute(f'update "{table}" set "{column}" = "{column}" + 5')

    again = edited(tmp_path / "t", data_of(name), renumber)
    same(with_ids(whole(name), later, lambda thread: thread), again)
    assert expected(name) == findings(again)


# --- how much is read, and held, at a time ---


@pytest.mark.parametrize("chunk_bytes", [64, 65, 1000, 1 << 14])
@pytest.mark.parametrize("name", KINETO)
def test_chunks_of_any_size(tmp_path, monkeypatch, name, chunk_bytes):
    trace = whole(name)
    (tmp_path / "t").write_bytes(data_of(name))
    monkeypatch.setattr(splitter, "CHUNK_BYTES", chunk_bytes)
    same(trace, ta.load(tmp_path / "t"))


def without_examples(trace: ta.Trace) -> ta.Trace:
    """Which of several faults is shown is a matter of the order in which kinds of events are looked at."""
    health = trace.table("health").drop_columns(["example"])
    return ta.Trace(trace.inputs, trace.tables | {"health": health})


@pytest.mark.parametrize("number", range(100))
def test_chunks_of_any_size_of_a_damaged_trace(tmp_path, monkeypatch, number):
    """What is mended, what is dropped and what is said of it depend on the bytes alone."""
    path = write_case("chrome" if number % 4 else "kineto", number, tmp_path)
    told = []
    # The smallest take the longest.
    for chunk_bytes in (1 << 20, 3000 if number % 3 else 64):
        monkeypatch.setattr(splitter, "CHUNK_BYTES", chunk_bytes)
        try:
            told.append(ta.load(path))
        except ta.InputError as error:
            told.append(str(error))
    for again in told[1:]:
        if isinstance(told[0], str):
            assert again == told[0]
        else:
            same(without_examples(told[0]), without_examples(again))


@pytest.mark.parametrize("run_rows", [5, 64])
@pytest.mark.parametrize("name", [*KINETO, *NSYS])
def test_runs_of_any_length(tmp_path, monkeypatch, name, run_rows):
    trace = whole(name)
    (tmp_path / "t").write_bytes(data_of(name))
    for constant, value in (("RUN_ROWS", run_rows), ("BLOCK_ROWS", 3), ("MOST_OPEN", 4)):
        monkeypatch.setattr(external_sort, constant, value)
    same(trace, ta.load(tmp_path / "t"))


# --- packing ---


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", [slices.KINETO[1], "every kind", NSYS[0]], ids=["kineto", "generated", "nsys"])
def test_packing(tmp_path, name, packing):
    data = data_of(name)
    same(whole(name), load(tmp_path / "packed", PACKINGS[packing](data)))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", [slices.KINETO[1], "every kind"], ids=["kineto", "generated"])
def test_encoding(tmp_path, name, encoding):
    data = data_of(name)
    same(whole(name), load(tmp_path / "encoded", data.decode().encode(encoding)))


@pytest.mark.parametrize("packing", [None, "gzip", "zip"])
@pytest.mark.parametrize("name", [slices.KINETO[1], NSYS[0]], ids=["kineto", "nsys"])
def test_standard_input(tmp_path, monkeypatch, name, packing):
    data = data_of(name)
    piped = io.BytesIO(PACKINGS[packing](data) if packing else data)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=piped, isatty=lambda: False))
    same(whole(name), ta.load("-"))


# --- any other legal form ---


@cache
def expected_figures(name: str) -> dict[str, Any]:
    return figures(whole(name))


def figures(trace: ta.Trace) -> dict[str, Any]:
    """The result without what names the file and what is said of its health, and so of how sure findings are."""
    document = findings(trace)
    del document["health"]
    for part in ("findings", "rules"):
        document[part] = [one for one in document[part] if not one["rule"].startswith("TRC")]
    for finding in document["findings"]:
        del finding["confidence"], finding["confidence_reasons"]
    return document


def in_form(document: dict[str, Any], form: Form, chance: random.Random) -> bytes:
    """The trace in another form."""
    document = json.loads(json.dumps(document))
    for edit in form.edits:
        edit(document, chance)
    text = forms.written(document, form.numbers, form.layout, chance).encode(form.encoding)
    for packing in form.packings:
        text = PACKINGS[packing](text)
    return text


@dataclass(frozen=True)
class Form:
    edits: tuple[Callable[..., None], ...] = ()
    numbers: str = "plain"
    layout: str = "compact"
    encoding: str = "utf-8"
    packings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        edits = ", ".join(edit.__name__ for edit in self.edits)
        return f"({edits}; {self.numbers}, {self.layout}, {self.encoding}, {self.packings})"


FORMS = [
    *(Form((edit,)) for edit in forms.DOCUMENT_FORMS),
    *(Form(numbers=numbers) for numbers in forms.SPELLINGS),
    *(Form(layout=layout) for layout in forms.LAYOUTS),
    *(Form(encoding=encoding) for encoding in forms.ENCODINGS),
]
COMPOSED = st.builds(
    Form,
    st.lists(st.sampled_from(forms.DOCUMENT_FORMS), unique=True, max_size=5).map(tuple),
    st.sampled_from(forms.SPELLINGS),
    st.sampled_from(forms.LAYOUTS),
    st.sampled_from(forms.ENCODINGS),
    st.lists(st.sampled_from(list(PACKINGS)), max_size=1).map(tuple),
)
FORMED = {
    "copies": "kineto/h2d_pageable.slow.pt.trace.json.gz",
    "waits": "captured/isnan_sync.json.gz",
    "steps": "random 3",
    "two GPUs": "random 5",
}
EXAMPLES = int(os.environ.get("FORMS", "12"))
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="FORMS" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@cache
def formed(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A small trace and its figures."""
    return json.loads(data_of(FORMED[name])), expected_figures(FORMED[name])


def check_form(name: str, form: Form, seed: int) -> None:
    document, expected = formed(name)
    with tempfile.TemporaryDirectory() as folder:
        assert figures(load(Path(folder) / "t", in_form(document, form, random.Random(seed)))) == expected


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("name", ["copies", "two GPUs"])
def test_another_form(name, form):
    check_form(name, form, 1)


@pytest.mark.parametrize("name", FORMED)
@thorough
@given(form=COMPOSED, seed=st.integers(0, 99))
def test_other_forms_together(name, form, seed):
    check_form(name, form, seed)


@pytest.mark.parametrize("end", ["list", "lines", "comma", "no end", "comma and no end", "space"])
def test_other_ends_and_shells(tmp_path, end):
    """Forms of the trace without anything around its events."""
    events = [json.dumps(event) for event in json.loads(data_of("random 3"))["traceEvents"]]
    whole = ",\n".join(events)
    text = {
        "list": f"[{whole}]",
        "lines": "\n".join(events),
        "comma": f'{{"traceEvents": [{whole},]}}',
        "no end": f'{{"traceEvents": [{whole}',
        "comma and no end": f"[{whole},\n",
        "space": f' \r\n\t{{ "traceEvents" :\n[ {whole} ] }} \n\n',
    }[end]
    plain_ = load(tmp_path / "t", f'{{"traceEvents": [{whole}]}}'.encode())
    assert figures(load(tmp_path / "t", text.encode())) == figures(plain_)


@settings(thorough, max_examples=max(2, EXAMPLES // 3))
@given(one=COMPOSED, other=COMPOSED, seed=st.integers(0, 99))
def test_other_forms_of_the_ranks_of_a_job(one, other, seed):
    documents = [json.loads(data_of(name)) for name in slices.KINETO[-2:]]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "rank0", Path(folder) / "rank3"]
        told = []
        for forms_ in ((Form(), Form()), (one, other)):
            for path, document, form in zip(paths, documents, forms_, strict=True):
                path.write_bytes(in_form(document, form, random.Random(seed)))
            told.append(figures(ta.load(paths)))
        assert told[0] == told[1]


@pytest.mark.parametrize("name", NSYS)
@thorough
@given(
    edits=st.lists(st.sampled_from(forms.TABLE_FORMS), unique=True, max_size=4).map(tuple),
    page=st.sampled_from(forms.PAGES),
    encoding=st.sampled_from(("UTF-8", "UTF-16le", "UTF-16be")),
    wal=st.booleans(),
    seed=st.integers(0, 99),
)
def test_other_forms_of_an_export(name, edits, page, encoding, wal, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(data_of(name))
        forms.exported(path, edits, page, encoding, wal, random.Random(seed))
        assert figures(ta.load(path)) == expected_figures(name)


# --- to disk and back ---


def digests(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.mark.parametrize("file", inputs(FIXTURES))
def test_a_store_is_what_was_read(tmp_path, file):
    """Twice the same bytes, the tables and result of the trace itself, and the input as it was."""
    path = FIXTURES / file
    before, beside = digests(path), sorted(path.parent.iterdir())
    trace = ta.load(path)
    for name in ("one", "other"):
        ingest_to_store([path], tmp_path / name, "test")
    assert digests(tmp_path / "one") == digests(tmp_path / "other")
    again = ta.load(tmp_path / "one")
    assert again.inputs == trace.inputs
    assert all(again.table(name).schema == table.schema for name, table in trace.tables.items())
    same(trace, again)
    assert (digests(path), sorted(path.parent.iterdir())) == (before, beside)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "other"]


# --- what is lost ---


def cuts(data: bytes) -> Iterator[int]:
    return iter(sorted(random.Random(len(data)).sample(range(len(data)), 60)))


@pytest.mark.parametrize("pack", [None, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
@pytest.mark.parametrize("name", [slices.KINETO[11], "every kind", NSYS[0]], ids=["kineto", "generated", "nsys"])
def test_a_cut_is_never_silent(tmp_path, name, pack):
    data = data_of(name)
    packed = pack(data) if pack else data
    for at in cuts(packed):
        try:
            trace = load(tmp_path / "t", packed[:at])
        except ta.InputError:
            continue
        assert "TRC001" in trace.table("health")["code"].to_pylist(), f"cut at {at} of {len(packed)}"
