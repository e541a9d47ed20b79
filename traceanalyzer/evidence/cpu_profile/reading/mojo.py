"""Austin's binary form, versions 1 to 4: events of one byte each with their numbers and texts, as Austin's wiki describes them."""

from __future__ import annotations

import re

from traceanalyzer.evidence.cpu_profile.reading.content import AUSTIN, whole
from traceanalyzer.evidence.cpu_profile.reading.folded import GARBAGE, Clocks, thread_number, told
from traceanalyzer.evidence.cpu_profile.reading.frames import frame_of, is_python
from traceanalyzer.evidence.cpu_profile.reading.rows import TOP, About, Rows
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import Progress

(
    _METADATA, _STACK, _FRAME, _INVALID, _REF, _KERNEL, _GC, _IDLE, _TIME, _MEMORY, _STRING, _STRING_REF, _REPEAT, _TASK_STACK,
    _TASK_WAITER, _TASK_RUNNING,
) = range(1, 17)  # fmt: skip


class _CutError(Exception):
    """The bytes end, or go on with what is no event."""


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self._data):
            raise _CutError("the end of the file is missing")
        self.at += 1
        return self._data[self.at - 1]

    def number(self) -> int:
        """Six bits and a sign, then seven bits a byte, the lowest first."""
        byte = self.byte()
        value, shift, minus = byte & 0x3F, 6, byte & 0x40
        while byte & 0x80:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise _CutError("a number that is too long")
        return -value if minus else value

    def text(self) -> str:
        end = self._data.find(b"\0", self.at)
        if end < 0:
            raise _CutError("the end of the file is missing")
        found = self._data[self.at : end]
        self.at = end + 1
        return found.decode("utf-8", "replace")

    def match(self, pattern: re.Pattern[bytes]) -> tuple[bytes, bytes, bytes] | None:
        """What the three groups of a pattern match from here on."""
        found = pattern.match(self._data, self.at)
        return (found[1], found[2], found[3]) if found else None

    @property
    def left(self) -> bool:
        return self.at < len(self._data)


def read(source: Source, progress: Progress, rows: Rows) -> About:
    """As `folded.read_austin`."""
    about = About(AUSTIN, "Austin", timed=True)
    data, damage = whole(source, progress)
    reading = _Reading(_Bytes(data), rows, about)
    try:
        reading.read()
    except _CutError as error:
        about.skip(damage or error)
    told(reading.metadata, about, source)
    return about


