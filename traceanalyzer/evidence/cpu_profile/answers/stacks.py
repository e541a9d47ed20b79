"""What each stack of a profile says: the user's function that ran, who called it, and whether it is of a start-up."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames as columns
from traceanalyzer.evidence.cpu_profile.reading.frames import (
    IMPORT,
    LIBRARY,
    NATIVE,
    OTHER,
    OWN,
    is_nameless,
    is_python,
)
from traceanalyzer.intervals import Array
from traceanalyzer.model.frame_names import is_hidden, read_stack

NONE = -1
Flags = npt.NDArray[np.bool_]
_MODULE = "<module>"
_RUNS_SCRIPTS = re.compile(
    r"<frozen runpy>|(?:.*/)?(?:runpy|pdb|bdb|cProfile|profile|trace|torch/distributed/\w+|viztracer/\w+|debugpy/.*|IPython/.*"
    r"|ipykernel/.*)\.py"
)
"""Files of what runs a program as a module or a script: what is inside of them is no import."""
_MODULES = re.compile(
    r"\.so(?:[.\d]|$)|\.dylib$|\.dll$|^(?:kernel|guest)\b|kallsyms|^vdso|^python[\d.]*$|\.ko$", re.IGNORECASE
)
"""Modules of compiled functions that programs use rather than consist of."""
_LIBRARY_PATH = re.compile(r"^.*/(?:site-packages|dist-packages|python\d\.\d+)/")
_WAITING = re.compile(
    r"(?:.*/)?(?:threading\.py (?:wait|_wait_for_tstate_lock|join|acquire|__enter__|Condition\.wait|Event\.wait|Thread\.join)"
    r"|queue\.py (?:\w+\.)?get|selectors\.py (?:\w+\.)?select|multiprocessing/connection\.py (?:\w+\.)?(?:_?poll|wait|_recv|recv\w*)"
    r"|multiprocessing/popen_\w+\.py (?:\w+\.)?(?:wait|poll)|subprocess\.py (?:\w+\.)?_?(?:wait|try_wait|communicate)"
    r"|socket\.py (?:\w+\.)?(?:accept|readinto))"
)


class Function(NamedTuple):
    """A function of the user's."""

    name: str
    file: str | None


class Frames:
    """The frames of one profile, as columns."""

    def __init__(self, table: pa.Table) -> None:
        table = table.sort_by("frame")
        self.name = table["name"].cast(pa.string()).to_pylist()
        self.file = table["file"].cast(pa.string()).to_pylist()
        self.line = columns.ints(table, "line")
        code, kinds = columns.codes(table, "kind")
        place = {kind: at for at, kind in enumerate(kinds)}
        self.is_ = {kind: code == place.get(kind, -2) for kind in (OWN, LIBRARY, IMPORT, NATIVE, OTHER)}
        self.module = np.array([name == _MODULE for name in self.name], bool)
        self.python = np.array([is_python(file) for file in self.file], bool)
        self.runs = np.array(
            [file is not None and _RUNS_SCRIPTS.fullmatch(file) is not None for file in self.file], bool
        )
        self.nameless = np.array([is_nameless(name) for name in self.name], bool)
        # Of Python's interpreter every function of a script is the same.
        native = self.is_[NATIVE]
        self.hidden = np.array([bool(native[at]) and is_hidden(name) for at, name in enumerate(self.name)], bool)
        self.waits = np.array(
            [
                bool(file) and _WAITING.fullmatch(f"{file} {name}") is not None
                for name, file in zip(self.name, self.file, strict=True)
            ],
            bool,
        )

    def label(self, frame: int) -> str:
        """A frame as a person reads it, without the folders of the machine."""
        return frame_label(self.name[frame], self.file[frame], int(self.line[frame]))


def frame_label(name: str, file: str | None, line: int) -> str:
    """`step (train.py:45)`; of a library's file its path within the libraries."""
    if not file:
        return name
    short = short_file(file)
    return f"{name} ({short}:{line})" if line > 0 else f"{name} ({short})"


def short_file(file: str) -> str:
    """A file without the folders of the machine: of a library's its path within the libraries, as far as that is told."""
    if _LIBRARY_PATH.match(file):
        return _LIBRARY_PATH.sub("", file)
    return file if is_relative(file) else file.rpartition("/")[2] or file


def is_relative(file: str) -> bool:
    """Whether a path names no folders of a machine: that of a package, as some profilers shorten it."""
    return not re.match(r"/|~|[A-Za-z]:|\.\.?/", file)


