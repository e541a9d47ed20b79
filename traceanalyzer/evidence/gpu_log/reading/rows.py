"""Samples of a log as columns, whatever it is written in: fields by what they measure, in one unit, with the GPU each is of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.evidence.gpu_log.reading.fields import (
    KNOWN_REASONS,
    MEASURES,
    POWER_CAP,
    SW_THERMAL,
    Field,
    field_of,
)
from traceanalyzer.evidence.gpu_log.reading.values import decimal_comma, factor_of, number_of, usual_factor
from traceanalyzer.evidence.gpu_log.tables import SAMPLES
from traceanalyzer.model.trace import Clock
from traceanalyzer.records import dataclass

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_MOST_TEXT = 200
_NOBODY = re.compile(r"|-|n/a|\[n/a\]|\[not supported\]|none|null|(?:gpu-)?[0-]+-[0-]*")
"""What stands where nothing is told, ids of nothing but zeros among it."""
_ROWS = 1 << 16
COLUMNS = {field.name: field.type for field in SAMPLES.schema}
_LOOKED_AT = 2_000
"""Different values of one column that tell how numbers are written."""


@dataclass(frozen=True)
class Column:
    """One field of a log: its name, and its values as texts (dictionary-encoded) or numbers."""

    name: str
    values: pa.DictionaryArray | Floats


@dataclass
class Samples:
    """Rows of a log. `who` is index, uuid, bus, model and host by name, `measured` the measures that some row has."""

    tool: str
    clock: Clock
    time: Ints
    who: dict[str, pa.DictionaryArray] = field(default_factory=dict)
    measured: dict[str, Floats] = field(default_factory=dict)
    timed: bool = True

    def __len__(self) -> int:
        return len(self.time)


@dataclass
class Notes:
    """What was met while reading: lines that could not be read, values that were no numbers, and fields that are not known."""

    lines: int = 0
    values: int = 0
    example: str | None = None
    value: str | None = None
    unknown: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    rows: int = 0
    cut: bool = False

    def bad_line(self, text: str, count: int = 1) -> None:
        self.lines += count
        self.example = self.example or text[:80]


def texts_of(values: Sequence[Any]) -> pa.DictionaryArray:
    """Values as texts; None and what is no scalar are null."""
    plain = [
        str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None for value in values
    ]
    return pa.array(plain, pa.string()).dictionary_encode()


def measures_of(columns: Sequence[Column], notes: Notes, semicolons: bool = False) -> dict[str, Floats]:
    """What the columns measure, in the units of `tables.SAMPLES`; NaN where nothing was measured."""
    chosen: dict[str, tuple[Field, Column]] = {}
    reasons: list[tuple[int, Column]] = []
    for column in columns:
        found = field_of(column.name)
        if found is None:
            notes.unknown.add(column.name[:_MOST_TEXT])
        elif found.what == "reason":
            reasons.append((found.bit, column))
        elif found.what not in chosen or found.rank < chosen[found.what][0].rank:
            chosen[found.what] = (found, column)
    texts = [
        value
        for _, column in (*chosen.values(), *((None, column) for _, column in reasons))
        if isinstance(column.values, pa.DictionaryArray)
        for value in column.values.dictionary.slice(0, _LOOKED_AT).to_pylist()
    ]
    comma = decimal_comma((text for text in texts if text), semicolons)
    wanted = (*MEASURES, "memory_free", "power_held", "heat_held")
    measured = {what: _values(what, *chosen[what], comma, notes) for what in wanted if what in chosen}
    return {
        name: values
        for name, values in _put_together(measured, reasons, comma, notes).items()
        if np.isfinite(values).any()
    }


def _put_together(
    measured: dict[str, Floats], reasons: Sequence[tuple[int, Column]], comma: bool, notes: Notes
) -> dict[str, Floats]:
    """With what follows from two of them: all memory from what is used and free, and bits of reasons from columns of each."""
    free = measured.pop("memory_free", None)
    if free is not None and "memory_used" in measured and "memory_total" not in measured:
        measured["memory_total"] = measured["memory_used"] + free
    flags = [(bit, _values("reason", None, column, comma, notes)) for bit, column in reasons]
    for bit, name in ((POWER_CAP, "power_held"), (SW_THERMAL, "heat_held")):
        if name in measured:
            flags.append((bit, measured.pop(name)))
    if flags and "reasons" not in measured:
        known = np.zeros(len(flags[0][1]), bool)
        bits = np.zeros(len(known))
        for bit, values in flags:
            known |= np.isfinite(values)
            # Only columns that set different bits are here, so that adding is joining.
            bits += np.where(np.nan_to_num(values) > 0, float(bit), 0.0)
        measured["reasons"] = np.where(known, bits, np.nan)
    if "reasons" in measured:
        bits = measured["reasons"]
        known = np.isfinite(bits) & (bits >= 0) & (bits < 2**53)
        measured["reasons"] = np.where(known, np.where(known, bits, 0).astype(np.int64) & KNOWN_REASONS, np.nan)
    return measured


def _values(what: str, told: Field | None, column: Column, comma: bool, notes: Notes) -> Floats:
    """The values of one column in the unit of the measure."""
    stated = told.unit if told else None
    if isinstance(column.values, pa.DictionaryArray):
        read = [
            number_of(text, comma) if text is not None else (np.nan, None, True)
            for text in column.values.dictionary.to_pylist()
        ]
        numbers = np.array([one[0] for one in read] + [np.nan])
        units = [one[1] for one in read]
        good = np.array([one[2] for one in read] + [True])
        codes = column.values.indices.fill_null(len(read)).to_numpy(zero_copy_only=False)
        notes.values += int((~good[codes]).sum())
        if not all(good):
            notes.value = notes.value or column.values.dictionary[int(np.flatnonzero(~good)[0])].as_py()[:80]
    else:
        numbers, units, codes = column.values, [], None
    known = numbers[np.isfinite(numbers)]
    highest = float(np.abs(known).max()) if len(known) else 0.0
    usual = factor_of(what, stated)
    if usual is None:
        usual = usual_factor(
            what, highest, bool((known == np.floor(known)).all()), column.name.startswith("DCGM_FI_PROF_")
        )
    if units and any(units):
        own = [factor_of(what, unit) if unit else None for unit in units]
        scaled = numbers * np.array([usual if one is None else one for one in own] + [1.0])
    else:
        scaled = numbers * usual
    # A share above all there is, a negative power or size: nothing that was measured.
    scaled = np.where(np.isfinite(scaled) & (scaled >= 0), scaled, np.nan)
    if what in ("utilization", "memory_utilization", "sm_active", "tensor_active", "dram_active"):
        scaled = np.where(scaled <= 1.5, np.minimum(scaled, 1.0), np.nan)
    return scaled if codes is None else scaled[codes]


def tables_of(samples: Samples, log: str) -> Iterator[pa.Table]:
    """The rows as tables without the rank and without what nothing was measured of, GPU by GPU in the order of time."""
    who = {name: samples.who[name] for name in ("uuid", "bus", "model") if name in samples.who}
    index = samples.who.get("gpu")
    gpu = None if index is None else _index(index)
    # Rows are gathered batch by batch, since all of them in another order would be there twice.
    codes = [
        values.indices.fill_null(-1).to_numpy()
        for values in (who.get("bus"), who.get("uuid"), index)
        if values is not None
    ]
    order = np.lexsort((samples.time, *codes))
    for at in range(0, len(order), _ROWS):
        rows = order[at : at + _ROWS]
        taken = pa.array(rows)
        columns: dict[str, Any] = {
            "log": _repeated(log, len(rows)),
            "tool": _repeated(samples.tool, len(rows)),
            "timed": pa.repeat(samples.timed, len(rows)),
            "time_ns": pa.array(samples.time[rows]),
            **{name: values.take(taken) for name, values in who.items()},
            **{name: _measured(name, values[rows]) for name, values in samples.measured.items()},
        }
        yield pa.table(columns if gpu is None else {**columns, "gpu": gpu.take(taken)})


def _measured(name: str, values: Floats) -> pa.Array:
    return pa.array(values.astype(COLUMNS[name].to_pandas_dtype()), mask=~np.isfinite(values))


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _index(texts: pa.DictionaryArray) -> pa.Array:
    """GPU numbers: the digits that end what a log calls its GPU ("0", "GPU 0", "nvidia0", "cuda:1")."""
    numbers = [_digits(text) for text in texts.dictionary.to_pylist()]
    return pa.array(numbers, pa.int32()).take(texts.indices)


def _digits(text: str | None) -> int | None:
    end = (text or "").strip().removesuffix(".0")
    digits = end[len(end.rstrip("0123456789")) :]
    return int(digits) if 0 < len(digits) <= 4 else None


def identities(columns: Mapping[str, pa.DictionaryArray]) -> dict[str, pa.DictionaryArray]:
    """Of columns by name those that say whose GPU it is, by what they say."""
    found: dict[str, tuple[int, pa.DictionaryArray]] = {}
    for name, values in columns.items():
        told = field_of(name)
        if (
            told
            and told.what in ("gpu", "uuid", "bus", "model", "host")
            and (told.what not in found or told.rank < found[told.what][0])
        ):
            found[told.what] = (told.rank, values)
    return {what: _short(values) for what, (_, values) in found.items()}


def _short(values: pa.DictionaryArray) -> pa.DictionaryArray:
    """Texts trimmed and cut; words for none are null."""
    texts = [
        None if text is None or _NOBODY.fullmatch(text.strip().lower()) else text.strip()[:_MOST_TEXT]
        for text in values.dictionary.to_pylist()
    ]
    return pa.array(texts, pa.string()).take(values.indices).dictionary_encode()
