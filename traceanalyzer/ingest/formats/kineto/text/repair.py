"""Mend one JSON value that is not quite JSON, where what was meant is plain.

The value is read from its first byte by a small state machine. It needs to see nothing behind the value but what follows at once,
so the outcome depends on the bytes alone and never on where a block of the file ended. What cannot be mended says where the
next event may begin.
"""

from __future__ import annotations

import re
from enum import Enum

from traceanalyzer.records import dataclass

MAX_DEPTH = 200
# No decision looks further ahead than this.
LOOKAHEAD = 320

_W = rb"[ \t\r\n]{0,40}"
_EVENT_KEY = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|tts|tdur|scope|sf|stack|id2|bind_id)"'
# How an event begins: with its phase, or behind another object and with any key of the format.
EVENT_START = re.compile(rb'\{%b"ph"%b:|(?<=[}\]])%b,?%b\{%b%b%b:' % (_W, _W, _W, _W, _W, _EVENT_KEY, _W))
PHASE_FIRST = re.compile(rb'\{%b"ph"%b:' % (_W, _W))
_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN_TEXT = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(
    rb'-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,9})?(?=[ \t\r\n,}\]"]|\Z)|(?:true|false|null)\b'
)
# A field with nothing to mend, up to the next key.
_CLEAN_FIELD = re.compile(
    rb'%b("[^"\\\x00-\x1f]*")%b:%b(?:"[^"\\\x00-\x1f]*"|-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?|true|false|null)%b,%b(?=")'
    % (_W, _W, _W, _W, _W)
)
_NO_VALUE = re.compile(
    rb"(?:N/A|[-+]?(?:nan|inf|infinity)|None|undefined)(?=[ \t\r\n,}\]]|\Z)|(?=[,}\]])", re.IGNORECASE
)
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ANY_KEY = rb'"[^"\\]{1,100}"'
_STRAY_QUOTE = re.compile(rb'"(?=%b[,}\]])' % _W)
# A backslash before the quote that ends a text: read as an escape, the text would run into the next key.
_LITERAL_BACKSLASH = re.compile(rb'\\(?="%b(?:\}%b){0,3},%b\{?%b%b%b:)' % (_W, _W, _W, _W, _ANY_KEY, _W))
_AFTER_EVENT = rb"%b(?:,%b){0,3}(?:[{\]]|\Z)" % (_W, _W)
_FOLLOWS_EVENT = re.compile(_AFTER_EVENT)


class Repair(Enum):
    """What was done; the value is how health says it."""

    BACKSLASH = "backslashes that JSON does not allow were kept as they stood"
    CONTROL = "raw control characters in texts were kept as they stood"
    QUOTE = "quotes inside texts that JSON wants escaped were kept as they stood"
    SURROGATE = "halves of surrogate pairs were read as replacement characters"
    NO_VALUE = "values that JSON does not know (N/A, nan, inf and the like) were read as absent"
    STRAY_QUOTE = "stray quotes behind values were left out"
    COMMA = "commas too many inside objects and lists were left out"


class _Place(Enum):
    """Where a text stands: what may follow the quote that ends it."""

    KEY = 0
    EVENT_FIELD = 1
    FIELD = 2
    ITEM = 3


# What must follow a quote that ends a text, and what must follow once a quote inside the text was met.
_ENDS = {
    _Place.KEY: re.compile(rb'"%b:' % _W),
    _Place.EVENT_FIELD: re.compile(rb'"%b(?:(?:,%b){1,3}"|(?:,%b)?\}%b)' % (_W, _W, _W, _AFTER_EVENT)),
    _Place.FIELD: re.compile(rb'"%b(?:(?:,%b){1,3}"|(?:,%b)?\})' % (_W, _W, _W)),
    _Place.ITEM: re.compile(rb'"%b[,\]]' % _W),
}
_ENDS_QUOTED = {
    _Place.EVENT_FIELD: re.compile(rb'"%b(?:,%b%b%b:|\}%b)' % (_W, _W, _EVENT_KEY, _W, _AFTER_EVENT)),
    _Place.FIELD: re.compile(rb'"%b(?:,%b%b%b:|\}%b[,}\]])' % (_W, _W, _ANY_KEY, _W, _W)),
    _Place.ITEM: re.compile(rb'"%b(?:,%b["{\[\d-]|\]%b[,}\]])' % (_W, _W, _W)),
}
# A text with quotes inside that holds one of these may be two fields: nobody can tell.
_AMBIGUOUS = {
    _Place.EVENT_FIELD: re.compile(rb"%b%b:" % (_EVENT_KEY, _W)),
    _Place.FIELD: re.compile(rb",%b%b%b:" % (_W, _ANY_KEY, _W)),
    _Place.ITEM: re.compile(rb'"%b,%b"' % (_W, _W)),
}


