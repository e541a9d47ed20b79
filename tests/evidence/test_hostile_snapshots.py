"""Hostile pickles: one line of an error, in time and memory that follow the file; and nothing in them is ever run."""

from __future__ import annotations

import os
import pickle
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.evidence.memory_snapshots import MIB, block, entry, frame, read, segment, snapshot, source, write
from traceanalyzer.errors import InputError
from traceanalyzer.ingest.bytes import pickles

HEAD = b"\x80\x04}(\x8c\x08segments](\x8c\x0ddevice_traces]"


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def _refused(folder: Path, data: bytes) -> str:
    path = folder / "hostile.pickle"
    path.write_bytes(data)
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(InputError) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB + 40 * len(data)
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 10
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and len(message) < len(str(path)) + 200
    return message


CODES = {
    "reduce": pickle.dumps(snapshot([{"device": Runs()}])),
    "reduce, protocol 2": pickle.dumps(snapshot([{"device": Runs()}]), 2),
    "global": HEAD + b"cos\nsystem\n.",
    "stack global": HEAD + b"\x8c\x02os\x8c\x06system\x93.",
    "inst": HEAD + b"(ios\nsystem\n.",
    "obj": HEAD + b"(K\x01o.",
    "newobj": HEAD + b"})\x81.",
    "newobj_ex": HEAD + b"})}\x92.",
    "build": HEAD + b"}}b.",
    "ext1": HEAD + b"\x82\x01.",
    "ext4": HEAD + b"\x84\x01\x00\x00\x00.",
    "persid": HEAD + b"Pone\n.",
    "binpersid": HEAD + b"K\x01Q.",
    "buffer": HEAD + b"\x97.",
    "text protocol": pickle.dumps(snapshot([]), 0),
}


@pytest.mark.parametrize("name", CODES)
def test_code_is_refused_and_not_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = CODES[name]
    message = _refused(tmp_path, data) if data[0] == 0x80 else ""
    assert "opcode" in message or not message
    assert not (tmp_path / "ran").exists()


def test_the_unpickler_refuses_by_itself_what_the_check_would_let_through(tmp_path: Path) -> None:
    import io

    for data in (b"cos\nsystem\n.", b"\x80\x04K\x01Q."):
        with pytest.raises(Exception, match="never loaded"):
            pickles._Unpickler(io.BytesIO(data)).load()


SIZES = {
    "memo": HEAD + b"r\xff\xff\xff\xff.",
    "long text": HEAD + b"X\xff\xff\xff\x7fabc",
    "long text of eight bytes": HEAD + b"\x8d" + struct.pack("<Q", 1 << 50),
    "bytes": HEAD + b"\x8e" + struct.pack("<Q", 1 << 50),
    "long number": HEAD + b"\x8b\xff\xff\xff\x7f",
    "number of 80 bits": HEAD + b"\x8a\x0a" + 10 * b"\x01" + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + HEAD[2:],
    "marks": HEAD + b"(" * MIB + b".",
    "empty lists": HEAD + b"]" * (4 * MIB) + b".",
    "empty dictionaries": HEAD + b"}" * (4 * MIB) + b".",
    "nested tuples": HEAD + b"K\x01" + b"\x85" * MIB + b".",
    "doubled tuples as a key": HEAD + b"}K\x01" + b"2\x86" * 64 + b"Ns.",
    "shared tuples as a key": HEAD
    + b"}K\x01K\x01\x86"
    + b"".join(b"q%ch%ch%c\x86" % (n, n, n) for n in range(64))
    + b"Ns.",
    "nothing": b"\x80\x04.",
    "no end": HEAD,
    "cut in an opcode": HEAD + b"J\x01",
    "wrong order": HEAD + b"aaaa.",
    "empty": b"\x80\x04",
    "no dictionary": b"\x80\x04K\x01.",
    "list in itself": b"\x80\x04]q\x00h\x00a.",
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_bounded(name: str, tmp_path: Path) -> None:
    if name == "list in itself":
        # It holds no segment: what is not of a kind counts as absent.
        path = tmp_path / "x.pickle"
        path.write_bytes(SIZES[name])
        assert read(path)[0].said("wrong type")
        return
    _refused(tmp_path, SIZES[name])


def test_the_same_lists_again_and_again_are_refused(tmp_path: Path) -> None:
    blocks = [block(n, 1) for n in range(2000)]
    assert "again and again" in _refused(tmp_path, pickle.dumps(snapshot([segment(0, blocks)] * 4000)))
    trace = [entry("alloc", n, n, 512) for n in range(2000)]
    assert "again and again" in _refused(tmp_path, pickle.dumps(snapshot([], *[trace] * 900)))


def test_a_million_gpus(tmp_path: Path) -> None:
    assert "GPUs" in _refused(
        tmp_path, b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](" + b"]NNNNNNNN" * 1_000_000 + b"eu."
    )
    many = pickle.dumps(snapshot([segment(n, [block(n, 1)], device=n) for n in range(5000)]))
    assert "GPUs" in _refused(tmp_path, many)


