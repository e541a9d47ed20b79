"""Hostile dumps: one line of an error, and nothing in them is ever run; pairs of strings are all that is let through besides."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.evidence.nccl_records.made import dump, entry, pickled, read, rounds
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes.pickles import unpickled
from traceanalyzer.ingest.bytes.source import source_of

HEAD = b"\x80\x04}\x94(\x8c\x09pg_config\x94}\x94\x8c\x07entries\x94]\x94"


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def _refused(folder: Path, data: bytes) -> str:
    path = folder / "hostile.pkl"
    path.write_bytes(data)
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        unpickled(source_of(path, path, None), pairs=True)
    assert time.process_time() - began < 10
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_code_is_refused_and_not_run(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "opcode" in _refused(tmp_path, pickle.dumps(dump([entry(1, frames=Runs())]), protocol))
    with pytest.raises(InputError):
        read(tmp_path / "hostile.pkl")
    assert not (tmp_path / "ran").exists()


PAIRS = {
    "of a list": b"h\x00h\x01\x86.",
    "of a pair": b"h\x01h\x01\x86\x94h\x05h\x05\x86.",
    "of a number and a string": b"K\x01\x8c\x01a\x86.",
    "alone": b"\x8c\x01a\x85.",
    "of three": b"\x8c\x01a\x8c\x01b\x8c\x01c\x87.",
    "of a mark": b"(\x8c\x01a\x8c\x01bt.",
    "hidden in a number": b"jh\x01h\x01\x86.",
    "of what is not numbered yet": b"h\x63h\x63\x86.",
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_anything_else_are_refused(name: str, tmp_path: Path) -> None:
    message = _refused(tmp_path, HEAD + PAIRS[name])
    assert "pair" in message or "opcode" in message


def test_places_of_the_memo_are_written_once_and_in_order(tmp_path: Path) -> None:
    text = b"X\x01\x00\x00\x00a"
    for data in (text + b"q\x05h\x05h\x05\x86.", text + b"q\x00]q\x00h\x00h\x00\x86."):
        assert "out of their order" in _refused(tmp_path, b"\x80\x02" + data)


def test_pairs_within_pairs_cost_no_time(tmp_path: Path) -> None:
    """As keys, pairs that hold pairs of pairs would be hashed for longer than anyone waits."""
    nested = b"".join(b"h" + bytes((n,)) * 1 + b"h" + bytes((n,)) + b"\x86\x94" for n in range(5, 90))
    _refused(tmp_path, HEAD + b"h\x01h\x03\x86\x94" + nested + b"K\x01u.")


def test_the_same_part_again_and_again_is_refused(tmp_path: Path) -> None:
    shared: list[Any] = [[1] * 1000] * 1000
    content = dump([entry(1, input_sizes=shared, output_sizes=shared)] * 1000)
    path = tmp_path / "shared.pkl"
    path.write_bytes(pickle.dumps(content, 4))
    with pytest.raises(InputError, match="again and again"):
        read(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_ends_in_one_line_or_in_tables(data: st.DataObject, tmp_path: Path) -> None:
    whole = pickled(dump(rounds(4))) if data.draw(st.booleans()) else pickle.dumps(dump(rounds(4)), 4)
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(300, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.pkl"
    path.write_bytes(bytes(content))
    try:
        sink, _ = read(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        for batches in sink.tables.values():
            for batch in batches:
                batch.validate(full=True)
