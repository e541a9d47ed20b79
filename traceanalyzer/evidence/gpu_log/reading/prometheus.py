"""Metrics in Prometheus' text format, as DCGM's and nvidia-smi's exporters give them: one scrape, or many one after another.

A series' name and labels are read by `prometheus_client`'s parser, once for each different one; values and times, of which there are
many, all at once. What does not look like `name{labels} value time` goes through that parser as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import csv

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log.reading.fields import field_of
from traceanalyzer.evidence.gpu_log.reading.rows import Column, Notes, Samples, identities, measures_of, texts_of
from traceanalyzer.evidence.gpu_log.reading.times import NONE, times_of_numbers
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.model.trace import Clock
from traceanalyzer.records import dataclass

DCGM, TOOL = "DCGM", "Prometheus"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_LINE = (
    r"^(?P<series>[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?)[ \t]+(?P<value>[-+0-9.eE]+|[-+]?Inf|NaN)"
    r"(?:[ \t]+(?P<time>-?\d+(?:\.\d+)?))?[ \t]*$"
)
_NAME = re.compile(rb"\s*(?:# (?:HELP|TYPE) )?((?:DCGM_FI|nvidia_smi|nvidia_gpu)_\w+)")
_PART = re.compile(r"gpu_i_id|mig|nvlink|lane|link", re.IGNORECASE)
_SECOND = 1_000_000_000
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Points:
    """Values of series: which series each is of, and when; `series` are name and labels."""

    series: Sequence[tuple[str, Labels]]
    of: Ints
    time: Ints
    value: Floats
    clock: Clock
    timed: bool = True


def is_text(head: bytes) -> bool:
    """Whether it begins as text of Prometheus does, with metrics of GPUs that are known."""
    start = head.lstrip(b"\xef\xbb\xbf \r\n")
    lines = [line for line in start.split(b"\n")[:-1] or [start] if line.strip()]
    if not lines or not re.match(
        rb"# (?:HELP|TYPE|UNIT|EOF)|[a-zA-Z_:][\w:]*(?:\{[^\n]*\})?[ \t]+[-+0-9.IN]", lines[0]
    ):
        return False
    return any((found := _NAME.match(line)) is not None and known(found[1].decode()) for line in lines)


@cache
def known(metric: str) -> bool:
    """Whether a metric of this name measures what is read here."""
    told = field_of(metric)
    return told is not None and told.what not in ("time", "gpu", "uuid", "bus", "model", "host")


def read_text(source: Source, content: bytes, notes: Notes) -> Iterator[Samples]:
    """Raises InputError where no metric of a GPU is among them."""
    content = content.lstrip(b"\xef\xbb\xbf")
    if not content.endswith(b"\n"):
        # In half a line a number may end too soon, and then nothing tells.
        notes.cut = True
        content = content[: content.rfind(b"\n") + 1]
    lines = _lines(source, content)
    scrape = _scrapes(lines)
    parts = pc.extract_regex(lines, _LINE)
    good = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    series = pc.struct_field(parts, "series").filter(pa.array(good)).dictionary_encode()
    value = _numbers(pc.struct_field(parts, "value").filter(pa.array(good)))
    time = _numbers(pc.struct_field(parts, "time").filter(pa.array(good)))
    of, scrape_of = series.indices.to_numpy(zero_copy_only=False).astype(np.int64), scrape[good]
    told = [_labels(text, notes) for text in series.dictionary.to_pylist()]
    others = lines.filter(pa.array(~good))
    others = others.filter(pc.invert(pc.match_substring_regex(others, r"^\s*(#|$)")))
    for text in others.to_pylist():
        more = _parsed(text)
        if more is None:
            notes.bad_line(text)
            continue
        for name, labels, number, when in more:
            told.append((name, labels))
            of, value = np.append(of, len(told) - 1), np.append(value, number)
            time = np.append(time, np.nan if when is None else when)
            scrape_of = np.append(scrape_of, 0)
    yield from samples_of(source, _points(told, of, value, time, scrape_of), notes)


def _lines(source: Source, content: bytes) -> pa.Array:
    if not content.strip():
        return pa.array([], pa.string())
    try:
        return csv.read_csv(
            pa.py_buffer(content),
            csv.ReadOptions(column_names=["line"], block_size=8 << 20),
            csv.ParseOptions(delimiter="\x1f", quote_char=False),
            csv.ConvertOptions(column_types={"line": pa.string()}, strings_can_be_null=False),
        )["line"].combine_chunks()
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InputError(
            f"{source.path}: cannot be read as text of Prometheus ({str(error).splitlines()[0][:120]})"
        ) from error


def _scrapes(lines: pa.Array) -> Ints:
    """The number of the scrape that each line is of: one begins where the first line of the file, or its metric, comes again."""
    if not len(lines):
        return np.zeros(0, np.int64)
    first = next((text for text in lines.slice(0, 50).to_pylist() if text and text.startswith("# TYPE")), None)
    first = first or next(
        (text.rpartition(" ")[0] for text in lines.slice(0, 50).to_pylist() if text and not text.startswith("#")), ""
    )
    begins = pc.starts_with(lines, first).to_numpy(zero_copy_only=False)
    numbers: Ints = np.maximum(np.cumsum(begins) - 1, 0)
    return numbers


def _numbers(texts: pa.Array) -> Floats:
    plain = pc.replace_substring(pc.replace_substring(texts, "Inf", "inf"), "NaN", "nan")
    good = pc.match_substring_regex(plain, r"^[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|nan)$")
    bare = pc.replace_substring_regex(plain, r"^\+", "")
    found: Floats = pc.if_else(good, bare, None).cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return found


def _labels(text: str, notes: Notes) -> tuple[str, Labels]:
    more = _parsed(f"{text} 0")
    if more is None:
        notes.bad_line(text)
        return "", {}
    return more[0][0], more[0][1]


def _parsed(line: str) -> list[tuple[str, Labels, float, float | None]] | None:
    """What the parser says of a line: name, labels, value and time in seconds of each sample. None where it cannot read it."""
    try:
        found = [one for family in text_string_to_metric_families(line + "\n") for one in family.samples]
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        return None
    return [
        (one.name, one.labels, float(one.value), None if one.timestamp is None else float(one.timestamp))
        for one in found
    ] or None


def _points(told: Sequence[tuple[str, Labels]], of: Ints, value: Floats, time: Floats, scrape: Ints) -> Points:
    known_times = time[np.isfinite(time)]
    if len(known_times):
        at, clock = times_of_numbers(time)
        return Points(told, of, at, value, clock)
    return Points(told, of, scrape * _SECOND, value, "none", timed=False)


def samples_of(source: Source, points: Points, notes: Notes) -> Iterator[Samples]:
    """Rows with all that was measured of one GPU at one moment. Raises InputError without a metric that is known."""
    wanted = np.array([known(name) and not _is_of_a_part(labels) for name, labels in points.series] + [False])
    notes.unknown |= {name for name, _ in points.series if name and not known(name)}
    keep = wanted[points.of] & (points.time != NONE)
    if not keep.any():
        raise InputError(
            f"{source.path}: none of its metrics is one of a GPU's clocks, power, temperature, memory or use"
        )
    of, time, value = points.of[keep], points.time[keep], points.value[keep]
    gpus: dict[tuple[str, ...], int] = {}
    gpu_of = np.array([gpus.setdefault(_gpu(labels), len(gpus)) for _, labels in points.series], np.int64)
    metrics = list(dict.fromkeys(name for name, _ in points.series if known(name)))
    metric_of = np.array([metrics.index(name) if name in metrics else -1 for name, _ in points.series], np.int64)
    moments, moment = np.unique(time, return_inverse=True)
    key = gpu_of[of] * len(moments) + moment
    rows, row = np.unique(key, return_inverse=True)
    columns = []
    for number, name in enumerate(metrics):
        mine = metric_of[of] == number
        values = np.full(len(rows), np.nan)
        values[row[mine]] = value[mine]
        columns.append(Column(name, values))
    if not points.timed:
        notes.said.append(
            "its samples have no times, so that they are only known to follow each other; write the time of each scrape "
            "behind its values, or ask Prometheus for a range"
        )
    of_gpu, names = rows // len(moments), list(gpus)
    who = {
        name: texts_of([gpu[place] or None for gpu in names]).take(pa.array(of_gpu)).dictionary_encode()
        for place, name in enumerate(_WHO)
    }
    tool = DCGM if any(name.startswith("DCGM_") for name in metrics) else TOOL
    measured = {name: _held(values, of_gpu) for name, values in measures_of(columns, notes).items()}
    yield Samples(tool, points.clock, moments[rows % len(moments)], identities(who), measured, points.timed)


_WHO = ("gpu", "uuid", "bus", "model", "host")


@cache
def _who(label: str) -> str | None:
    told = field_of(label)
    return told.what if told and told.what in _WHO else None


def _gpu(labels: Labels) -> tuple[str, ...]:
    found: dict[str, tuple[int, str]] = {}
    for label, text in labels.items():
        what = _who(label)
        rank = field_of(label).rank if what else 0  # type: ignore[union-attr]
        if what and (what not in found or rank < found[what][0]):
            found[what] = (rank, text)
    return tuple(found[name][1] if name in found else "" for name in _WHO)


def _is_of_a_part(labels: Labels) -> bool:
    """Whether a series is of a slice of a GPU (MIG) or of one link of several, and not of all of it."""
    return any(_PART.fullmatch(label) and text for label, text in labels.items())


def _held(values: Floats, gpu: Ints) -> Floats:
    """Values with holes closed by the last one before of the same GPU, where fewer than half are missing: fields that an exporter
    asks for less often than others, or a moment later."""
    missing = ~np.isfinite(values)
    if not missing.any() or missing.mean() > 0.9:
        return values
    at = np.where(missing, -1, np.arange(len(values)))
    first = np.flatnonzero(np.diff(gpu, prepend=-1))
    base = np.repeat(first, np.diff(np.append(first, len(gpu))))
    last = np.maximum.accumulate(at)
    within = (last >= base) & (np.arange(len(values)) - last <= 4)
    return np.where(missing & within, values[np.maximum(last, 0)], values)
