"""Frames of stacks as each profiler writes them: function, file, line, and whose code it is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from traceanalyzer.places import is_user_frame

OWN, LIBRARY, IMPORT, NATIVE, OTHER = "own", "library", "import", "native", "other"
"""Whose code a frame is: the user's own, of a package or of the standard library, of Python's import system, compiled, or none of
these (names of threads and processes, places of the profiler)."""
_PYTHON_FILE = re.compile(
    r"(?:.*\.(?:py|pyx|pyw|ipynb)|<(?:frozen [\w.]+|string|stdin|ipython-input.*|__array_function__ \w+)>)"
)
_LINE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d{1,9}|-))?", re.DOTALL)
_ROOT = re.compile(r"thread \((?:\d+|0x[0-9a-fA-F]+)\)(?:: .*)?|process \d+:.*", re.DOTALL)
_IMPORT_FILE = re.compile(
    r"<frozen (?:importlib\.)?_?(?:bootstrap\w*|importlib[\w.]*|zipimport)>|(?:.*/)?importlib/(?:__init__|_bootstrap\w*)\.py"
)
_IMPORT_NATIVE = re.compile(
    r"_?PyImport_\w+|import_(?:name|from|find_and_load|ensure_initialized)|builtin___import__|import_find_and_load"
)
_TRAMPOLINE = re.compile(r"py::(?P<name>.+?):(?P<file>.+)", re.DOTALL)
_LAMBDA = re.compile(r"<(?:lambda|listcomp|dictcomp|setcomp|genexpr)>$")
LONGEST = 512


class Frame(NamedTuple):
    """A frame; without file or line where these are not recorded."""

    name: str
    file: str | None
    line: int | None
    kind: str


@lru_cache(maxsize=1 << 16)
def frame_of(name: str, file: str | None = None, line: int | None = None) -> Frame:
    """What a profiler calls a frame, with its file and line, or with both in the name: `step (train.py:45)`."""
    if not file and _ROOT.fullmatch(name):
        return Frame(" ".join(name.split())[:LONGEST], None, None, OTHER)
    if not file and name.endswith(")") and (told := _in_name(name)):
        name, file, line = told
    elif not file and (found := _TRAMPOLINE.fullmatch(name)):
        name, file, line = found["name"], found["file"], None
    name = " ".join(name.split())[:LONGEST] or "(no name)"
    file = (file or "").replace("\\", "/").strip()[-LONGEST:] or None
    line = line if line is not None and 0 < line < 1 << 31 else None
    return Frame(name, file, line, _kind(name, file, line))


def _in_name(name: str) -> tuple[str, str, int | None] | None:
    """Function, file and line of `step (train.py:45)`; None for what is called otherwise."""
    at = name.find(" (")
    while at > 0:
        found = _LINE.fullmatch(name[at + 2 : -1])
        if found and _PYTHON_FILE.fullmatch(found["file"].replace("\\", "/")):
            return name[:at], found["file"], int(found["line"]) if (found["line"] or "-") != "-" else None
        at = name.find(" (", at + 1)
    return None


def _kind(name: str, file: str | None, line: int | None) -> str:
    if file is None or not _PYTHON_FILE.fullmatch(file):
        return IMPORT if _IMPORT_NATIVE.fullmatch(name) else NATIVE
    if _IMPORT_FILE.fullmatch(file):
        return IMPORT
    return OWN if is_user_frame(f"{file}({line or 0}): {name}") else LIBRARY


def is_python(file: str | None) -> bool:
    """Whether a file is one of Python's."""
    return file is not None and _PYTHON_FILE.fullmatch(file) is not None


def is_nameless(name: str) -> bool:
    """Whether a function has no name of its own: a lambda, a comprehension."""
    return _LAMBDA.search(name) is not None