class _Reading:
    def __init__(self, data: _Bytes, rows: Rows, about: About) -> None:
        self._bytes, self._rows, self._about = data, rows, about
        self._bytes.at = 3
        self._version = data.number()
        self.metadata: dict[str, str] = {}
        self._strings: dict[tuple[int, int], str] = {}
        self._frames: dict[tuple[int, int], int] = {}
        self._before: dict[int, list[int]] = {}
        self._clock = Clocks()
        self._pid, self._thread = 0, -1
        self._stack: list[int] = []
        self._passed: int | None = None
        self._native: set[int] = set()
        self._heads: dict[bytes, tuple[int, int]] = {}
        self._stacks: dict[tuple[int, bytes], tuple[int, list[int]]] = {}
        self._task_frames = 0

    def read(self) -> None:
        """All events. Raises _CutError where they end too early."""
        number = rb"[\x80-\xff]*[\x00-\x7f]"
        head = number * (2 if self._version >= 3 else 1) + rb"[^\x00]*\x00"
        plain = re.compile(rb"\x02(%b)((?:\x05%b)*)\x09(%b)(?=\x02|\Z)" % (head, number, number), re.DOTALL)
        try:
            while self._bytes.left:
                # Nearly all samples are references to frames that are known, and of few different stacks.
                if not ((found := self._bytes.match(plain)) and self._plain(*found)):
                    self._event(self._bytes.byte())
        finally:
            self._done()

    def _plain(self, head: bytes, refs: bytes, passed: bytes) -> bool:
        """Take a sample of frames that are known as a whole; False where one is not."""
        self._done()
        thread = self._heads.get(head)
        if thread is None:
            data = _Bytes(head)
            pid = data.number()
            if self._version >= 3:
                data.number()
            thread = self._heads[head] = pid, self._rows.thread(pid, _thread(data.text(), pid), None)
        pid, number = thread
        stack = self._stacks.get((pid, refs))
        if stack is None:
            data, keys = _Bytes(refs), []
            while data.left:
                data.byte()
                keys.append((pid, data.number()))
            if not all(key in self._frames for key in keys):
                return False
            frames = [self._frames[key] for key in keys]
            stack = self._stacks[pid, refs] = self._rows.stack(frames) if frames else TOP, frames
        ns = _Bytes(passed).number() * 1000
        if not 0 <= ns < 1 << 61:
            return False
        node, self._before[number] = stack
        self._rows.sample(number, self._clock.passed(number, ns), ns, node)
        self._bytes.at += 2 + len(head) + len(refs) + len(passed)
        self._pid, self._thread, self._task_frames = pid, number, 0
        return True

    def _done(self) -> None:
        """The sample is whole once its metric was read."""
        if self._thread >= 0 and self._passed is not None:
            self._before[self._thread] = list(self._stack)
            at = self._clock.passed(self._thread, self._passed)
            self._rows.sample(self._thread, at, self._passed, self._rows.stack(self._stack) if self._stack else TOP)
        self._stack, self._passed = [], None

    def _event(self, kind: int) -> None:
        data = self._bytes
        if kind == _METADATA:
            key = data.text()
            self.metadata[key] = data.text()
        elif kind == _STRING:
            number = data.number()
            self._strings[self._pid, number] = data.text()
        elif kind in (_TASK_STACK, _TASK_WAITER, _TASK_RUNNING):
            self._task(kind)
        elif kind == _STACK:
            self._done()
            self._task_frames = 0
            self._pid = data.number()
            if self._version >= 3:
                data.number()
            self._thread = self._rows.thread(self._pid, _thread(data.text(), self._pid), None)
        elif kind == _FRAME:
            self._frame()
        elif kind in (_REF, _KERNEL, _GC, _INVALID, _IDLE, _REPEAT):
            self._of_stack(kind)
        elif kind == _TIME:
            passed = data.number() * 1000
            if 0 <= passed < 1 << 61:
                self._passed = passed
        elif kind in (_MEMORY, _STRING_REF):
            data.number()
        else:
            raise _CutError(f"an event {kind}, which is not known")

    def _task(self, kind: int) -> None:
        """Tasks of asyncio that wait: their frames, which follow, are no part of what the thread ran."""
        numbers = [self._bytes.number() for _ in range({_TASK_STACK: 3, _TASK_WAITER: 2, _TASK_RUNNING: 1}[kind])]
        self._task_frames = numbers[2] if kind == _TASK_STACK else 0

    def _frame(self) -> None:
        data = self._bytes
        key, file, scope, line = (data.number() for _ in range(4))
        if self._version >= 2:
            for _ in range(3):
                data.number()
        name, path = (self._strings.get((self._pid, one), "") for one in (scope, file))
        frame = frame_of(name, path or None, line)
        number = self._rows.frame(frame)
        if self._frames.get((self._pid, key), number) != number:
            self._stacks.clear()
        self._frames[self._pid, key] = number
        if not is_python(frame.file):
            self._native.add(number)

    def _of_stack(self, kind: int) -> None:
        data = self._bytes
        if kind == _REF:
            number = self._frames.get((self._pid, data.number()))
            if number is None:
                self._about.skip("a frame that was not described")
            elif self._task_frames <= 0:
                self._stack.append(number)
            self._task_frames -= 1
        elif kind == _KERNEL:
            self._stack.append(self._rows.frame(frame_of(data.text())))
        elif kind == _GC:
            self._stack.append(self._rows.frame(frame_of(GARBAGE)))
        elif kind == _REPEAT:
            # The frames of Python are those of the thread's last sample; compiled ones inside of them are written anew.
            before = list(self._before.get(self._thread, ()))
            while before and before[-1] in self._native:
                before.pop()
            self._stack = before + self._stack


def _thread(text: str, pid: int) -> int | None:
    text = text.rpartition(":")[2]
    try:
        return thread_number(text, pid)
    except ValueError:
        return None
