"""Pickles of plain data, read without trust: numbers, strings, lists and dictionaries come out of them, or one line of an error.

Why this is safe. Every byte goes through a check before C's unpickler sees it, and the check follows the opcodes from the first one on,
so that no string can hide one. It lets through these alone: whole numbers of at most 64 bits, floats, strings whose bytes are
there, None, true, false, lists, dictionaries, pairs of short numbers, marks, and the memo; and, for the kinds that say they need them
(`pairs`), pairs of strings. Hence

- no class, function, persistent id, extension, call or state can be named (GLOBAL, STACK_GLOBAL, INST, OBJ, NEWOBJ, REDUCE, BUILD, EXT,
  PERSID, buffers), and the unpickler would refuse them once more;
- nothing is larger than the bytes it takes by more than a constant: lengths are checked against what is there, places in the memo
  against what was read (C's unpickler makes room for any place that it is told), and empty containers may be only so dense;
- nothing is worked on for longer than its bytes: no hash follows nested or shared tuples, since there are none; and no many keys can be
  made to collide, since numbers have no more than 64 bits, those of a pair 32, and the hashes of strings are not known beforehand;
- a pair of strings is let through only where both strings stand right before it, or come out of places of the memo that are known to
  hold strings, since each place is written once, in order (`_Pairs`): so no pair holds a pair, and its hash is that of two strings;
- C's unpickler keeps its own stack, so depth costs heap, not stack. What comes out may be as deep, shared or circular as the file
  likes: whoever walks over it must do so by level and count what it visits (`Budget`).
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Sized
from typing import Any, NoReturn

from traceanalyzer.errors import InputError
from traceanalyzer.garbage import without_collection
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.bytes.streams import ByteStream

BLOCK_BYTES = 1 << 20
_PROTOCOLS = range(2, 6)
_MOST_FRAME = 16 << 20
"""Python writes frames of 64 KiB, and what is larger outside of them."""
_DENSE_FROM = 64 << 10
_MOST_DENSE = 8
"""In blocks of at least the former, at most one byte in so many may begin a container: each takes 60 bytes of memory."""

# Whole numbers as pickled: of 1, 2 and 4 bytes, and of up to 64 bits in the long form, its usual lengths first; a ninth byte is for
# the sign.
_SHORT = rb"K.|M..|J...."
_LONG = rb"|".join(rb"\x8a\x%02x.{%d}" % (n, n) for n in (7, 6, 8, 5, 4, 3, 2, 1, 0)) + rb"|\x8a\x09.{8}\x00"
# Opcodes of a fixed length, as runs. A tuple is only ever two short numbers.
_RUN = re.compile(
    rb"(?:[\x94(u}\]easN\x88\x89]++|[hq].|j....|r..[\x00-\x0f]\x00|(?:%b)(?:(?:%b)\x86)?+|%b|G.{8})*+"
    % (_SHORT, _SHORT, _LONG),
    re.DOTALL,
)
_HEADER = 2
_TEXT = 0x58
# The same where pairs of strings may come: a run ends before one, and before what may yet turn out to be one when more bytes are there.
_GET = rb"(?:h.|j....)"
_PLAIN = rb"[\x94(u}\]easN\x88\x89]|q.|r..[\x00-\x0f]\x00|(?:%b)(?:(?:%b)\x86)?+|%b|G.{8}" % (_SHORT, _SHORT, _LONG)
_NO_PAIR = rb"(?!%b%b\x86)" % (_GET, _GET)
_RUN_OF_PAIRS = re.compile(rb"(?:%b|(?=.{11})%b(%b))*+" % (_PLAIN, _NO_PAIR, _GET), re.DOTALL)
_LAST_RUN_OF_PAIRS = re.compile(rb"(?:%b|%b(%b))*+" % (_PLAIN, _NO_PAIR, _GET), re.DOTALL)
_PUTS = re.compile(
    rb"(?:[(u}\]easN\x88\x89]|%b|(?:%b)(?:(?:%b)\x86)?+|%b|G.{8})*+(?:(\x94)|q(.)|r(....)|\Z)"
    % (_GET, _SHORT, _SHORT, _LONG),
    re.DOTALL,
)
_PAIR_OF_PLACES = re.compile(rb"(?:h(.)|j(....))(?:h(.)|j(....))\x86", re.DOTALL)
_PLACE = re.compile(rb"(?:h(.)|j(....))", re.DOTALL)
_GETS = b"hj"
_END_OF_PAIR = re.compile(rb"%b\x86" % _GET, re.DOTALL)
_MOST_HELD = 1 << 16
"""A string up to this length is checked when all of it is there."""
_FIXED = {b"h": 2, b"q": 2, b"j": 5, b"r": 5, b"K": 2, b"M": 3, b"J": 5, b"G": 9, b"\x80": 2, b"\x95": 9}
_CUT = "the pickle is cut short; copy or dump it again"


def is_pickle(head: bytes) -> bool:
    """Whether a file that begins so may be a pickle of a protocol that is read here (2 to 5)."""
    return len(head) >= _HEADER and head[0] == 0x80 and head[1] in _PROTOCOLS


def unpickled(source: Source, progress: Callable[[int], None] | None = None, pairs: bool = False) -> tuple[Any, int]:
    """What a pickle of plain data, with `pairs` of strings too, holds, and its bytes.

    Raises InputError for anything else, and for a damaged one.
    """
    with source.open(progress) as stream, without_collection():
        checked = _Pairs(stream) if pairs else _Checked(stream)
        try:
            return _Unpickler(checked).load(), checked.size
        except (InputError, KeyboardInterrupt):
            raise
        except _RefusedError as error:
            raise InputError(f"{source.path}: {stream.damage or error}") from error
        except MemoryError as error:
            raise InputError(f"{source.path}: there is not enough memory to read this pickle") from error
        except EOFError as error:
            raise InputError(f"{source.path}: {stream.damage or _CUT}") from error
        except Exception as error:
            # The unpickler raises whatever a wrong order of opcodes leads to.
            raise InputError(f"{source.path}: the pickle is damaged; copy or dump it again") from error


class Budget:
    """How many things may be visited in what came out of a file: as many as it has bytes, unless the same ones come again and again."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, things: Sized) -> None:
        """Count these. Raises OverflowError when they are more than the file can hold."""
        self._left -= len(things) + 1
        if self._left < 0:
            raise OverflowError("the same parts of the file are used again and again")


