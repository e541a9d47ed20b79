"""Protocol buffers as far as pprof needs them: fields of messages, as the encoding's public description has them."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIRES = {1: (2,), 2: (2,), 3: (2,), 4: (2,), 5: (2,), 6: (2,), 7: (0,), 8: (0,), 9: (0,), 10: (0,), 11: (2,), 12: (0,),
          13: (0, 2), 14: (0,), 15: (0,)}  # fmt: skip
"""How the fields of pprof's Profile are written (profile.proto)."""


class BadMessage(ValueError):
    """Bytes that are no message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises BadMessage, or IndexError where the bytes end."""
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
            raise BadMessage("a number that is too long")


def fields(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Each field: its number, its value or where its bytes begin, where they end, and its wire type. Raises BadMessage."""
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
                    raise BadMessage("the end of the file is missing")
                yield number, at, at + length, wire
                at += length
            elif wire in (FIXED64, FIXED32):
                at += 8 if wire == FIXED64 else 4
                yield number, at, at, wire
            else:
                raise BadMessage("a field of a kind that does not exist")
    except IndexError as error:
        raise BadMessage("the end of the file is missing") from error


def packed(data: bytes, at: int, end: int) -> list[int]:
    """The numbers of a packed field. Raises BadMessage."""
    found = []
    try:
        while at < end:
            value, at = varint(data, at)
            found.append(value)
    except IndexError as error:
        raise BadMessage("the end of the file is missing") from error
    return found


def signed(value: int) -> int:
    """A number of 64 bits with its sign."""
    return value - (1 << 64) if value >= 1 << 63 else value


def is_pprof(head: bytes, whole: bool) -> bool:
    """Whether the bytes begin as a pprof profile does: sample types first, each two numbers, then fields as its description has them."""
    seen = 0
    types = 0
    try:
        for number, at, end, wire in fields(head):
            if wire not in _WIRES.get(number, ()):
                return False
            if number == 1:
                inner = [(one, kind) for one, _, _, kind in fields(head, at, end)]
                if not inner or any(one not in (1, 2) or kind != VARINT for one, kind in inner):
                    return False
                types += 1
            elif not types:
                return False
            elif number == 2 and any(one not in (1, 2, 3) for one, _, _, _ in fields(head, at, end)):
                return False
            seen += 1
    except BadMessage:
        # The head of a longer file ends anywhere.
        if whole and seen < 4:
            return False
    return types > 0 and seen > types