@dataclass(frozen=True)
class Mended:
    """Valid JSON for what ended before `end`; `repairs` gives for each kind the place of the first."""

    text: bytes
    end: int
    repairs: dict[Repair, int]


@dataclass(frozen=True)
class Broken:
    """What cannot be mended. The next event begins at `resume` or later. `cut`: the text ended inside the value."""

    resume: int
    cut: bool = False


def mend(text: bytes, start: int, stop: int, more: bool, event: bool = True) -> Mended | Broken | None:
    """Read the object at `start`, seeing nothing from `stop` on. None: more text is needed, which `more` says there is.

    `event`: it is an event among events, and not an object that stands alone.
    """
    return _Mender(text, start, stop, more, event).run()


class _StopError(Exception):
    """Carries the outcome out of the machine."""

    def __init__(self, outcome: Broken | None) -> None:
        self.outcome = outcome


class _Mender:
    def __init__(self, text: bytes, start: int, stop: int, more: bool, event: bool) -> None:
        self._text, self._at, self._stop, self._more, self._event = text, start, stop, more, event
        self._token = self._following = start
        self._out: list[bytes] = []
        self._open: list[tuple[bytes, int, set[bytes]]] = []
        self._repairs: dict[Repair, int] = {}

    def run(self) -> Mended | Broken | None:
        try:
            self._value()
            while self._open:
                self._element()
            if self._event and Repair.QUOTE in self._repairs:
                self._require(_FOLLOWS_EVENT)
        except _StopError as stop:
            return stop.outcome
        return Mended(b"".join(self._out), self._at, self._repairs)

    def _next(self) -> bytes:
        """The next byte behind white space."""
        self._at = self._token = _match_end(_SPACE, self._text, self._at, self._stop)
        if self._at >= self._stop:
            raise _StopError(None if self._more else Broken(self._stop, cut=True))
        return self._text[self._at : self._at + 1]

    def _fail(self, resume: int | None = None) -> _StopError:
        """Broken here, or undecided where more text may change that."""
        if self._more and self._at + LOOKAHEAD > self._stop:
            return _StopError(None)
        return _StopError(Broken(self._token if resume is None else resume))

    def _require(self, pattern: re.Pattern[bytes]) -> None:
        found = pattern.match(self._text, self._at, self._stop)
        if not found or (self._more and self._at + LOOKAHEAD > self._stop):
            raise self._fail()

    def _note(self, repair: Repair, at: int) -> None:
        self._repairs.setdefault(repair, at)

    def _element(self) -> None:
        """One key with its value, one item, or the end of the innermost object or list; then the comma behind it."""
        kind, _, keys = self._open[-1]
        if kind == b"{" and (clean := _CLEAN_FIELD.match(self._text, self._at, self._stop)):
            self._token = clean.start(1)
            self._add_key(clean[1], keys)
            self._out.append(clean[0])
            self._at = clean.end()
            return
        closing = b"}" if kind == b"{" else b"]"
        found = self._next()
        # In a list, two commas may stand for an item that is missing.
        while found == b"," and kind == b"{":
            self._note(Repair.COMMA, self._at)
            self._at += 1
            found = self._next()
        if found == closing:
            if self._out[-1] == b",":
                self._note(Repair.COMMA, self._at)
                self._out.pop()
            self._at += 1
            self._close()
        elif kind == b"{":
            self._key(keys)
            self._value()
        else:
            self._value()

    def _key(self, keys: set[bytes]) -> None:
        if self._next() != b'"':
            raise self._fail()
        self._add_key(self._string(_Place.KEY), keys)
        self._next()
        self._at += 1
        self._out.append(b":")

    def _add_key(self, key: bytes, keys: set[bytes]) -> None:
        if key in keys and len(self._open) == 1 and self._event:
            raise self._fail()
        keys.add(key)

    def _value(self) -> None:
        found = self._next()
        if found in (b"{", b"["):
            if len(self._open) == MAX_DEPTH:
                raise self._fail(self._at + 1)
            self._open.append((found, self._at, set()))
            self._out.append(found)
            self._at += 1
            return
        if found == b'"':
            self._string(self._place())
        elif scalar := _NUMBER.match(self._text, self._at, self._stop):
            self._out.append(scalar[0])
            self._at = scalar.end()
            self._drop_stray_quote()
        elif (absent := _NO_VALUE.match(self._text, self._at, self._stop)) and (absent[0] or self._open[-1][0] == b"{"):
            self._note(Repair.NO_VALUE, self._at)
            self._out.append(b"null")
            self._at = absent.end()
        else:
            raise self._fail()
        self._comma()

    def _place(self) -> _Place:
        if self._open[-1][0] == b"[":
            return _Place.ITEM
        return _Place.EVENT_FIELD if self._event and len(self._open) == 1 else _Place.FIELD

    def _drop_stray_quote(self) -> None:
        if self._next() == b'"' and _STRAY_QUOTE.match(self._text, self._at, self._stop):
            self._note(Repair.STRAY_QUOTE, self._at)
            self._at += 1

    def _close(self) -> None:
        kind, start, keys = self._open.pop()
        self._out.append(b"}" if kind == b"{" else b"]")
        if not self._open:
            return
        if self._event and b'"ph"' in keys:
            # An event inside a broken event: the outer one lost its end.
            raise self._fail(start)
        self._comma()

    def _comma(self) -> None:
        """What follows a value inside an object or list: a comma, or its end."""
        found = self._next()
        if found == b",":
            self._out.append(b",")
            self._at += 1
        elif found != (b"}" if self._open[-1][0] == b"{" else b"]"):
            raise self._fail()

    def _string(self, place: _Place) -> bytes:
        """Read the text whose opening quote is next; append it with its quotes to what was read, and return it."""
        text, stop = self._text, self._stop
        parts = [b'"']
        opened = self._at
        ends = _ENDS[place]
        limit = stop
        self._at += 1
        while True:
            run = _match_end(_PLAIN_TEXT, text, self._at, stop)
            parts.append(text[self._at : run])
            self._at = run
            if self._more and run + LOOKAHEAD > stop:
                raise _StopError(None)
            if run >= stop:
                raise _StopError(Broken(opened + 1, cut=True))
            if run > limit:
                raise _StopError(Broken(limit))
            byte = text[run]
            if byte == 0x22:
                if ends.match(text, run, stop):
                    break
                if place is _Place.KEY:
                    raise self._fail()
                if ends is _ENDS[place]:
                    ends = _ENDS_QUOTED[place]
                    limit = self._next_event(run)
                    if ends.match(text, run, stop):
                        break
                self._note(Repair.QUOTE, run)
                parts.append(b'\\"')
                self._at += 1
            elif byte == 0x5C:
                self._escape(parts)
            else:
                self._note(Repair.CONTROL, run)
                parts.append(b"\\u%04x" % byte)
                self._at += 1
        if ends is not _ENDS[place] and _AMBIGUOUS[place].search(text, opened + 1, self._at):
            raise self._fail(opened + 1)
        self._at += 1
        parts.append(b'"')
        string = b"".join(parts)
        self._out.append(string)
        return string

    def _next_event(self, at: int) -> int:
        """Where the next event seems to begin: no text with quotes inside may run past that."""
        if at > self._following:
            found = EVENT_START.search(self._text, at, self._stop)
            self._following = found.start() if found else self._stop
        return self._following

    def _escape(self, parts: list[bytes]) -> None:
        text, at, stop = self._text, self._at, self._stop
        known = _ESCAPE.match(text, at, stop)
        if not known or _LITERAL_BACKSLASH.match(text, at, stop):
            self._note(Repair.BACKSLASH, at)
            parts.append(b"\\\\")
            self._at += 1
        elif pair := _PAIR.match(text, at, stop):
            parts.append(pair[0])
            self._at = pair.end()
        elif _HALF.match(text, at, stop):
            self._note(Repair.SURROGATE, at)
            parts.append(b"\\ufffd")
            self._at = known.end()
        else:
            parts.append(known[0])
            self._at = known.end()


def _match_end(pattern: re.Pattern[bytes], text: bytes, at: int, stop: int) -> int:
    """Where a pattern that always matches ends."""
    found = pattern.match(text, at, stop)
    assert found is not None
    return found.end()
