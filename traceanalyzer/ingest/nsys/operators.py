"""What the text of an NVTX range says: PyTorch's emit_nvtx puts an operator's arguments behind its name.

    aten::add, seq = 7, op_id = 3, sizes = [[2, 2]], input_op_ids = [(0,-1)]

Texts with arguments are all different, by the million: nothing is kept from one batch to the next.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER, _SEQUENCE, _SIZES, _INPUTS = ", op_id = ", ", seq = ", ", sizes = ", ", input_op_ids = "
# More do not fit into 64 bits.
_MOST_DIGITS = 18


def described(texts: pa.Array) -> dict[str, pa.Array]:
    """Name and category of ranges, and the shapes and sequence number that operators have.

    Arguments leave the names of operators, so that they group. A text of another form is a name.
    """
    if not pc.any(pc.match_substring(texts, _NUMBER)).as_py():
        category = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(texts), np.int32)), pa.array(["nvtx"]))
        return {"name": texts.dictionary_encode(), "category": category}
    head, tail = _cut(texts, _NUMBER)
    number, arguments = _cut(tail, _SIZES)
    number, _ = _cut(number, _INPUTS)
    shapes, _ = _cut(arguments, _INPUTS)
    formed = pc.and_(pc.fill_null(pc.ascii_is_decimal(number), False), pc.greater(pc.binary_length(head), 0))
    name, sequence = _cut(head, _SEQUENCE, last=True)
    numbered = pc.and_(pc.ascii_is_decimal(sequence), pc.less_equal(pc.binary_length(sequence), _MOST_DIGITS))
    numbered = pc.and_(formed, pc.fill_null(numbered, False))
    name = pc.if_else(numbered, name, pc.if_else(formed, head, texts)).dictionary_encode()
    is_scoped = pc.match_substring(name.dictionary, "::").take(name.indices)
    return {
        "name": name,
        "category": pc.if_else(pc.and_(formed, is_scoped), "operator", "nvtx").dictionary_encode(),
        "shapes": pc.if_else(formed, shapes, None),
        "sequence": pc.if_else(numbered, sequence, None).cast(pa.int64()),
    }


def _cut(texts: pa.Array, mark: str, last: bool = False) -> tuple[pa.Array, pa.Array]:
    """What lies before and after the first (or last) `mark`; after is null where there is none."""
    parts = pc.split_pattern(texts, mark, max_splits=1, reverse=last)
    absent = pc.fill_null(pc.list_value_length(parts), 0).to_numpy() < 2
    starts = parts.offsets.to_numpy()[:-1]
    after = parts.values.take(pa.array(np.where(absent, 0, starts + 1), mask=absent))
    return pc.list_element(parts, 0), after
