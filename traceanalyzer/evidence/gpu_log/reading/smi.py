"""`nvidia-smi --query-gpu=… --format=csv`: any columns in any order, with units in the header, in the values or in neither."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import csv

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log.reading.fields import field_of
from traceanalyzer.evidence.gpu_log.reading.rows import Column, Notes, Samples, identities, measures_of
from traceanalyzer.evidence.gpu_log.reading.times import NONE, times_of_texts
from traceanalyzer.ingest.bytes.source import Source

TOOL = "nvidia-smi"
_PARTED = b"\x1f"
_LEAST_KNOWN = 2
_RECORD = (
    "nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu,memory.used,memory.total,power.draw,enforced.power.limit,"
    "temperature.gpu,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active,pcie.link.gen.current,pcie.link.gen.max,"
    "pcie.link.width.current,pcie.link.width.max --format=csv -lms 100"
)
_BARE_ROW = re.compile(
    rb"\s*\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?\s*[,;]|[^\n{]{0,200}?[,;]\s*\d+ (?:%|MiB|MHz)\s*[,;\r\n]"
)


def header_of(line: bytes) -> list[str] | None:
    """The columns that a line names, where it is the header of such a log; None for any other line."""
    text = line.decode("utf-8", "replace").strip().lstrip("\ufeff")
    if not text or len(text) > 20_000 or text[0] in "{[#<":
        return None
    names = [name.strip().strip('"') for name in re.split("[,;\t]", text)]
    if len(names) < 2 or any(re.fullmatch(r"[-+.\d\s]*", name) for name in names):
        return None
    if any(name.lower() in ("pid", "process_name") for name in names):
        return None  # a list of processes (--query-compute-apps)
    found = [field_of(name) for name in names]
    measures = {one.what for one in found if one and one.what not in ("time", "gpu", "uuid", "bus", "model", "host")}
    dotted = any(re.search(r"[a-z]\.[a-z]|\[(?:%|MiB|W|MHz)\]", name) for name in names)
    return names if measures and (dotted or len(measures) >= _LEAST_KNOWN) else None


def is_bare(head: bytes) -> bool:
    """Whether it begins as such a log does that has no header (noheader)."""
    return _BARE_ROW.match(head) is not None and any(unit in head[:2000] for unit in (b" %", b" MiB", b" W", b" MHz"))


def without_header(source: Source) -> InputError:
    return InputError(
        f"{source.path}: rows of nvidia-smi without a header (noheader), so that nothing says what its columns are; "
        f"put the line of names before them, as without noheader nvidia-smi writes it, or record again: {_RECORD}"
    )


def read_smi(source: Source, content: bytes, notes: Notes) -> Iterator[Samples]:
    """One piece for each header: a log that was begun again has several. Raises InputError where no sample can be read."""
    for header, rows in _pieces(content):
        names = header_of(header)
        assert names is not None
        yield from _piece(source, names, header, rows, notes)


def _pieces(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each header and what follows up to the next one."""
    first = content.split(b"\n", 1)[0]
    start = first.lstrip(b"\xef\xbb\xbf").strip()[:12]
    places = [0] + [found.start() + 1 for found in re.finditer(rb"\n" + re.escape(start), content)]
    heads = [
        at
        for at in places
        if header_of(content[at : content.find(b"\n", at) if b"\n" in content[at : at + 20_000] else None][:20_000])
    ]
    for at, end in zip(heads, [*heads[1:], len(content)], strict=True):
        line = content.find(b"\n", at, end)
        if line >= 0:
            yield content[at:line], content[line + 1 : end]


def _piece(source: Source, names: list[str], header: bytes, rows: bytes, notes: Notes) -> Iterator[Samples]:
    cut = not rows.endswith((b"\n", b"\r"))
    # nvidia-smi parts columns by a comma and a space, so that a decimal comma stays within its value.
    spaced = b", " in header
    delimiter = "\t" if b"\t" in header else ";" if b";" in header else ","
    if spaced and delimiter == ",":
        rows, delimiter = rows.replace(b", ", _PARTED), _PARTED.decode()
    names = _distinct(names)
    if cut and rows.strip():
        last = rows[rows.rfind(b"\n") + 1 :]
        if last.count(delimiter.encode()) < len(names) - 1 or not last.strip():
            rows = rows[: rows.rfind(b"\n") + 1]
            notes.cut = True
        elif len(last.split(delimiter.encode())[-1].strip()) < 1:
            notes.cut = True
    if not rows.strip():
        return
    table = _table(source, names, rows, delimiter, notes)
    timed = [name for name in names if (told := field_of(name)) and told.what == "time"]
    if not timed:
        raise InputError(
            f"{source.path}: its samples have no times, so that nothing can be told over time; "
            f"add timestamp to --query-gpu: {_RECORD}"
        )
    best = min(timed, key=lambda name: field_of(name).rank)  # type: ignore[union-attr]
    stamp = table[best].cast(pa.string()).combine_chunks()
    time, clock = times_of_texts(stamp)
    good = time != NONE
    bad = int((~good).sum())
    if bad:
        notes.bad_line(stamp[int(np.flatnonzero(~good)[0])].as_py() or "", bad)
        table, time = table.filter(pa.array(good)), time[good]
    if not table.num_rows:
        return
    columns = {name: table[name].combine_chunks() for name in names if name not in timed}
    measured = measures_of(
        [Column(name, values) for name, values in columns.items() if not _is_who(name)], notes, delimiter == ";"
    )
    if not measured:
        raise InputError(f"{source.path}: nothing of what it logs is known here; record again: {_RECORD}")
    yield Samples(TOOL, clock, time, identities(columns), measured)


def _is_who(name: str) -> bool:
    told = field_of(name)
    return told is not None and told.what in ("gpu", "uuid", "bus", "model", "host")


def _distinct(names: list[str]) -> list[str]:
    return [name if name not in names[:at] else f"{name} ({at})" for at, name in enumerate(names)]


def _table(source: Source, names: list[str], rows: bytes, delimiter: str, notes: Notes) -> pa.Table:
    def skip(row: csv.InvalidRow) -> str:
        notes.bad_line(row.text or "")
        return "skip"

    try:
        return csv.read_csv(
            pa.py_buffer(rows),
            csv.ReadOptions(column_names=names, block_size=4 << 20),
            csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip),
            csv.ConvertOptions(
                column_types={
                    name: pa.dictionary(pa.int32(), pa.string()) if not _is_time(name) else pa.string()
                    for name in names
                },
                strings_can_be_null=False,
            ),
        ).unify_dictionaries()
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InputError(f"{source.path}: cannot be read as a table ({str(error).splitlines()[0][:120]})") from error


def _is_time(name: str) -> bool:
    told = field_of(name)
    return told is not None and told.what == "time"