class _RefusedError(Exception):
    """What the check does not let through."""


class _Unpickler(pickle.Unpickler):
    """The second line: what the check lets through needs neither of these."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise _RefusedError("the pickle names classes or functions, which are never loaded")

    def persistent_load(self, pid: object, /) -> NoReturn:
        raise _RefusedError("the pickle refers to objects outside of it, which are never loaded")


class _Checked(io.RawIOBase):
    """A file for the unpickler that gives checked bytes only."""

    _held = 0
    """A string longer than this is let through before all of it is there."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._ready = b""
        self._at = 0
        self._rest = b""
        self._text_left = 0
        self.size = 0
        self._began = self._ended = False

    def peek(self, size: int = 1, /) -> bytes:
        if self._at == len(self._ready):
            self._fill()
        return self._ready[self._at : self._at + size]

    def read(self, size: int = -1, /) -> bytes:
        parts, left = [], size
        while left > 0:
            if self._at == len(self._ready):
                self._fill()
            part = self._ready[self._at : self._at + left]
            if not part:
                break
            self._at += len(part)
            left -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readline(self, size: int | None = -1, /) -> bytes:
        raise _RefusedError("the pickle has opcodes of the text protocol, which plain data of today does not")

    def _fill(self) -> None:
        """Check the next block; nothing is ready afterwards when the pickle is at its end."""
        self._ready, self._at = b"", 0
        while not self._ready and not self._ended:
            block = self._stream.read(BLOCK_BYTES)
            if not block:
                self._finish()
            data = self._rest + block
            if len(block) >= _DENSE_FROM and _MOST_DENSE * (block.count(b"]") + block.count(b"}")) > len(block):
                raise _RefusedError("the pickle holds little but empty lists and dictionaries")
            end = self._check(data)
            self._ready, self._rest = (data, b"") if end == len(data) else (data[:end], data[end:])
            self.size += end

    def _finish(self) -> None:
        """The stream is at its end, and the pickle is not. Raises EOFError."""
        raise EOFError

    def _run(self, data: bytes, at: int) -> int:
        """Where the opcodes of fixed length end that begin at `at` and may pass."""
        found = _RUN.match(data, at)
        return found.end() if found else at

    def _check(self, data: bytes) -> int:
        """How many of these bytes are whole opcodes, or text, that may pass. Raises _RefusedError for the first that may not."""
        at, size = 0, len(data)
        if not self._began:
            if size < _HEADER:
                return 0
            if not is_pickle(data[:_HEADER]):
                raise _RefusedError("this is no pickle of protocol 2 to 5")
            self._began, at = True, _HEADER
        if self._text_left:
            at = min(size, self._text_left)
            self._text_left -= at
        while at < size and not self._ended:
            at = self._run(data, at)
            end = self._after(data, at) if at < size else size
            if end > size:
                if data[at] == _TEXT and size >= at + 5 and end - at > self._held:
                    self._text_left = end - size
                    return size
                return at
            at = end
        return at

    def _after(self, data: bytes, at: int) -> int:
        """Where the opcode at `at`, which is in no run, ends; beyond the data where some of it is missing."""
        code, rest = data[at], data[at + 1 : at + 9]
        match code:
            case 0x8C:  # SHORT_BINUNICODE
                return at + 2 + (rest[0] if rest else 0)
            case 0x58:  # BINUNICODE (_TEXT)
                return at + 5 + (int.from_bytes(rest[:4], "little") if len(rest) >= 4 else 0)
            case 0x95:  # FRAME
                if int.from_bytes(rest, "little") > _MOST_FRAME:
                    raise _RefusedError("the pickle has a frame that is larger than Python writes them")
                return at + 9
            case 0x72 if len(rest) >= 4:  # LONG_BINPUT
                if int.from_bytes(rest[:4], "little") > self.size + at:
                    raise _RefusedError("the pickle numbers more things than it has bytes")
                return at + 5
            case 0x2E:  # STOP
                self._ended = True
                return at + 1
        end = at + _needed(code, rest[:1])
        if end <= len(data):
            raise _RefusedError(f"the pickle has an opcode (0x{code:02x}) that plain data does not need")
        return end


