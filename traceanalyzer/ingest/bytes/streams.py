"""What `Source.open` gives: bytes to read once, from start to end.

A stream's `damage` says in words why it ended before its data did, its `notes` what else is worth a line. Both are complete once `read`
has given less than it was asked for.
"""

from __future__ import annotations

import io
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from traceanalyzer.ingest.bytes.containers import LOST, Condition, Note

BLOCK_BYTES = 1 << 20
BLOCKS_AHEAD = 4


class PlainStream(io.FileIO):
    """A file as it lies on disk. `progress` hears of bytes read."""

    notes: list[Note]

    def __init__(self, place: Path, progress: Callable[[int], None] | None) -> None:
        super().__init__(place, "rb")
        self._progress = progress
        self.damage: str | None = None
        self.notes = []

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            data = super().read(size)
        except OSError as error:
            self.damage = f"the file could not be read to its end ({error.strerror}): {LOST}"
            return b""
        if self._progress:
            self._progress(len(data))
        return data


class PackedStream:
    """Unpacked content. A thread unpacks a few MiB ahead of the reader: the libraries that do so leave the interpreter free."""

    def __init__(self, blocks: Iterator[bytes], condition: Condition) -> None:
        self._condition = condition
        self._queue: queue.Queue[bytes | BaseException | None] = queue.Queue(BLOCKS_AHEAD)
        self._block, self._at = b"", 0
        self._ended = self._unwanted = False
        self._thread = threading.Thread(target=self._unpack, args=(blocks,), daemon=True)
        self._thread.start()

    @property
    def damage(self) -> str | None:
        return self._condition.damage if self._ended else None

    @property
    def notes(self) -> list[Note]:
        return self._condition.notes if self._ended else []

    def read(self, size: int = -1, /) -> bytes:
        """`size` bytes, fewer only at the end; all that is left when it is negative. Raises InputError above the size limit."""
        wanted = sys.maxsize if size < 0 else size
        parts = []
        while wanted and self._fill():
            taken = self._block[self._at : self._at + wanted]
            self._at += len(taken)
            wanted -= len(taken)
            parts.append(taken)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _fill(self) -> bool:
        """Whether there is something left to read in the current block, which is replaced when it is used up."""
        while self._at == len(self._block) and not self._ended:
            match self._queue.get():
                case bytes(block):
                    self._block, self._at = block, 0
                case None:
                    self._ended = True
                case error:
                    self._ended = True
                    raise error
        return self._at < len(self._block)

    def close(self) -> None:
        """Stop unpacking. The stream cannot be read afterwards."""
        self._unwanted = self._ended = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _unpack(self, blocks: Iterator[bytes]) -> None:
        end = None
        try:
            waiting: list[bytes] = []
            size = 0
            for block in blocks:
                waiting.append(block)
                size += len(block)
                if size >= BLOCK_BYTES:
                    self._queue.put(b"".join(waiting))
                    waiting, size = [], 0
                if self._unwanted:
                    return
            self._queue.put(b"".join(waiting))
        except BaseException as error:
            end = error
        self._queue.put(end)


ByteStream = PlainStream | PackedStream
