"""`nvidia-smi dmon`: columns under a header that comes again and again, of which the second line has the units."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log.reading.fields import field_of
from traceanalyzer.evidence.gpu_log.reading.rows import Column, Ints, Notes, Samples, measures_of
from traceanalyzer.evidence.gpu_log.reading.times import NONE, times_of_texts
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.model.trace import Clock

TOOL = "nvidia-smi dmon"
_HEADER = re.compile(rb"#\s*(?:Date[\s,]+)?(?:Time[\s,]+)?gpu[\s,]", re.IGNORECASE)
_UNITS = {"w": "W", "c": "C", "%": "%", "mhz": "MHz", "mb": "MiB", "mb/s": "MB/s"}
_DAY = 86_400_000_000_000
_SECOND = 1_000_000_000


def is_dmon(head: bytes) -> bool:
    return _HEADER.match(head.lstrip(b"\xef\xbb\xbf \r\n")) is not None


def read_dmon(source: Source, content: bytes, notes: Notes) -> Iterator[Samples]:
    """All of it, or a piece for each different header. Raises InputError where a header names no columns that are known."""
    content = content.lstrip(b"\xef\xbb\xbf \r\n").replace(b"\r", b"")
    header: list[str] | None = None
    units: list[str] = []
    rows: list[bytes] = []
    # Blocks of rows lie between lines that begin with #; so there are few of them to go through.
    for block in re.split(rb"^(?=#)", content, flags=re.MULTILINE):
        if not block.startswith(b"#"):
            continue
        line, _, rest = block.partition(b"\n")
        if _HEADER.match(line):
            names = _words(line)
            if header is not None and names != header:
                yield from _samples(source, header, units, rows, notes)
                rows = []
            if names != header:
                header, units = names, []
        elif header is not None and not units:
            units = _words(line)
        if rest.strip():
            rows.append(rest)
    if header is not None:
        yield from _samples(source, header, units, rows, notes)


def _words(line: bytes) -> list[str]:
    return re.split(r"[\s,]+", line.decode("latin-1").lstrip("# \t").strip())


def _samples(source: Source, header: list[str], units: list[str], rows: list[bytes], notes: Notes) -> Iterator[Samples]:
    text = b"".join(rows)
    if not text.endswith(b"\n") and text.strip():
        last = text[text.rfind(b"\n") + 1 :]
        if len(_words(last)) < len(header):
            text, notes.cut = text[: text.rfind(b"\n") + 1], True
    if not text.strip():
        return
    plain = _parted(text)

    def skip(row: csv.InvalidRow) -> str:
        notes.bad_line(row.text or "")
        return "skip"

    names = [f"{name}#{at}" for at, name in enumerate(header)]
    try:
        table = csv.read_csv(
            pa.py_buffer(plain),
            csv.ReadOptions(column_names=names, block_size=4 << 20),
            csv.ParseOptions(delimiter=" ", invalid_row_handler=skip),
            csv.ConvertOptions(
                column_types={name: pa.dictionary(pa.int32(), pa.string()) for name in names}, strings_can_be_null=False
            ),
        ).unify_dictionaries()
    except pa.ArrowInvalid as error:
        raise InputError(f"{source.path}: cannot be read as columns ({str(error).splitlines()[0][:120]})") from error
    bare = {name.lower(): names[at] for at, name in enumerate(header)}
    gpu = table[bare["gpu"]].combine_chunks()
    good = pc.match_substring_regex(gpu.cast(pa.string()), r"^\d{1,4}$").to_numpy(zero_copy_only=False)
    time, clock, timed = _times(table, bare, gpu)
    good &= time != NONE
    if not good.all():
        notes.bad_line(str(gpu[int(np.flatnonzero(~good)[0])].as_py()), int((~good).sum()))
        table, time = table.filter(pa.array(good)), time[good]
        gpu = table[bare["gpu"]].combine_chunks()
    if not table.num_rows:
        return
    columns = []
    for at, name in enumerate(header):
        if name.lower() in ("gpu", "date", "time"):
            continue
        unit = _UNITS.get(units[at].lower()) if at < len(units) else None
        told = field_of(name)
        shown = f"{name} [{unit}]" if unit and told and told.what not in ("power_held", "heat_held") else name
        columns.append(Column(shown, table[names[at]].combine_chunks()))
    if not timed and not notes.said:
        notes.said.append(
            "its samples have no times: they are taken as one second apart, as dmon samples unless it is told otherwise; "
            "nvidia-smi dmon -o DT writes times"
        )
    yield Samples(TOOL, clock, time, {"gpu": gpu}, measures_of(columns, notes), timed)


def _parted(text: bytes) -> bytes:
    """The rows with one space between values and none at their ends: so many replacements cost less than a pattern."""
    plain = text.translate(bytes.maketrans(b"\t,", b"  "))
    while b"  " in plain:
        plain = plain.replace(b"  ", b" ")
    return plain.replace(b"\n ", b"\n").replace(b" \n", b"\n").lstrip(b" ")


def _times(table: pa.Table, bare: dict[str, str], gpu: pa.DictionaryArray) -> tuple[Ints, Clock, bool]:
    if "time" in bare:
        time = pc.utf8_trim_whitespace(table[bare["time"]].combine_chunks().cast(pa.string()))
        if "date" in bare:
            date = table[bare["date"]].combine_chunks().cast(pa.string())
            dashed = pc.replace_substring_regex(date, r"^(\d{4})[-/]?(\d{2})[-/]?(\d{2})$", r"\1-\2-\3")
            return (*times_of_texts(pc.binary_join_element_wise(dashed, time, " ")), True)
        # Times of a day that is not told: midnight is where they fall back.
        found, _ = times_of_texts(pc.binary_join_element_wise(pa.repeat("2000-01-01", len(time)), time, " "))
        known = np.where(found == NONE, np.maximum.accumulate(found), found)
        days = np.concatenate(([0], np.cumsum(np.diff(known) < -_DAY // 2)))
        return np.where(found == NONE, NONE, known - (known[0] if len(known) else 0) + days * _DAY), "none", True
    # The n-th row of a GPU is its n-th sample.
    codes = gpu.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    runs = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1 if len(order) else 0))
    number = np.arange(len(codes)) - np.repeat(runs, np.diff(np.append(runs, len(codes))))
    found = np.empty(len(codes), np.int64)
    found[order] = number * _SECOND
    return found, "none", False