class _Pairs(_Checked):
    """Lets pairs of strings through as well.

    Places of the memo are written once and in order, and which of them hold strings is known.
    """

    _held = _MOST_HELD

    def __init__(self, stream: ByteStream) -> None:
        super().__init__(stream)
        self._places = 0
        self._texts: set[int] = set()
        self._before = 0
        """How many strings end right where the check goes on."""
        self._last = False

    def _finish(self) -> None:
        if self._last or not self._rest:
            raise EOFError
        self._last = True

    def _run(self, data: bytes, at: int) -> int:
        # What comes out of the memo after a string may be the other half of a pair.
        if self._before and data[at] in _GETS and (len(data) < at + 6 or _END_OF_PAIR.match(data, at)):
            return at
        found = (_LAST_RUN_OF_PAIRS if self._last else _RUN_OF_PAIRS).match(data, at)
        end = found.end() if found else at
        if found is None or end == at:
            return at
        for memo, short, long in _PUTS.findall(data, at, end):
            if not (memo or short or long):
                break
            if not memo and int.from_bytes(short or long, "little") != self._places:
                raise _RefusedError("the pickle numbers things out of their order")
            self._places += 1
        self._before = int(found.end(1) == end and int.from_bytes(found[1][1:], "little") in self._texts)
        return end

    def _after(self, data: bytes, at: int) -> int:
        code = data[at]
        if code in _GETS:
            return self._got(data, at)
        if code == 0x86 and self._before >= 2:
            self._before = 0
            return at + 1
        end = super()._after(data, at)
        if code not in (0x8C, _TEXT):
            self._before = 0
            return end
        return self._put(data, at, end)

    def _put(self, data: bytes, at: int, end: int) -> int:
        """Where a string and what numbers it end; its place in the memo holds a string from then on."""
        if end - at > _MOST_HELD:
            self._before = 0
            return end
        if end + 5 > len(data) and not self._last:
            return len(data) + 1
        number = self._places
        match data[end : end + 1]:
            case b"\x94":
                end += 1
            case b"q":
                number, end = int.from_bytes(data[end + 1 : end + 2], "little"), end + 2
            case b"r":
                number, end = int.from_bytes(data[end + 1 : end + 5], "little"), end + 5
            case _:
                self._before += 1
                return end
        if number != self._places:
            raise _RefusedError("the pickle numbers things out of their order")
        self._texts.add(number)
        self._places += 1
        self._before += 1
        return end

    def _got(self, data: bytes, at: int) -> int:
        """Where what comes out of the memo here, and the pair that it is a part of, end."""
        if found := _PAIR_OF_PLACES.match(data, at):
            for place in filter(None, found.groups()):
                self._text_at(place)
            self._before = 0
            return found.end()
        if len(data) < at + 11 and not self._last:
            return len(data) + 1
        found = _PLACE.match(data, at)
        if found is None:
            return len(data) + 1
        known = int.from_bytes(found[1] or found[2], "little") in self._texts
        self._before = self._before + 1 if known else 0
        return found.end()

    def _text_at(self, place: bytes) -> None:
        if int.from_bytes(place, "little") not in self._texts:
            raise _RefusedError("the pickle has a pair of other things than strings, which plain data does not need")


def _needed(code: int, after: bytes) -> int:
    """Bytes of an opcode of fixed length that was not matched because the block ended within it; 1 for one that may not pass."""
    if code == 0x8A:  # LONG1
        return 2 + (after[0] if after else 0) if not after or after[0] <= 9 else 1
    return _FIXED.get(bytes((code,)), 1)
