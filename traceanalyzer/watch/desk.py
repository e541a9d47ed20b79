"""What a watcher remembers, beside the reports: which captures it is done with, and who is at one. It survives a restart, and two of
them share it.

    .watch/done/<key>       a capture that was taken: JSON, which says what became of it
    .watch/at/<key>         there as long as a watcher is at that capture
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from traceanalyzer.files import replacing
from traceanalyzer.locks import HeldError, hold_lock
from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Done:
    """What became of a capture: the `id` of its entry in the history, or the `error` for which it has none; `crashed` says that it
    took the process with it, or met a fault of ours, in each of its `tries`."""

    name: str
    id: str | None = None
    error: str | None = None
    tries: int = 1
    crashed: bool = False


class Desk:
    """The notes of a watcher whose reports lie in a folder. All of it raises OSError."""

    def __init__(self, reports: Path) -> None:
        self._folder = reports / ".watch"

    def done(self, key: str) -> Done | None:
        """What became of a capture; None where nobody was done with it, or the note cannot be read."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode((self._folder / "done" / key).read_bytes(), type=Done)
        return None

    def note(self, key: str, done: Done) -> None:
        """Remember it."""
        with replacing(self._folder / "done" / key) as file:
            file.write(msgspec.json.encode(done))

    def every(self) -> dict[str, Done]:
        """All that is remembered, by key."""
        folder = self._folder / "done"
        names = sorted(one.name for one in folder.iterdir() if not one.name.startswith(".")) if folder.is_dir() else []
        found = {name: self.done(name) for name in names}
        return {name: done for name, done in found.items() if done is not None}

    @contextmanager
    def at(self, what: str) -> Iterator[bool]:
        """Be the only one at something, such as a capture; False where another watcher is."""
        with ExitStack() as held:
            try:
                held.enter_context(hold_lock(self._folder / "at" / what))
            except HeldError:
                yield False
                return
            yield True
