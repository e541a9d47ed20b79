"""The cells of a table as columns: times in ns, sizes in bytes, numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.operator_tables.tables import AVERAGES
from traceanalyzer.ingest.rows import classify
from traceanalyzer.records import dataclass

_HOST = "CPU"
_PLAIN = {
    **{"name": "name", "# of calls": "calls", "number of calls": "calls"},
    **{"input shapes": "shapes", "source location": "place"},
}
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {unit: float(1 << 10 * power) for power, unit in enumerate(("b", "kb", "mb", "gb", "tb"))}
_FLOPS = re.compile(r"total ([kmgtpe]?)flops")
_THOUSANDS = {letter: 1000.0**power for power, letter in enumerate(("", "k", "m", "g", "t", "p", "e"))}
_MOST = float(1 << 53)
"""More ns or bytes are a wrong number; sums of what is less stay in 64 bits."""
_TIME = r"^(?P<number>-?[0-9]+(?:\.[0-9]+)?) ?(?P<unit>ns|us|µs|μs|ms|s)$"
_SIZE = r"^(?P<number>-?[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[bB]|[kmgtKMGT][bB])$"
_STEP = "ProfilerStep"
_OTHER_LAUNCH = re.compile(r"(?:ur|ze|mu|aclrt|cnrt|cn)[A-Z]\w*Launch")
"""Calls of other makers' runtimes that launch work."""


@dataclass(frozen=True)
class Averages:
    """The rows of tables, as declared but for rank and file; how many `cells` could not be read, and the first of them."""

    rows: pa.Table
    cells: int
    first: str | None


def averages_of(columns: Sequence[str], rows: Sequence[Sequence[str]], tables: Sequence[int]) -> Averages:
    """The rows of tables that have the same columns, one after another; `tables` are the numbers of the table of each row."""
    read = _Cells()
    data: dict[str, pa.Array] = {"table": pa.array(tables, pa.int32())}
    for at, name in enumerate(columns):
        column, _, scale = _meaning(name)
        if column is not None and column not in data:
            data[column] = read.column(column, pa.array([row[at] for row in rows], pa.string()), scale)
    for one in AVERAGES.schema:
        if one.name not in data and one.name not in ("rank", "file", "position", "on_device", "class"):
            data[one.name] = pa.nulls(len(rows), one.type)
    data["position"] = pa.array(_positions(tables), pa.int64())
    data["on_device"] = _on_device(data)
    data["class"] = _classes(data["name"], data["on_device"], tables)
    names = [one.name for one in AVERAGES.schema if one.name in data]
    return Averages(pa.table({name: data[name] for name in names}), read.lost, read.first)


def device_of(columns: Sequence[str]) -> str | None:
    """What the device is called whose times are in a table."""
    return next((device for column, device, _ in map(_meaning, columns) if column and device), None)


def time_of(text: str) -> int | None:
    """A time as the totals below a table are written, in ns; None for anything else."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]+)?) ?(ns|us|µs|μs|ms|s)", text)
    return round(float(found[1]) * _TIMES[found[2]]) if found and float(found[1]) * _TIMES[found[2]] < _MOST else None


def _positions(tables: Sequence[int]) -> npt.NDArray[np.int64]:
    """The place of each row in its table."""
    table = np.asarray(tables, np.int64)
    starts = np.flatnonzero(np.concatenate(([True], np.diff(table) != 0))) if len(table) else np.zeros(0, np.int64)
    return np.arange(len(table)) - np.repeat(starts, np.diff([*starts, len(table)]))


def _meaning(column: str) -> tuple[str | None, str | None, float]:
    """Column of the rows, what its device is called where it is one of a device's, and what a number in it stands for."""
    name = column.lower().strip()
    if found := _FLOPS.fullmatch(name):
        return "flops", None, _THOUSANDS[found[1]]
    if found := re.fullmatch(r"(self )?(\w+) mem", name):
        whose = "host" if found[2].upper() == _HOST else "device"
        return f"{'self_' if found[1] else ''}{whose}_memory", None, 1.0
    # Before PyTorch 1.7 what an operator took itself was called "Self CPU total".
    if found := re.fullmatch(r"self (\w+)(?: total)?", name):
        return _of(found[1], "self_host", "self_device")
    if found := re.fullmatch(r"(\w+) total", name):
        return _of(found[1], "host_total", "device_total")
    return _PLAIN.get(name), None, 1.0