def test_sizes_that_no_gpu_has(tmp_path: Path) -> None:
    assert "no GPU" in _refused(tmp_path, pickle.dumps(snapshot([segment(0, [block(0, 1 << 61)])] * 3)))


def test_deep_and_circular_content_is_no_matter(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    content = snapshot(
        [segment(0, [block(0, 512, frames=circle), block(512, 512, frames=deep), block(1024, 1, frames=[loop])])],
        [entry("alloc", 1, 0, 512, frames=circle), loop],  # type: ignore[list-item]
        allocator_settings=loop,
        external_annotations=circle,
    )
    sink, _ = read(write(tmp_path, content))
    assert sink.said("wrong type")
    # As deep as a file can say, without Python's own recursion: lists in lists, and one segment.
    path = tmp_path / "deep.pickle"
    path.write_bytes(b"\x80\x04}(\x8c\x08segments](" + b"](NNNNNNNNN" * 200_000 + b"e" * 200_000 + b"eu.")
    assert read(path)[0].said("wrong type")


WRONG: list[Any] = [
    None,
    True,
    -1,
    0,
    1 << 62,
    -(1 << 70),
    1 << 63,
    1.5,
    float("nan"),
    float("inf"),
    "x",
    "\ud800",
    [],
    {},
    (0, 1),
]


def _mutated() -> st.SearchStrategy[Any]:
    """A small snapshot of which some values are replaced by wrong ones."""
    base = snapshot(
        [segment(0, [block(0, 512, frames=[frame(1)]), block(512, 512, "inactive")])],
        [
            entry("segment_alloc", 0, 0, 1024),
            entry("alloc", 1, 0, 512, frames=[frame(2)]),
            entry("free_requested", 2, 0, 512),
            entry("free_completed", 3, 0, 512),
            entry("oom", 4, 0, 512, device_free=3),
        ],
        external_annotations=[{"stage": "START", "name": "a", "device": 0, "time_us": 1}],
        allocator_settings={"a": 1, "roundup_power2_divisions": {"1": 2}, "max_split_size": 3},
    )
    paths: list[tuple[Any, ...]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        if path:
            paths.append(path)
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            walk(value, (*path, key))

    walk(base, ())

    @st.composite
    def made(draw: st.DrawFn) -> Any:
        content = pickle.loads(pickle.dumps(base))
        for path in draw(st.lists(st.sampled_from(paths), max_size=6)):
            node = content
            try:
                for key in path[:-1]:
                    node = node[key]
                if draw(st.booleans()) and isinstance(node, dict):
                    node.pop(path[-1], None)
                else:
                    node[path[-1]] = draw(st.sampled_from(WRONG))
            except (KeyError, IndexError, TypeError):
                continue
        return content

    return made()


@given(content=_mutated())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_values_anywhere(content: Any, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    try:
        sink, _ = read(path)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for row in sink.rows("snapshot_totals"):
        assert row["allocated_bytes"] <= row["active_bytes"]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
)


@given(content=PLAIN, protocol=st.integers(2, 5), block_bytes=st.sampled_from((1, 3, 64, 1 << 20)))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_plain_data_comes_out_as_it_is(content: Any, protocol: int, block_bytes: int, tmp_path: Path) -> None:
    path = write(tmp_path, content, lambda one: pickle.dumps(one, protocol))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pickles, "BLOCK_BYTES", block_bytes)
        assert pickles.unpickled(source(path)) == (content, path.stat().st_size)


def test_long_texts_and_many_blocks(tmp_path: Path) -> None:
    content = {"a": "x" * (3 * MIB), "b": [{"n": n, "t": str(n)} for n in range(200_000)], "c": (1, 70_000)}
    for protocol in (2, 4):
        path = write(tmp_path, content, lambda one: pickle.dumps(one, protocol))  # noqa: B023
        assert pickles.unpickled(source(path))[0] == content