class Stacks:
    """The stacks of one profile. Functions are numbered as they come; `NONE` stands for none."""

    def __init__(self, table: pa.Table, frames: Frames) -> None:
        table = table.sort_by("stack")
        self.frames = frames
        self.parent, self.frame = columns.ints(table, "parent"), columns.ints(table, "frame")
        self.parent = np.where(self.parent == columns.NULL, NONE, self.parent)
        self.functions: list[Function] = []
        self._numbers: dict[Function, int] = {}
        self._walk()

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def levels(self) -> list[Array]:
        """The stacks by how many frames they have, the shallow first."""
        around, depth = self.parent.copy(), np.zeros(len(self.parent), np.int64)
        active = np.flatnonzero(around >= 0)
        while len(active):
            depth[active] += 1
            around[active] = self.parent[around[active]]
            active = active[around[active] >= 0]
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(depth))[:-1]) if len(depth) else []

    def _walk(self) -> None:
        """For each stack: `own` (innermost function of the user's), `caller` (the one around it), `line` (of the former), `line_frame`,
        `called` (frame of no code of the user's that this function called), `starts` (of a start-up), `python` (has a Python frame),
        `first` (where the start-up begins) and `module` (the outermost module that it imports)."""
        count, frames = len(self.parent), self.frames
        function = self._functions()
        own, caller, line, called, first, module = (np.full(count + 1, NONE) for _ in range(6))
        starts, python = np.zeros(count + 1, bool), np.zeros(count + 1, bool)
        for here in self.levels:
            up, frame = self.parent[here], self.frame[here]
            above = np.where(up >= 0, self.frame[up], NONE)
            mine = frames.is_[OWN][frame]
            number = function[frame]
            # A lambda or a comprehension is a part of the function that it stands in.
            inner = mine & frames.nameless[frame] & (own[up] != NONE)
            inner &= self._file_of(number) == self._file_of(own[up])
            number = np.where(inner, own[up], number)
            new = mine & (number != own[up])
            own[here] = np.where(mine, number, own[up])
            caller[here] = np.where(new, own[up], caller[up])
            line[here] = np.where(mine, frames.line[frame], line[up])
            starts[here] = starts[up] | self._begins(frame, above, python[up])
            python[here] = python[up] | frames.python[frame]
            below = np.where((called[up] != NONE) | frames.hidden[frame], called[up], frame)
            called[here] = np.where(mine | (own[here] == NONE), NONE, below)
            first[here] = np.where(starts[up], first[up], np.where(starts[here], here, NONE))
            imports = starts[here] & frames.module[frame] & (module[up] == NONE)
            module[here] = np.where(imports, frame, module[up])
        self.own, self.caller, self.line = own[:-1], caller[:-1], line[:-1]
        self.starts, self.python = starts[:-1], python[:-1]
        self.called, self.first, self.module = called[:-1], first[:-1], module[:-1]

    def _begins(self, frame: Array, above: Array, inside: Flags) -> Flags:
        """Whether a frame makes what is inside of it a start-up: the import system, or a module that is not the program itself."""
        frames = self.frames
        module = frames.module[frame] & inside & (above >= 0)
        around = np.maximum(above, 0)
        by_module = frames.module[around] | frames.is_[LIBRARY][frame]
        begins: Flags = frames.is_[IMPORT][frame] | (module & by_module & ~frames.runs[around])
        return begins

    def _functions(self) -> Array:
        """The number of each frame's function, of the user's frames."""
        frames = self.frames
        found = np.full(len(frames.name), NONE)
        for at in np.flatnonzero(frames.is_[OWN]).tolist():
            found[at] = self._number(Function(frames.name[at], frames.file[at]))
        return found

    def _number(self, function: Function) -> int:
        number = self._numbers.setdefault(function, len(self.functions))
        if number == len(self.functions):
            self.functions.append(function)
        return number

    def _file_of(self, function: Array) -> Array:
        files: dict[str | None, int] = {}
        of = np.array([files.setdefault(one.file, len(files)) for one in self.functions] + [NONE], np.int64)
        return of[function]

    def tell_native(self, stacks: Array) -> None:
        """For stacks without any Python frame: the program's own function by the names of compiled ones."""
        known: dict[str, tuple[int, int]] = {}
        for one in stacks[(self.own[stacks] == NONE) & ~self.python[stacks]].tolist():
            text = ";".join(self._native_text(frame) for frame in self.path(one))
            if text not in known:
                said = read_stack(text)
                known[text] = tuple(
                    NONE if name is None else self._number(Function(name, None)) for name in (said.own, said.caller)
                )  # type: ignore[assignment]
            self.own[one], self.caller[one] = known[text]
            if self.caller[one] == self.own[one]:
                self.caller[one] = NONE

    def _native_text(self, frame: int) -> str:
        """A compiled function for `read_stack`: none that is of a shared library, the kernel or the interpreter is the user's."""
        name, module = self.frames.name[frame].replace(";", ":"), self.frames.file[frame]
        return "[library]" if module and _MODULES.search(module) else name

    def path(self, stack: int) -> list[int]:
        """The frames of a stack, the outermost first."""
        found = []
        while stack >= 0:
            found.append(int(self.frame[stack]))
            stack = int(self.parent[stack])
        return found[::-1]
