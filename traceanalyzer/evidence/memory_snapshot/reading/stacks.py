"""Stacks of frames: each different one has a number, and the place in the user's own code that it was called from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.derive.host.places import frame_text, is_user_frame
from traceanalyzer.evidence.memory_snapshot.reading.columns import Names, Wrong, clean
from traceanalyzer.ingest.bytes.pickles import Budget

Frame = tuple[str, str, int]
_TYPED = ("<ipython-input", "<stdin>")
_MOST_LINE = (1 << 31) - 1
_MOST_FRAMES = 10_000
"""Frames of one stack; Python itself stops far below."""
_ROWS = 1 << 16


class Stacks:
    """All stacks of one file.

    The lists that are numbered must live as long as numbers are asked for: they are known by identity.
    """

    def __init__(self, budget: Budget, wrong: Wrong) -> None:
        self._budget = budget
        self._wrong = wrong
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[tuple[Frame, ...], int] = {}

    def numbers(self, found: Sequence[Any]) -> npt.NDArray[np.int32]:
        """The number of each stack; -1 for an empty one or none."""
        known = self._by_list
        try:
            return np.array([known[id(frames)] for frames in found], np.int32)
        except KeyError:
            return np.array([self._number(frames) for frames in found], np.int32)

    def _number(self, frames: Any) -> int:
        number = self._by_list.get(id(frames))
        if number is None:
            number = self._by_list[id(frames)] = self._new(frames)
        return number

    def _new(self, frames: Any) -> int:
        if type(frames) is not list:
            self._wrong.count += frames is not None
            return -1
        if not frames:
            return -1
        self._budget.spend(frames)
        try:
            content = tuple([(frame["name"], frame["filename"], frame["line"]) for frame in frames[:_MOST_FRAMES]])
            number = self._by_frames.get(content)
        except (KeyError, TypeError, IndexError):
            content, number = (), None
        if number is not None:
            return number
        # Only what is new is looked at closely.
        content = tuple(self._frame(frame) for frame in frames[:_MOST_FRAMES])
        return self._by_frames.setdefault(content, len(self._by_frames))

    def _frame(self, frame: Any) -> Frame:
        if type(frame) is not dict:
            self._wrong.count += 1
            return "", "", 0
        name, file, line = frame.get("name"), frame.get("filename"), frame.get("line")
        right = type(name) is str and type(file) is str and type(line) is int and 0 <= line <= _MOST_LINE
        self._wrong.count += not right
        return (
            name if type(name) is str else "",
            file if type(file) is str else "",
            line if type(line) is int and 0 <= line <= _MOST_LINE else 0,
        )

    def forget_lists(self) -> None:
        """The lists may go now; nothing more is numbered."""
        self._by_list.clear()

    def places(self) -> list[str | None]:
        """For each stack the innermost frame in the user's own code, as file:line (function); None when it has none."""
        shown: dict[Frame, str | None] = {}
        found = []
        for frames in self._by_frames:
            for frame in frames:
                if frame not in shown:
                    shown[frame] = clean(_text(frame)) if is_of_user(frame) else None
                if shown[frame] is not None:
                    break
            found.append(next((shown[frame] for frame in frames if shown.get(frame) is not None), None))
        return found

    def tables(self) -> Iterator[pa.Table]:
        """The rows of snapshot_frames."""
        wrong = Wrong()
        names, files = Names(), Names()
        user: dict[Frame, bool] = {}
        rows: list[tuple[int, int, int, int, int, bool]] = []
        for number, frames in enumerate(self._by_frames):
            for position, frame in enumerate(frames):
                if frame not in user:
                    user[frame] = is_of_user(frame)
                name, file, line = frame
                rows.append((number, position, names.code(name, wrong), files.code(file, wrong), line, user[frame]))
            if len(rows) >= _ROWS:
                yield _table(rows, names, files)
                rows = []
        if rows:
            yield _table(rows, names, files)


def _table(rows: list[tuple[int, int, int, int, int, bool]], names: Names, files: Names) -> pa.Table:
    stack, position, name, file, line, user = (np.array(column) for column in zip(*rows, strict=True))
    return pa.table(
        {
            "stack": pa.array(stack, pa.int32()),
            "position": pa.array(position, pa.int32()),
            "name": names.of(name),
            "file": files.of(file),
            "line": pa.array(line, pa.int32(), mask=line == 0),
            "user": pa.array(user, pa.bool_()),
        }
    )


def is_of_user(frame: Frame) -> bool:
    """Whether a frame is Python of the user's own: frames of C++ name source files too, and none of them is."""
    _, file, line = frame
    return line > 0 and (file.endswith(".py") or file.startswith(_TYPED)) and is_user_frame(_text_of(frame))


def _text_of(frame: Frame) -> str:
    name, file, line = frame
    return f"{file}({line}): {name}"


def _text(frame: Frame) -> str:
    return frame_text(_text_of(frame))
