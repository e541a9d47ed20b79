"""Cut a Chrome trace into chunks of whole events, without holding the file.

A chunk ends at a `},{` seam. A seam may lie inside an event, so a cut counts only when what it gives decodes. What does not decode is
taken event by event: the next event is valid JSON, or it is mended, or it is dropped and the next place where an event can begin is
sought. Each of these looks at bytes from the event on and never at where a block of the file ended, so that chunks of any size give
the same events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from traceanalyzer.ingest.formats.kineto.text.opening import EVENTS_KEY, KEY_BYTES, TRAILING, Opening
from traceanalyzer.ingest.formats.kineto.text.repair import (
    EVENT_START,
    LOOKAHEAD,
    PHASE_FIRST,
    Broken,
    Mended,
    Repair,
    mend,
)
from traceanalyzer.ingest.formats.kineto.text.utf8 import Bytes, Utf8Stream

CHUNK_BYTES = 2 << 20
MAX_METADATA_BYTES = 64 << 20
MAX_EVENT_BYTES = 16 << 20
# A broken event that is longer than this is dropped, since mending is slow.
MAX_MENDED_BYTES = 1 << 20
EXAMPLE_BYTES = 200
SEAM_WINDOWS = (8 << 10, 64 << 10)
"""How many of the last bytes are searched for seams: more where the fewer hold too few."""
# Which of the last seams are tried: an event may hold a few.
SEAMS_TRIED = (1, 2, 4, 8)
SEAM = re.compile(rb"\}\s*,\s*\{")
TRUNCATED = "Input data was truncated"

_W = rb"[ \t\r\n]{0,40}"
_BRACE, _BRACKET = b"{]"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_INDENTED = re.compile(r"\r?\n\s+")
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
# A bracket that ends the array, and not a stray one between two events.
_ARRAY_END = re.compile(rb"\](?!%b,?%b\{)" % (_W, _W))
# One that surely does: the last of the file, or one that a key of the profiler's metadata follows.
_CERTAIN_END = re.compile(
    rb"\](?=%b(?:\}%b)?\Z|%b,%b\"(?:schemaVersion|deviceProperties|distributedInfo|displayTimeUnit|baseTimeNanoseconds|traceName|"
    rb"otherData|metadata|stackFrames|trace_id|with_\w{1,20}|record_shapes|profile_memory|cu\w{1,30}_version|"
    rb"\w{1,30}tracer_version)\")" % (_W, _W, _W, _W)
)
# Where reading goes on behind a broken event.
_NEXT = re.compile(rb"%b|(?<=\})%b,?%b(?P<end>%b)" % (EVENT_START.pattern, _W, _W, _CERTAIN_END.pattern))

Chunk = TypeVar("Chunk")


class _Phase(msgspec.Struct):
    ph: str = ""


_whole = msgspec.json.Decoder(msgspec.Raw)
_phase = msgspec.json.Decoder(_Phase)


class Splitter(Generic[Chunk]):
    """Iterate over decoded chunks; afterwards `header` and `trailer` hold the text around the event array.

    `decode` turns the text of a JSON array into a chunk and raises msgspec.DecodeError when it cannot. Afterwards:

    - `repairs`: for each kind of repair, in how many events, and the first of them; `commas`: places between events where a comma
      was missing or too many; each with an example.
    - `dropped`: stretches between events that could not be read; `first_dropped` shows the first.
    - `mixed`: a second trace begins inside a dropped stretch.
    - `truncated`: the array never ended; `cut`: its last event did not either.
    - `bad_bytes`: bytes that are no UTF-8. `layout`: see `Opening`.

    Raises NoEventsError when there is no event array.
    """

    def __init__(self, stream: Bytes, decode: Callable[[bytes], Chunk], chunk_bytes: int = 0) -> None:
        self._stream, self._decode, self._chunk_bytes = Utf8Stream(stream), decode, chunk_bytes or CHUNK_BYTES
        self.header = self.trailer = b""
        self.layout = ""
        self.repairs: dict[Repair, tuple[int, str]] = {}
        self.commas = self.dropped = 0
        self.first_comma: str | None = None
        self.first_dropped: str | None = None
        self.mixed = self.truncated = self.cut = False
        self._ended = False
        # Commas since the last event, and how many there should be before the next.
        self._commas = self._commas_due = 0
        # What is being dropped: its first bytes, None when nothing is; how far into the rest the next event is sought from.
        self._lost: bytes | None = None
        self._seek = 0
        # Whether the next event, and whether the last one, was found behind a broken one: it may lie inside that.
        self._found = self._doubtful = False

    @property
    def bad_bytes(self) -> int:
        return self._stream.bad_bytes

    def __iter__(self) -> Iterator[Chunk]:
        rest, block = b"", self._opening()
        wanted = 0
        final = False
        while True:
            quick = self._quickly(rest, block)
            if quick:
                chunk, rest = quick
                yield chunk
                # Freed before the next is made: less memory, and it stays in the cache.
                del quick, chunk
            else:
                rest += block
                if final or len(rest) >= wanted:
                    texts, rest = self._event_by_event(rest, final)
                    # An event that is not whole yet is looked at again only once there is much more of it.
                    wanted = min(2 * len(rest), MAX_EVENT_BYTES)
                    yield from self._decoded(texts)
            if self._ended or final:
                break
            block = self._stream.read(self._chunk_bytes)
            final = not block
        if self._ended:
            self.trailer = rest + self._read(MAX_METADATA_BYTES)
        self.truncated = not self._ended and self.layout != "lines"

    def _decoded(self, texts: list[bytes]) -> list[Chunk]:
        if not texts:
            return []
        try:
            return [self._decode(b"[" + b",".join(texts) + b"]")]
        except msgspec.DecodeError:
            if len(texts) > 1:
                return [chunk for text in texts for chunk in self._decoded([text])]
            # Nested just as deeply as can be read alone, but not in a list.
            self._drop(texts[0])
            return []

    def _opening(self) -> bytes:
        """Read up to the event array; return what was read of it."""
        opening = Opening()
        text = b""
        while True:
            block = self._stream.read(self._chunk_bytes)
            text += block
            if opening.find(text, last=not block or len(text) > MAX_METADATA_BYTES):
                self.header, self.layout = opening.header, opening.layout
                return text[opening.start :]

    def _read(self, size: int) -> bytes:
        parts = []
        while size > 0 and (block := self._stream.read(self._chunk_bytes)):
            parts.append(block)
            size -= len(block)
        return b"".join(parts)

    def _quickly(self, rest: bytes, block: bytes) -> tuple[Chunk, bytes] | None:
        """Decode what ends at one of the last seams of `block`: (chunk, rest). None when it is not that simple."""
        if self._lost is not None or self._commas != self._commas_due or len(rest) > self._chunk_bytes:
            return None
        for window in SEAM_WINDOWS:
            seams = list(SEAM.finditer(block, max(0, len(block) - window)))
            if len(seams) >= SEAMS_TRIED[-1]:
                break
        for back in SEAMS_TRIED:
            if back > len(seams):
                return None
            seam = seams[-back]
            try:
                chunk = self._decode(b"".join((b"[", rest, memoryview(block)[: seam.start() + 1], b"]")))
            except msgspec.DecodeError as error:
                if str(error) != TRUNCATED:
                    return None
            else:
                self._commas = self._commas_due = 0
                self._found = self._doubtful = False
                return chunk, block[seam.end() - 1 :]
        return None

    def _event_by_event(self, text: bytes, final: bool) -> tuple[list[bytes], bytes]:
        """Take the events of `text` one at a time: (their JSON, rest). What more text may complete stays in the rest."""
        texts: list[bytes] = []
        at = 0
        while not self._ended:
            if self._lost is not None:
                at = self._recover(text, at, final)
                if self._lost is not None:
                    break
            at = self._between(text, at)
            if at == len(text):
                break
            if text[at] == _BRACE:
                outcome = _read_event(text, at, final)
                if outcome is None:
                    break
                if isinstance(outcome, Mended):
                    texts.append(outcome.text)
                    self._check_commas(self._commas_due, outcome.text)
                    self._note_repairs(text, at, outcome)
                    self._commas, self._commas_due = 0, 1
                    self._found, self._doubtful = False, self._found
                    at = outcome.end
                else:
                    self._lose(at, outcome)
            elif text[at] == _BRACKET and at + LOOKAHEAD > len(text) and not final:
                break
            elif (_CERTAIN_END if self._found or self._doubtful else _ARRAY_END).match(text, at):
                self._check_commas(0, b"]")
                self._ended = True
                at += 1
            else:
                self._lose(at, Broken(at + 1))
        return texts, text[at:]

    def _between(self, text: bytes, at: int) -> int:
        """Skip white space and commas."""
        found = _BETWEEN.match(text, at)
        assert found is not None
        self._commas += text.count(b",", at, found.end())
        return found.end()

    def _check_commas(self, due: int, following: bytes) -> None:
        if self._commas != due and self.layout != "lines":
            self.commas += 1
            if self.first_comma is None:
                self.first_comma = _shown(following[: EXAMPLE_BYTES // 2])

    def _note_repairs(self, text: bytes, start: int, mended: Mended) -> None:
        for repair, at in mended.repairs.items():
            count, example = self.repairs.get(repair, (0, ""))
            around = text[max(start, at - EXAMPLE_BYTES // 2) : min(mended.end, at + EXAMPLE_BYTES // 2)]
            self.repairs[repair] = count + 1, example or _shown(around)

    def _lose(self, at: int, broken: Broken) -> None:
        """From `at` on, text is dropped until the next event is found."""
        self._lost = b""
        self._seek = broken.resume - at
        self.cut = broken.cut

    def _recover(self, text: bytes, start: int, final: bool) -> int:
        """Drop text from `start` up to the next event or the end of the array, or as much as holds neither; return where it stops."""
        at, seek = self._next_start(text, start + self._seek, final)
        if at is None and not final:
            # One byte is kept for what must stand before an event.
            self._discard(text, start, seek - 1)
            self._seek = 1
            return seek - 1
        if at is None:
            at = len(text)
        self._discard(text, start, at)
        # A cut event that nothing follows is the end of the file, and not something inside it.
        if not (self.cut and at == len(text)):
            self._drop(self._lost or b"")
            self.cut = False
        self._lost = None
        self._commas = self._commas_due = 0
        self._found = True
        return at

    def _drop(self, text: bytes) -> None:
        self.dropped += 1
        if self.first_dropped is None:
            self.first_dropped = _shown(text[:EXAMPLE_BYTES].rstrip(b" \t\r\n,"))

    def _next_start(self, text: bytes, seek: int, final: bool) -> tuple[int | None, int]:
        """Where the next event or the bracket that ends the array is, None when it is not there yet; from where to seek it then."""
        while found := _NEXT.search(text, seek):
            seek = found.start()
            if found.end() + LOOKAHEAD > len(text) and not final:
                return None, seek
            if found["end"]:
                return found.start("end"), seek
            at = text.index(b"{", seek)
            if PHASE_FIRST.match(text, at):
                return at, seek
            # It may be an object inside the broken event.
            match _read_event(text, at, final):
                case None:
                    return None, seek
                case Mended(text=event, end=end):
                    if _has_phase(event):
                        return at, seek
                    seek = end
                case Broken(resume=resume):
                    seek = resume
        return None, max(seek, len(text) - LOOKAHEAD)

    def _discard(self, text: bytes, start: int, stop: int) -> None:
        """text[start:stop] is part of what is being dropped."""
        kept = self._lost or b""
        self._lost = kept + text[start : min(stop, start + EXAMPLE_BYTES - len(kept))]
        found = EVENTS_KEY.search(text, start, stop + KEY_BYTES)
        self.mixed |= found is not None and found.start() < stop


def _read_event(text: bytes, at: int, final: bool) -> Mended | Broken | None:
    """The object at `at`: as it stands if it is valid, else what `mend` makes of it."""
    stop = min(len(text), at + MAX_EVENT_BYTES)
    try:
        _whole.decode(memoryview(text)[at:stop])
        return Mended(text[at:stop], stop, {})
    except msgspec.DecodeError as error:
        if found := TRAILING.search(str(error)):
            end = at + int(found[1]) - 1
            return Mended(text[at:end], end, {})
        if str(error) == TRUNCATED and not final and len(text) < at + MAX_EVENT_BYTES:
            return None
    except RecursionError:
        pass
    stop = min(len(text), at + MAX_MENDED_BYTES)
    return mend(text, at, stop, more=not final and len(text) < at + MAX_MENDED_BYTES)


def _has_phase(event: bytes) -> bool:
    try:
        return bool(_phase.decode(event).ph)
    except msgspec.ValidationError:
        return False


def _shown(text: bytes) -> str:
    """Text for an example, without indented lines and what would upset a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _INDENTED.sub(" ", text.decode("utf-8", "replace")))
