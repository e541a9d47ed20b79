"""Where the event array of a Chrome trace begins."""

from __future__ import annotations

import re

import msgspec

UTF8_BOM = b"\xef\xbb\xbf"
# The first bytes of a list at top level that must show an event.
LIST_BYTES = 64 << 10

_W = rb"[ \t\r\n]{0,40}"


def json_key(name: str) -> bytes:
    """A pattern for a key, any letter of which may be written as an escape."""
    return b'"%b"' % b"".join(rb"(?:%c|\\u00(?i:%02x))" % (ord(letter), ord(letter)) for letter in name)


EVENTS_KEY = re.compile(rb"%b%b:%b\[" % (json_key("traceEvents"), _W, _W))
_EVENT = re.compile(rb'\{%b"ph"%b:%b"\w"' % (_W, _W, _W))
_PHASE = re.compile(rb"%b%b:" % (json_key("ph"), _W))
_EMPTY_LIST = re.compile(rb"\[\s*(?:\{\s*\}\s*,?\s*)*(?:\]|\Z)")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
KEY_BYTES = 128
# What msgspec says of text behind a value.
TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")

_object = msgspec.json.Decoder(msgspec.Raw)


class NoEventsError(ValueError):
    """The content holds no event array."""


class Opening:
    """Finds the start of the events in text that grows.

    Once `find` gives True, `header` is the text before the array's key, `start` is where the first event may stand, and
    `layout` is "object", "list", "lines" (events without brackets or commas, one a line) or "keyless" (the key of the array
    is damaged; the events were known by their form).
    """

    def __init__(self) -> None:
        self.header = b""
        self.layout = ""
        self.start = 0
        self._searched = self._lines_tried = 0
        # How many objects and lists are open at a place in the text.
        self._depth = self._depth_at = 0

    def find(self, text: bytes, last: bool) -> bool:
        """Look at all text so far; `last`: there will be no more. Raises NoEventsError when it holds no events then."""
        begin = len(text) - len(text.removeprefix(UTF8_BOM).lstrip())
        if text[begin : begin + 1] == b"[":
            return self._list(text, begin, last)
        if self._keyed(text, begin):
            return True
        if (last or len(text) >= 2 * self._lines_tried) and self._lines(text, begin):
            return True
        if last and (found := _EVENT.search(text)):
            return self._found("keyless", text[begin : found.start()], found.start())
        if last:
            raise NoEventsError("no traceEvents array")
        return False

    def _found(self, layout: str, header: bytes, start: int) -> bool:
        self.layout, self.header, self.start = layout, header, start
        return True

    def _list(self, text: bytes, begin: int, last: bool) -> bool:
        if len(text) < LIST_BYTES and not last:
            return False
        if not _PHASE.search(text, begin, LIST_BYTES) and not _EMPTY_LIST.match(text, begin, LIST_BYTES):
            raise NoEventsError("a list of something else")
        return self._found("list", b"", begin + 1)

    def _keyed(self, text: bytes, begin: int) -> bool:
        """The key at the top level of the object. One that seems to stand within a text is taken too: the metadata is damaged."""
        self._depth_at = max(self._depth_at, begin)
        for found in EVENTS_KEY.finditer(text, self._searched):
            if self._depth_before(found.start(), text) <= 1:
                return self._found("object", text[begin : found.start()], found.end())
            self._searched = found.end()
        self._searched = max(self._searched, len(text) - KEY_BYTES)
        return False

    def _depth_before(self, stop: int, text: bytes) -> int:
        """How many objects and lists are open at `stop`; 0 when it lies within a text."""
        if not self._depth:
            # Nearly always it is the first key, and closing the object here makes it whole.
            try:
                _object.decode(b"".join((memoryview(text)[self._depth_at : stop], b'"":0}')))
                return 1
            except (msgspec.DecodeError, RecursionError):
                pass
        for token in _TOKEN.finditer(text, self._depth_at):
            if token.start() >= stop:
                break
            if token.end() > stop:
                return 0
            if token[0] in b"[{":
                self._depth += 1
            elif token[0] in b"]}":
                self._depth -= 1
        self._depth_at = stop
        return self._depth

    def _lines(self, text: bytes, begin: int) -> bool:
        self._lines_tried = len(text)
        try:
            _object.decode(memoryview(text)[begin:])
            end = len(text)
        except msgspec.DecodeError as error:
            found = TRAILING.search(str(error))
            end = begin + int(found[1]) - 1 if found else begin
        except RecursionError:
            return False
        return bool(_PHASE.search(text, begin, end)) and self._found("lines", b"", begin)
