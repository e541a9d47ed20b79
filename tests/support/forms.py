"""Other forms of one trace: what may be written differently and means the same.

Forms of a Kineto trace come in three layers: of its document, of how its numbers and texts are spelled, and of the bytes of the file.
Forms of an export change how its tables are laid out. Each takes a `random.Random`.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import random
import sqlite3
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Event = dict[str, Any]
Document = dict[str, Any]
Chance = random.Random

# --- the document ---


def _shuffled(found: dict[str, Any], chance: Chance) -> dict[str, Any]:
    return dict(chance.sample(list(found.items()), len(found)))


def shuffle_events(document: Document, chance: Chance) -> None:
    chance.shuffle(document["traceEvents"])


def shuffle_keys(document: Document, chance: Chance) -> None:
    """Keys of events, of arguments and of the whole; the events may stand before what is said about them."""
    document["traceEvents"] = [
        _shuffled({k: _shuffled(v, chance) if isinstance(v, dict) else v for k, v in event.items()}, chance)
        for event in document["traceEvents"]
    ]
    mixed = _shuffled(document, chance)
    document.clear()
    document.update(mixed)


def _names(document: Document) -> tuple[list[Event], list[Event]]:
    events = document["traceEvents"]
    return [e for e in events if e["ph"] == "M"], [e for e in events if e["ph"] != "M"]


def names_last(document: Document, chance: Chance) -> None:
    names, events = _names(document)
    document["traceEvents"] = events + names


def names_first_and_twice(document: Document, chance: Chance) -> None:
    names, events = _names(document)
    document["traceEvents"] = names + events + copy.deepcopy(names)


def begin_and_end(document: Document, chance: Chance) -> None:
    """Two events for one, on each track on which the events nest."""
    tracks: defaultdict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            tracks[str(event["pid"]), str(event.get("tid"))].append(event)
    found: list[Event] = [event for event in document["traceEvents"] if event["ph"] != "X"]
    for events in tracks.values():
        if not _nest(events):
            found += events
            continue
        for event in events:
            end = Decimal(str(event["ts"])) + Decimal(str(event["dur"]))
            shared = {k: event[k] for k in ("pid", "tid", "name", "cat") if k in event}
            found.append({k: v for k, v in event.items() if k != "dur"} | {"ph": "B"})
            found.append({**shared, "ph": "E", "ts": end})
    document["traceEvents"] = found


def _nest(events: list[Event]) -> bool:
    """Whether the events lie in one another or apart, and no two of a name and a category overlap, so that each end has one begin."""
    open_: list[tuple[Decimal, Event]] = []
    spans = [(Decimal(str(e["ts"])), Decimal(str(e["ts"])) + Decimal(str(e.get("dur", 0))), e) for e in events]
    for start, end, event in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if "dur" not in event or start == end or (open_ and open_[-1][0] < end):
            return False
        if any(other.get("name") == event.get("name") for _, other in open_):
            return False
        open_.append((end, event))
    return True


def ids_as_text(document: Document, chance: Chance) -> None:
    for event in document["traceEvents"]:
        for key in ("pid", "tid"):
            if isinstance(event.get(key), int):
                event[key] = str(event[key])
        args = event.get("args", {})
        for key in ("device", "stream", "correlation", "External id", "bytes", "context"):
            if isinstance(args.get(key), int):
                args[key] = str(args[key])


def streams_by_name(document: Document, chance: Chance) -> None:
    """Streams as Kineto once wrote them in place of a thread's number."""
    for event in document["traceEvents"]:
        if "stream" in event.get("args", {}) and isinstance(event.get("tid"), int):
            event["tid"] = f"stream {event['tid']}"


def other_correlations(document: Document, chance: Chance) -> None:
    step, first = chance.choice((1, 3, 1 << 20)), chance.randrange(1 << 31)
    for event in document["traceEvents"]:
        args = event.get("args", {})
        if args.get("correlation"):
            args["correlation"] = first + step * int(args["correlation"])
        if event["ph"] in "sf":
            event["id"] = first + step * int(event["id"])


def other_external_ids(document: Document, chance: Chance) -> None:
    first = chance.randrange(1 << 31)
    for event in document["traceEvents"]:
        for key in ("External id", "external id"):
            if event.get("args", {}).get(key):
                event["args"][key] = first + 2 * int(event["args"][key])


def more_keys(document: Document, chance: Chance) -> None:
    """Keys and arguments that nobody reads."""
    for event in document["traceEvents"]:
        if chance.random() < 0.5:
            event |= {"cname": "good", "sf": 7, "bind_id": "0x1", "tts": 5.5, "stack": ["a", {"b": []}]}
        if chance.random() < 0.5:
            event.setdefault("args", {}).update(
                {"Ev Idx": 3, "note": 'a "b" \\ ü', "list": [1, {"x": None}], "none": None}
            )
    document |= {"displayTimeUnit": "ns", "traceName": "x.json", "otherData": {"a": [1]}, "record_shapes": 0}


