"""Texts of emit_nvtx, cut in the bytes of a batch, beside the same done text by text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.ingest.formats.nsys.events.operators import describe_ranges

PIECES = [", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = ", ", seq", " = ", "=", "aten::add", "é", "7"]
texts = st.lists(st.sampled_from([*PIECES, "12", "[[2, 2]]", "1" * 18, "1" * 19]), max_size=9).map("".join)


def plainly(text: str) -> tuple[Any, ...]:
    """Name, category, shapes and sequence of one text."""
    head, _, tail = text.partition(", op_id = ")
    number, sized, arguments = tail.partition(", sizes = ")
    number = number.partition(", input_op_ids = ")[0]
    if not (head and number.isascii() and number.isdecimal()):
        return text, "nvtx", None, None
    shapes = arguments.partition(", input_op_ids = ")[0] if sized else None
    name, _, sequence = head.rpartition(", seq = ")
    if ", seq = " not in head or not (sequence.isascii() and sequence.isdecimal() and len(sequence) <= 18):
        name, sequence = head, ""
    return name, "operator" if "::" in name else "nvtx", shapes, int(sequence) if sequence else None


@given(st.lists(texts, max_size=6), st.integers(0, 2))
def test_a_batch_is_read_as_each_text_is(batch: list[str], skipped: int) -> None:
    found = describe_ranges(pa.array(batch, pa.string()).slice(skipped))
    none = pa.nulls(len(batch[skipped:]))
    rows = zip(*(found.get(name, none).to_pylist() for name in ("name", "category", "shapes", "sequence")), strict=True)
    assert list(rows) == [plainly(text) for text in batch[skipped:]]


def test_a_mark_across_two_texts_is_none() -> None:
    assert describe_ranges(pa.array(["a::b, op_id", " = 3", "a::c, op_id = 4"]))["name"].to_pylist() == [
        "a::b, op_id",
        " = 3",
        "a::c",
    ]
