"""What the text of an NVTX range says: PyTorch's emit_nvtx puts an operator's arguments behind its name.

    aten::add, seq = 7, op_id = 3, sizes = [[2, 2]], input_op_ids = [(0,-1)]

Texts with arguments are all different, by the million: nothing is kept from one batch to the next. What separates the arguments is
sought once in the bytes of a whole batch, and no text is copied but the parts that are wanted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

_SEQUENCE, _NUMBER, _SIZES, _INPUTS = b", seq = ", b", op_id = ", b", sizes = ", b", input_op_ids = "
# All marks end with an equals sign and a space, and have at least a word's bytes.
_EQUALS, _FROM_EQUALS, _WORD = ord("="), 2, 8
# More do not fit into 64 bits.
_MOST_DIGITS = 18
_BEYOND = np.iinfo(np.int64).max // 2


def describe_ranges(texts: pa.Array) -> dict[str, pa.Array]:
    """Name and category of ranges, and the shapes and sequence number that operators have, given texts without a null.

    Arguments leave the names of operators, so that they group. A text of another form is a name.
    """
    marks = _Marks(texts)
    start, end = marks.starts, marks.ends
    head_end, number_start = marks.first(_NUMBER, start)
    if (head_end == end).all():
        category = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(texts), np.int32)), pa.array(["nvtx"]))
        return {"name": texts.dictionary_encode(), "category": category}
    sizes, shapes_start = marks.first(_SIZES, number_start)
    shapes_end, _ = marks.first(_INPUTS, shapes_start)
    number_end = np.minimum(sizes, marks.first(_INPUTS, number_start)[0])
    formed = _is_decimal(marks.between(number_start, number_end)) & (head_end > start)
    sequenced_end, sequence_start = marks.last(_SEQUENCE, head_end)
    sequence = marks.between(sequence_start, head_end)
    numbered = formed & _is_decimal(sequence) & (head_end - sequence_start <= _MOST_DIGITS)
    name_end = np.where(numbered, sequenced_end, np.where(formed, head_end, end))
    name = marks.between(start, name_end).dictionary_encode()
    is_scoped = np.asarray(pc.match_substring(name.dictionary, "::"))[name.indices.to_numpy()]
    return {
        "name": name,
        "category": pc.if_else(pa.array(formed & is_scoped), "operator", "nvtx").dictionary_encode(),
        "shapes": marks.between(shapes_start, shapes_end, absent=~formed | (sizes == end)),
        "sequence": pc.if_else(pa.array(numbered), sequence, None).cast(pa.int64()),
    }


def _is_decimal(texts: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.ascii_is_decimal(texts))


class _Marks:
    """Where marks stand in the texts of a batch. Places, and the `starts` and `ends` of the texts, are counted in the bytes of all."""

    def __init__(self, texts: pa.Array) -> None:
        _, offsets, data = texts.buffers()
        bounds: Ints = np.zeros(1, np.int64)
        if len(texts):
            bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
        self.starts, self.ends = bounds[:-1], bounds[1:]
        self._data = data or pa.py_buffer(b"")
        self._bytes = np.frombuffer(self._data, np.uint8)[: bounds[-1]]
        equals = np.flatnonzero(self._bytes[bounds[0] :] == _EQUALS) + (bounds[0] + _FROM_EQUALS - _WORD)
        self._places = equals[(equals >= 0) & (equals + _WORD <= len(self._bytes))]
        self._words = self._words_at(self._places)
        self._found: dict[bytes, Ints] = {}

    def first(self, mark: bytes, after: Ints) -> tuple[Ints, Ints]:
        """Start and end of the first such mark of each text from a place on; the end of the text, twice, where there is none."""
        place = self._of(mark)
        start = np.append(place, _BEYOND)[np.searchsorted(place, after)]
        found = start + len(mark) <= self.ends
        return np.where(found, start, self.ends), np.where(found, start + len(mark), self.ends)

    def last(self, mark: bytes, before: Ints) -> tuple[Ints, Ints]:
        """Start and end of the last such mark of each text that ends before a place; the place, twice, where there is none."""
        place = self._of(mark)
        start = np.append(-1, place)[np.searchsorted(place, before - len(mark), side="right")]
        found = start >= self.starts
        return np.where(found, start, before), np.where(found, start + len(mark), before)

    def between(self, starts: Ints, ends: Ints, absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """What lies between two places of each text; null where it is `absent`."""
        # One array of what lies between and what does not, in turn, over the same bytes.
        bounds = np.stack((starts, ends), axis=1).astype(np.int32).ravel()
        turns = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), self._data)
        return turns.take(pa.array(np.arange(0, len(bounds), 2), mask=absent))

    def _of(self, mark: bytes) -> Ints:
        """Where such marks start; one may lie across the border of two texts."""
        if mark not in self._found:
            place = self._places[self._words == int.from_bytes(mark[-_WORD:], "little")] + _WORD - len(mark)
            place = place[place >= 0]
            for at in range(0, len(mark) - _WORD, _WORD):
                place = place[self._words_at(place + at) == int.from_bytes(mark[at : at + _WORD], "little")]
            self._found[mark] = place
        return self._found[mark]

    def _words_at(self, places: Ints) -> npt.NDArray[np.uint64]:
        """The eight bytes from each place on, as a number."""
        words = np.ndarray(max(len(self._bytes) - _WORD + 1, 0), "<u8", self._bytes, strides=(1,))
        return words[places]