def more_events(document: Document, chance: Chance) -> None:
    """Phases that show no time of their own, arrows, marks, and a process without anything."""
    at = document["traceEvents"][0].get("ts", 0)
    more = [
        {"ph": phase, "name": "x", "pid": 4242, "tid": 4243, "ts": at, "id": 1, "cat": "y"} for phase in "NDOPRvVcin"
    ]
    more += [{"ph": "M", "name": name, "pid": 4242, "tid": 0, "args": {"name": "empty", "labels": "CPU"}} for name in
             ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")]  # fmt: skip
    for event in more:
        document["traceEvents"].insert(chance.randrange(len(document["traceEvents"])), event)


def no_arrows(document: Document, chance: Chance) -> None:
    document["traceEvents"] = [event for event in document["traceEvents"] if event["ph"] not in "stf"]


def older_categories(document: Document, chance: Chance) -> None:
    """The categories of 2021."""
    older = {
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
        "cuda_runtime": "Runtime",
        "cpu_op": "Operator",
    }
    for event in document["traceEvents"]:
        if event.get("cat") in older:
            event["cat"] = older[event["cat"]]


def another_spelling_of_categories(document: Document, chance: Chance) -> None:
    for event in document["traceEvents"]:
        if "_" in event.get("cat", ""):
            event["cat"] = event["cat"].upper()


def unknown_categories(document: Document, chance: Chance) -> None:
    """Copies and memsets under names of a later profiler, and its ranges around the work of a stream."""
    ranges = []
    for event in document["traceEvents"]:
        if event.get("cat") in ("gpu_memcpy", "gpu_memset") and event["ph"] == "X":
            event["cat"] = event["cat"].replace("gpu", "device") + "_async"
        if event.get("cat") == "kernel" and event["ph"] == "X":
            ranges.append(
                {**{k: event[k] for k in ("ph", "pid", "tid", "ts", "dur")}, "cat": "gpu_phase", "name": "phase"}
            )
    document["traceEvents"] += ranges


def display_in(document: Document, chance: Chance) -> None:
    document["displayTimeUnit"] = chance.choice(("ms", "ns"))


DOCUMENT_FORMS: tuple[Callable[[Document, Chance], None], ...] = (
    shuffle_events, shuffle_keys, names_last, names_first_and_twice, begin_and_end, ids_as_text, streams_by_name, other_correlations,
    other_external_ids, more_keys, more_events, no_arrows, older_categories, another_spelling_of_categories, unknown_categories,
    display_in,
)  # fmt: skip


# --- spelling ---


class Number(float):
    """A number with a spelling of its own; the encoder of json writes what `__repr__` says."""

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def _spelled(text: str, how: str) -> Any:
    exact = Decimal(text)
    sign, digits, exponent = exact.normalize().as_tuple()
    assert isinstance(exponent, int)
    match how:
        case "text":
            return text
        case "exponent":
            number = "".join(map(str, digits))
            return Number(f"{'-' if sign else ''}{number[0]}.{number[1:] or 0}e{exponent + len(number) - 1:+d}")
        case "zeros":
            return Number(f"{exact:f}" + ("000" if "." in f"{exact:f}" else ".000"))
        case _:
            return Number(f"{exact.normalize():f}")


SPELLINGS = ("plain", "text", "exponent", "zeros")
LAYOUTS = ("compact", "indented", "wide", "escaped", "crlf")
_SPARE = {"wide": (" ,\t", "  :\n "), "compact": (",", ":")}


def written(document: Document, numbers: str, layout: str, chance: Chance) -> str:
    """The document as text; `numbers` says how times are spelled, `layout` all else."""
    for event in document["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = _spelled(str(event[key]), numbers)
    # Only the encoder in Python asks numbers for their spelling.
    encoder = _Encoder(
        indent=2 if layout in ("indented", "crlf") else None,
        separators=_SPARE.get(layout),
        ensure_ascii=layout != "wide",
    )
    text = encoder.encode(document)
    if layout == "crlf":
        return text.replace("\n", "\r\n")
    return _escaped(text, chance) if layout == "escaped" else text


class _Encoder(json.JSONEncoder):
    def iterencode(self, o: Any, _one_shot: bool = False) -> Any:
        make = json.encoder._make_iterencode  # type: ignore[attr-defined]
        text = json.encoder.encode_basestring_ascii if self.ensure_ascii else json.encoder.encode_basestring
        indent = " " * self.indent if isinstance(self.indent, int) else self.indent
        return make(
            {},
            self.default,
            text,
            indent,
            repr,
            self.key_separator,
            self.item_separator,
            self.sort_keys,
            self.skipkeys,
            False,
        )(o, 0)


def _escaped(text: str, chance: Chance) -> str:
    """Letters and slashes of strings as escapes, now and then, also in keys."""
    found, inside, at = [], False, 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            length = 6 if text[at + 1] == "u" else 2
            found.append(text[at : at + length])
            at += length
            continue
        if letter == '"':
            inside = not inside
        elif inside and chance.random() < 0.2 and letter.isascii():
            letter = "\\/" if letter == "/" else f"\\u{ord(letter):04x}"
        found.append(letter)
        at += 1
    return "".join(found)


# --- bytes ---


def zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/trace", data)
    return packed.getvalue()


def tarred(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("run/trace")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def in_frames(data: bytes) -> bytes:
    """Several members, as pigz and pzstd write them."""
    return b"".join(zstd.compress(data[at : at + 30_000]) for at in range(0, len(data), 30_000))


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": in_frames,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zip": zipped,
    "tar": tarred,
    "twice": lambda data: gzip.compress(lzma.compress(data)),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be")


# --- exports ---

Edit = Callable[[sqlite3.Connection, Chance], None]


def _tables(connection: sqlite3.Connection) -> list[tuple[str, list[tuple[str, str]]]]:
    names = [
        name for (name,) in connection.execute("select name from sqlite_master where type = 'table' order by name")
    ]
    return [
        (name, [(row[1], row[2]) for row in connection.execute(f'pragma table_info("{name}")')])
        for name in names
        if not name.startswith("sqlite_")
    ]


def _again(
    connection: sqlite3.Connection, name: str, columns: list[tuple[str, str]], chance: Chance, suffix: str = ""
) -> None:
    """Make a table anew with its columns in this order, its rows in any, and no index."""
    listed = ", ".join(f'"{column}"' for column, _ in columns)
    rows = connection.execute(f'select {listed} from "{name}"').fetchall()
    chance.shuffle(rows)
    connection.execute(f'drop table "{name}"')
    declared = ", ".join(f'"{column}" {type_}' for column, type_ in columns)
    connection.execute(f'create table "{name}{suffix}" ({declared})')
    connection.executemany(f'insert into "{name}{suffix}" values ({", ".join("?" * len(columns))})', rows)


def shuffle_rows_and_columns(connection: sqlite3.Connection, chance: Chance) -> None:
    for name, columns in _tables(connection):
        _again(connection, name, chance.sample(columns, len(columns)), chance)


def untyped_columns(connection: sqlite3.Connection, chance: Chance) -> None:
    for name, columns in _tables(connection):
        _again(connection, name, [(column, "") for column, _ in columns], chance)


def other_case(connection: sqlite3.Connection, chance: Chance) -> None:
    for name, columns in _tables(connection):
        _again(connection, name, [(column.upper(), type_) for column, type_ in columns], chance)


def second_versions(connection: sqlite3.Connection, chance: Chance) -> None:
    for name, columns in _tables(connection):
        if name.startswith("CUPTI_"):
            _again(connection, name, columns, chance, "_V2")


def more_tables(connection: sqlite3.Connection, chance: Chance) -> None:
    connection.execute("create table LATER_THINGS (start integer, end integer, what text)")
    connection.execute("insert into LATER_THINGS values (1, 2, 'a')")
    for name, _ in _tables(connection):
        connection.execute(f'alter table "{name}" add column "later" text default "x"')


def indexed(connection: sqlite3.Connection, chance: Chance) -> None:
    for number, (name, columns) in enumerate(_tables(connection)):
        connection.execute(f'create index "i{number}" on "{name}" ("{columns[0][0]}" desc)')


TABLE_FORMS: tuple[Edit, ...] = (
    shuffle_rows_and_columns, untyped_columns, other_case, second_versions, more_tables, indexed,
)  # fmt: skip
PAGES = (512, 4096, 65536)


def exported(path: Path, edits: tuple[Edit, ...], page: int, encoding: str, wal: bool, chance: Chance) -> None:
    """Write the export at `path` anew in this form."""
    source = sqlite3.connect(path)
    source.text_factory = lambda text: text.decode(errors="surrogateescape")
    for edit in edits:
        edit(source, chance)
    source.commit()
    tables = [
        (name, columns, source.execute(f'select * from "{name}"').fetchall()) for name, columns in _tables(source)
    ]
    indices = [
        sql for (sql,) in source.execute("select sql from sqlite_master where type = 'index' and sql is not null")
    ]
    source.close()
    path.unlink()
    target = sqlite3.connect(path)
    target.execute(f"pragma encoding = '{encoding}'")
    target.execute(f"pragma page_size = {page}")
    for name, columns, rows in tables:
        declared = ", ".join(f'"{column}" {type_}' for column, type_ in columns)
        target.execute(f'create table "{name}" ({declared})')
        target.executemany(f'insert into "{name}" values ({", ".join("?" * len(columns))})', rows)
    for sql in indices:
        target.execute(sql)
    target.commit()
    target.execute(f"pragma journal_mode = {'wal' if wal else 'delete'}")
    target.close()
