"""Protocol buffers as far as pprof needs them: fields of messages, as the encoding's public description has them."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIRES = {1: (2,), 2: (2,), 3: (2,), 4: (2,), 5: (2,), 6: (2,), 7: (0,), 8: (0,), 9: (0,), 10: (0,), 11: (2,), 12: (0,),
          13: (0, 2), 14: (0,), 15: (0,)}  # fmt: skip
"""How the fields of pprof's Profile are written (profile.proto)."""

_INNER: dict[int, dict[int, tuple[int, ...]]] = {
    1: {1: (0,), 2: (0,)},
    2: {1: (0, 2), 2: (0, 2), 3: (2,)},
    4: {1: (0,), 2: (0,), 3: (0,), 4: (2,), 5: (0,)},
    5: {1: (0,), 2: (0,), 3: (0,), 4: (0,), 5: (0,)},
}
"""The same of ValueType, Sample, Location and Function."""


class BadMessageError(ValueError):
    """Bytes that are no message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises BadMessageError, or IndexError where the bytes end."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + 1
        shift += 7
        if shift > 63:
            raise BadMessageError("a number that is too long")


def fields(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Each field: its number, its value or where its bytes begin, where they end, and its wire type. Raises BadMessageError."""
    end = len(data) if end is None else end
    try:
        while at < end:
            key, at = varint(data, at)
            number, wire = key >> 3, key & 7
            if wire == VARINT:
                value, at = varint(data, at)
                yield number, value, at, wire
            elif wire == BYTES:
                length, at = varint(data, at)
                if at + length > end:
                    raise BadMessageError("the end of the file is missing")
                yield number, at, at + length, wire
                at += length
            elif wire in (FIXED64, FIXED32):
                at += 8 if wire == FIXED64 else 4
                yield number, at, at, wire
            else:
                raise BadMessageError("a field of a kind that does not exist")
    except IndexError as error:
        raise BadMessageError("the end of the file is missing") from error


def packed(data: bytes, at: int, end: int) -> list[int]:
    """The numbers of a packed field. Raises BadMessageError."""
    found = []
    try:
        while at < end:
            value, at = varint(data, at)
            found.append(value)
    except IndexError as error:
        raise BadMessageError("the end of the file is missing") from error
    return found


def signed(value: int) -> int:
    """A number of 64 bits with its sign."""
    return value - (1 << 64) if value >= 1 << 63 else value


def is_pprof(head: bytes, whole: bool) -> bool:
    """Whether the bytes begin as a pprof profile does: fields as its description has them, types of samples and stacks among them.

    Writers differ in the order of fields. Of a file that is longer than the head the last field may be cut.
    """
    seen: set[int] = set()
    try:
        for number, at, end, wire in fields(head):
            if wire not in _WIRES.get(number, ()) or (number in _INNER and not _fits(head, at, end, _INNER[number])):
                return False
            seen.add(number)
    except BadMessageError:
        # The head of a longer file ends anywhere.
        if whole and not {1, 2, 6} <= seen:
            return False
    return 1 in seen and bool(seen & {2, 4, 5})


def _fits(data: bytes, at: int, end: int, allowed: dict[int, tuple[int, ...]]) -> bool:
    """Whether a message has only such fields, and any. Raises BadMessageError."""
    found = [wire in allowed.get(number, ()) for number, _, _, wire in fields(data, at, end)]
    return bool(found) and all(found)
