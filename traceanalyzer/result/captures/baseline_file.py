"""The file that a baseline is kept in: JSON that reads well in a diff.

What changes on its own has a line of its own: a figure, a ledger line, a kernel, an operator, a rule. The same baseline gives the same
bytes. What varies from run to run, such as which kernel takes longest, moves no line: lists are ordered by name here, and by
size where they are used. What each field means stands in `capture`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from traceanalyzer.errors import InputError
from traceanalyzer.files import open_regular
from traceanalyzer.result.captures.capture import SCHEMA_VERSION, UNITS, Baseline, Capture

MOST_BYTES = 64 << 20
"""A file that unpacks to more than this is no baseline."""
GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 600
OPEN_LEVELS = 4
"""So deep, objects and lists of objects are spread over lines: the file, its captures, one of them, the things in it."""
_WORK = ("families", "kernels", "operators", "collectives")
_KEYS = {
    **dict.fromkeys(_WORK, ("name",)),
    "shapes": ("operator", "shapes"),
    "problems": ("rule",),
}
_BY_KEY = ("metrics", "outcomes", "reasons", "versions")
_BEGINS = re.compile(rb'\s*\{[^\[]*"captures"\s*:\s*\[', re.DOTALL)
_AGAIN = "save it again with `traceanalyzer baseline save`"


def baseline_bytes(baseline: Baseline) -> bytes:
    """UTF-8 JSON, ending in a newline."""
    plain = _shortest(msgspec.to_builtins(baseline))
    plain["captures"] = [_in_order(capture) for capture in plain["captures"]]
    ordered = {"schema_version": plain.pop("schema_version"), **plain}
    return "".join([*_written(ordered, 0), "\n"]).encode()


def _shortest(value: Any) -> Any:
    """The same data, whole numbers without their ".0"."""
    if isinstance(value, dict):
        return {key: _shortest(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortest(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_order(capture: dict[str, Any]) -> dict[str, Any]:
    """Lists and objects whose order means nothing, by name."""
    by_name = {field: sorted(capture[field], key=itemgetter(*keys)) for field, keys in _KEYS.items()}
    return {**capture, **by_name, **{field: dict(sorted(capture[field].items())) for field in _BY_KEY}}


def _by_size(baseline: Baseline) -> Baseline:
    """The lists of its captures with the largest first, as captures have them."""
    return replace(baseline, captures=[_largest_first(capture) for capture in baseline.captures])


def _largest_first(capture: Capture) -> Capture:
    work: dict[str, Any] = {
        field: sorted(getattr(capture, field), key=lambda one: (-one.ns, one.name)) for field in _WORK
    }
    return replace(
        capture,
        shapes=sorted(capture.shapes, key=lambda one: (-one.count, one.operator, one.shapes)),
        problems=sorted(capture.problems, key=lambda one: (-(one.ns or 0), one.rule)),
        **work,
    )


def is_baseline(path: Path) -> bool:
    """Whether a file begins as a baseline does, plain or packed by gzip. False for what is no file or cannot be read."""
    try:
        return path.is_file() and _BEGINS.match(_content(path, HEAD_BYTES)) is not None
    except (OSError, EOFError, zlib.error, ValueError):
        return False


def read_baseline(path: Path) -> Baseline:
    """Read what `baseline_bytes` wrote, plain or packed by gzip.

    Raises InputError for what cannot be read, for a baseline of a newer version, and for a file that is something else.
    """
    try:
        content = _content(path, MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: gzip data is damaged or cut short; copy the file again") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: is a folder; name the baseline file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    if not content.strip():
        raise InputError(f"{path}: is empty; {_AGAIN}")
    if len(content) > MOST_BYTES:
        raise InputError(f"{path}: is too large for a baseline; name the file that `traceanalyzer baseline save` wrote")
    try:
        plain = msgspec.json.decode(content)
    except RecursionError as error:
        raise InputError(f"{path}: is not a baseline, it is nested too deeply; {_AGAIN}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not _BEGINS.match(content[:HEAD_BYTES]):
            raise InputError(f"{path}: is not a baseline; {_AGAIN}") from error
        raise InputError(f"{path}: not valid JSON ({error}); was a merge left half done? Or {_AGAIN}") from error
    _check_kind(path, plain)
    try:
        baseline = _by_size(msgspec.convert(plain, Baseline))
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: a baseline with a field that does not fit ({error}); {_AGAIN}") from error
    if not baseline.captures:
        raise InputError(f"{path}: a baseline without a capture; {_AGAIN}")
    if any(one.unit and not (one.unit.time.mean_ns and one.unit.time.samples_ns) for one in baseline.captures):
        raise InputError(f"{path}: a baseline whose unit of work takes no time; {_AGAIN}")
    if unknown := [one.unit.kind for one in baseline.captures if one.unit and one.unit.kind not in UNITS]:
        raise InputError(f"{path}: a baseline with a unit of work '{unknown[0]}', which is not known; {_AGAIN}")
    return baseline


def _check_kind(path: Path, plain: Any) -> None:
    """Raises InputError for JSON that is no baseline, or one of a version that this program does not read."""
    keys = set(plain) if isinstance(plain, dict) else set()
    if not {"schema_version", "captures"} <= keys:
        what = next((words for key, words in _OTHERS.items() if key in keys), "JSON of another kind")
        raise InputError(
            f"{path}: is not a baseline but {what}; make one with `traceanalyzer baseline save TRACE -o baseline.json`"
        )
    version = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", str(plain["schema_version"]))
    if version is None:
        raise InputError(f"{path}: a baseline without a version that can be read; {_AGAIN}")
    written = int(version[1]), int(version[2])
    if written > _OWN:
        raise InputError(
            f"{path}: written by a newer traceanalyzer (baseline version {version[0]}, this one reads up to {SCHEMA_VERSION}); "
            f"update traceanalyzer, or {_AGAIN}"
        )
    if written[0] < _OWN[0]:
        raise InputError(f"{path}: written by an older traceanalyzer (baseline version {version[0]}); {_AGAIN}")


_OWN = tuple(map(int, SCHEMA_VERSION.split(".")))
_OTHERS = {
    "findings": "a result document",
    "outcome": "a comparison",
    "traceEvents": "a trace",
    "parts": "the manifest of a store",
}
"""What else a JSON file may be, by a key that it has."""


def _content(path: Path, most: int) -> bytes:
    """The first bytes of a file, unpacked."""
    with open_regular(path) as stream:
        packed = stream.read(2) == GZIP_MAGIC
        stream.seek(0)
        if not packed:
            return stream.read(most)
        with gzip.GzipFile(fileobj=stream) as unpacked:
            return unpacked.read(most)


def _written(value: Any, level: int) -> Iterable[str]:
    """JSON of plain data, spread over lines as far as OPEN_LEVELS says."""
    if level < OPEN_LEVELS and isinstance(value, dict) and value:
        yield from _spread("{}", ((f"{_flat(key)}: ", item) for key, item in value.items()), level)
    elif level < OPEN_LEVELS and isinstance(value, list) and any(isinstance(item, dict) for item in value):
        yield from _spread("[]", (("", item) for item in value), level)
    else:
        yield _flat(value)


def _spread(brackets: str, items: Iterable[tuple[str, Any]], level: int) -> Iterable[str]:
    yield brackets[0]
    indent = "\n" + "  " * (level + 1)
    for number, (name, item) in enumerate(items):
        yield f"{',' if number else ''}{indent}{name}"
        yield from _written(item, level + 1)
    yield "\n" + "  " * level + brackets[1]


def _flat(value: Any) -> str:
    """On one line, with a space after commas and colons."""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