def _of(word: str, host: str, device: str) -> tuple[str, str | None, float]:
    return (host, None, 1.0) if word.upper() == _HOST else (device, word.upper(), 1.0)


class _Cells:
    """Texts to values of a column; what is no value of it becomes null and is counted."""

    def __init__(self) -> None:
        self.lost = 0
        self.first: str | None = None

    def column(self, name: str, texts: pa.Array, scale: float) -> pa.Array:
        if name in ("name", "place"):
            return pc.if_else(pc.equal(texts, ""), None if name == "place" else "", texts).dictionary_encode()
        if name == "shapes":
            return texts
        if name == "calls":
            return self._kept(texts, _whole(texts))
        if name == "flops":
            absent = pc.is_in(texts, pa.array(["--", "", "0"]))
            return self._kept(texts, _decimal(texts, scale), absent)
        pattern, units = (_SIZE, _SIZES) if name.endswith("memory") else (_TIME, _TIMES)
        parts = pc.extract_regex(texts, pattern)
        unit = pc.utf8_lower(pc.struct_field(parts, "unit"))
        factor = pa.array(list(units.values()), pa.float64()).take(pc.index_in(unit, pa.array(list(units))))
        number = pc.multiply(pc.struct_field(parts, "number").cast(pa.float64()), factor)
        return self._kept(texts, _int64(number))

    def _kept(self, texts: pa.Array, values: pa.Array, absent: pa.Array | None = None) -> pa.Array:
        wrong = pc.is_null(values)
        if absent is not None:
            wrong = pc.and_(wrong, pc.invert(absent))
        if lost := pc.sum(wrong).as_py() or 0:
            self.lost += lost
            self.first = self.first or str(texts.filter(wrong)[0].as_py())[:80]
        return values


def _whole(texts: pa.Array) -> pa.Array:
    good = pc.match_substring_regex(texts, r"^[0-9]{1,15}$")
    return pc.if_else(good, texts, None).cast(pa.int64())


def _decimal(texts: pa.Array, scale: float) -> pa.Array:
    good = pc.match_substring_regex(texts, r"^[0-9]{1,30}(?:\.[0-9]+)?$")
    return pc.multiply(pc.if_else(good, texts, None).cast(pa.float64()), scale)


def _int64(numbers: pa.Array) -> pa.Array:
    fits = pc.less(pc.abs(numbers), _MOST)
    return pc.round(pc.if_else(fits, numbers, None)).cast(pa.int64())


def _on_device(data: dict[str, pa.Array]) -> pa.Array:
    """Rows that take time of the device and none of the host: the device's own events, which PyTorch lists from 1.8 on."""
    host = [pc.fill_null(data[name], 0) for name in ("self_host", "host_total")]
    device = pc.fill_null(data["self_device"], 0)
    none = pc.and_(pc.equal(host[0], 0), pc.equal(host[1], 0))
    known = pc.or_(pc.is_valid(data["self_host"]), pc.is_valid(data["host_total"]))
    return pc.and_(pc.and_(none, known), pc.greater(device, 0))


def _classes(names: pa.DictionaryArray, on_device: pa.Array, tables: Sequence[int]) -> pa.DictionaryArray:
    """What each row is. An annotation of the program is listed twice in its table: of the host, and of the device, where it spans what
    it started."""
    device = on_device.to_pylist()
    told = names.to_pylist()
    host = {(table, name) for table, name, there in zip(tables, told, device, strict=True) if not there}
    known: dict[tuple[str, bool], str] = {}
    found = []
    for table, name, there in zip(tables, told, device, strict=True):
        if there and (table, name) in host:
            found.append("range")
            continue
        if (name, there) not in known:
            known[name, there] = _of_device(name) if there else _of_host(name)
        found.append(known[name, there])
    return pa.array(found, pa.string()).dictionary_encode()


def _of_device(name: str) -> str:
    if name.lower().startswith("memcpy"):
        return "memcpy"
    if name.lower().startswith("memset"):
        return "memset"
    if name.startswith((_STEP, "nccl:")) or classify.is_annotation(name):
        return "range"
    return "communication" if classify.kernel_class(name) == classify.COMMUNICATION else "kernel"


def _of_host(name: str) -> str:
    if name.startswith(_STEP):
        return "step"
    found = classify.api_class(name)
    if found == "other" and _OTHER_LAUNCH.match(name):
        return "launch"
    return found if found != "other" else "operator"
