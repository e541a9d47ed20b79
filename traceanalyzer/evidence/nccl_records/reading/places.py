"""The place in the user's own code that a call was made from."""

from __future__ import annotations

from typing import Any

from traceanalyzer.evidence.nccl_records.reading.columns import Wrong, clean
from traceanalyzer.ingest.bytes.pickles import Budget
from traceanalyzer.places import frame_text, is_user_frame

_TYPED = ("<ipython-input", "<stdin>")
_MOST_LINE = (1 << 31) - 1
_MOST_FRAMES = 10_000


class Places:
    """Places by stack; each different frame is looked at once."""

    def __init__(self, budget: Budget, wrong: Wrong) -> None:
        self._budget = budget
        self._wrong = wrong
        self._by_frame: dict[tuple[str, str, int], str | None] = {}

    def of(self, frames: Any) -> str | None:
        """The innermost frame of the user's own code, as file:line (function); None where there is none."""
        if type(frames) is not list:
            self._wrong.count += frames is not None
            return None
        self._budget.spend(frames)
        for frame in frames[:_MOST_FRAMES]:
            try:
                key = (frame["name"], frame["filename"], frame["line"])
                place = self._by_frame[key]
            except (KeyError, TypeError):
                place = self._new(frame)
            if place is not None:
                return place
        return None

    def _new(self, frame: Any) -> str | None:
        if type(frame) is not dict:
            self._wrong.count += 1
            return None
        name, file, line = (frame.get(key) for key in ("name", "filename", "line"))
        if not (type(name) is str and type(file) is str and type(line) is int and 0 <= line <= _MOST_LINE):
            self._wrong.count += 1
            return None
        text = f"{file}({line}): {name}"
        own = line > 0 and (file.endswith(".py") or file.startswith(_TYPED)) and is_user_frame(text)
        place = self._by_frame[name, file, line] = clean(frame_text(text)) if own else None
        return place
