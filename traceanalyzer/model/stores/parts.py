"""What one input gave to a store: its part, told apart by content, and the tables of a part as Parquet files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from traceanalyzer.columns.lean import WORTH, lean
from traceanalyzer.columns.spill import spilled_column
from traceanalyzer.files import open_regular
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.model.stores.stretches import in_stretches
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.records import dataclass

if TYPE_CHECKING:
    import pyarrow.parquet as pq  # takes long to import, and who writes no store needs none of it

_HASH_BYTES = 1 << 20
_UNSEALED = b"0" * 64
_MAGIC = b"PAR1"
_ARROW_TYPES = b"ARROW:schema"
"""Under this key a Parquet file keeps the Arrow types that its columns had."""


@dataclass(frozen=True)
class PartFile:
    """One table of a part: its rows, and the size and digest of its file."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """What one input gave, apart from the rank, which is known only beside the other inputs.

    `key` stands for the content of the input and for what read it: a part of the same key need not be read again. `sha256` is that of
    the input, `format` its importer's and `facts` what the input says of itself; `tables` has the tables that got rows.
    """

    key: str
    sha256: str
    format: str
    facts: dict[str, Any]
    tables: dict[str, PartFile]


@dataclass(frozen=True)
class FinishedPart:
    """A part as its shelf describes it."""

    part: Part
    digest: str = ""

    def encoded(self) -> bytes:
        """As the file holds it."""
        return seal(self)

    @staticmethod
    def read(content: bytes, key: str) -> Part:
        """The part of that key. Raises ValueError and MsgspecError for a file that is not as it was written."""
        found = msgspec.json.decode(content, type=FinishedPart)
        if not is_sealed(content, found.digest) or found.part.key != key:
            raise ValueError(f"{key} is not the part that was written")
        return found.part


def key_of(*what: object) -> str:
    """A name for something that consists of `what`, for JSON to write down."""
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def seal(document: Any) -> bytes:
    """A document whose last field is `digest`, as its file holds it: JSON with the SHA-256 of the file, taken before it was put in.

    The same document gives the same bytes.
    """
    plain = {**msgspec.to_builtins(document), "digest": _UNSEALED.decode()}
    content = msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"
    head, _, end = content.rpartition(_UNSEALED)
    return head + hashlib.sha256(content).hexdigest().encode() + end


def is_sealed(content: bytes, digest: str) -> bool:
    """Whether every byte of a file is as `seal` wrote it."""
    if len(digest) != len(_UNSEALED):
        return False
    head, _, end = content.rpartition(digest.encode())
    return hashlib.sha256(head + _UNSEALED + end).hexdigest() == digest


def write_tables(folder: Path, tables: Iterable[tuple[str, Iterable[pa.Table]]]) -> dict[str, PartFile]:
    """Write tables as `folder`/NAME.parquet, each in the order given; return those that have rows. One that comes again takes the place
    of what came before.

    Raises OSError, and KeyError for a table that nobody registered.
    """
    specs, written = table_specs(), {}
    # Compressing does not hold the interpreter: it runs beside whatever makes the next rows.
    with ThreadPoolExecutor(1) as beside:
        for name, blocks in tables:
            path = folder / f"{name}.parquet"
            if rows := _write(path, specs[name], blocks, beside):
                written[name] = PartFile(rows, path.stat().st_size, digest(path))
    return written


def digest(path: Path) -> str:
    """The SHA-256 of a file's content. Raises OSError."""
    value = hashlib.sha256()
    with open_regular(path) as stream:
        while block := stream.read(_HASH_BYTES):
            value.update(block)
    return value.hexdigest()


def read_table(content: bytes, schema: pa.Schema, use_threads: bool) -> pa.Table:
    """The columns of a file that `write_tables` made, in this version or an earlier one, of the types that `schema` gives them where it
    has them. Each is in one piece, and held once where it says the same of every row.

    Raises pa.ArrowException and OSError for a file that is damaged.
    """
    import pyarrow.parquet as pq

    buffer = pa.BufferReader(content)
    file = pq.ParquetFile(buffer)
    types = file.schema_arrow
    if any(pa.types.is_fixed_size_list(field.type) for field in types):
        # Earlier versions wrote these as what they are. Of those that are null nothing older than pyarrow 26 makes such a list again:
        # without the note on types it reads a list.
        names = [field.name for field in types if pa.types.is_dictionary(field.type)]
        file = pq.ParquetFile(buffer, metadata=_untyped(content), read_dictionary=names)
    if file.metadata.num_rows < WORTH:
        return _typed(file.read(use_threads=use_threads).unify_dictionaries().combine_chunks(), schema)
    # A column at a time, so that the wide ones that say nothing are never all there.
    columns = {}
    for name in types.names:
        kind = schema.field(name).type if name in schema.names else types.field(name).type
        column = in_stretches(file, name, kind)
        if column is None:
            one = file.read([name], use_threads=use_threads).unify_dictionaries().combine_chunks()
            column = spilled_column(lean(_typed(one, schema)[name]))
        columns[name] = column
    return pa.table(columns)


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    wanted = pa.schema([schema.field(f.name) if f.name in schema.names else f for f in table.schema])
    return table if table.schema.equals(wanted) else table.cast(wanted)


def _untyped(content: bytes) -> pq.FileMetaData:
    """What the end of a Parquet file says of it, except for the Arrow types of its columns."""
    import pyarrow.parquet as pq

    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-size - 8 :].replace(_ARROW_TYPES, _ARROW_TYPES.lower())
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer))


def _write(path: Path, spec: TableSpec, blocks: Iterable[pa.Table], beside: Executor) -> int:
    """Write one table, or no file when it has no rows; return their number. The column `rank` is left to the name of a folder."""
    import pyarrow.parquet as pq

    file: pa.OSFile | None = None
    waiting: Future[None] | None = None
    rows = 0
    for block in blocks:
        if not block.num_rows:
            continue
        if waiting is not None:
            waiting.result()
        if file is None:
            schema = _stored(spec.schema.remove(spec.schema.get_field_index("rank")))
            # Opened here: given a path, pyarrow takes as long to find its file system as to write a small table.
            file = pa.OSFile(os.fsencode(path), "wb")
            writer = pq.ParquetWriter(file, schema, **_parquet_options(spec))
        waiting = beside.submit(writer.write_table, _as_stored(block.select(schema.names), schema))
        rows += block.num_rows
    if file is not None and waiting is not None:
        waiting.result()
        writer.close()
        file.close()
    return rows


def _stored(schema: pa.Schema) -> pa.Schema:
    """The schema of a file. Lists of a fixed size are written as lists: pyarrow before 26 does not write, or not read, null ones."""
    types = (pa.list_(f.type.value_type) if pa.types.is_fixed_size_list(f.type) else f.type for f in schema)
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, types, strict=True)])


def _as_stored(block: pa.Table, schema: pa.Schema) -> pa.Table:
    for at, field in enumerate(schema):
        if pa.types.is_fixed_size_list(block.schema.field(at).type):
            block = block.set_column(at, field, pa.chunked_array(map(_as_lists, block[at].chunks), field.type))
    return block


def _as_lists(array: pa.FixedSizeListArray) -> pa.ListArray:
    """The same lists, of which the null ones are empty: a cast leaves values in these, and pyarrow 17 does not write that."""
    size = array.type.list_size
    if not array.null_count:
        return pa.ListArray.from_arrays(
            pa.array(np.arange(0, (len(array) + 1) * size, size, dtype=np.int32)), array.flatten()
        )
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(valid * np.int32(size), dtype=np.int32)])
    # Arrow's own `flatten` takes a step for each stretch of valid lists.
    values = array.values.slice(array.offset * size, len(array) * size).filter(pa.array(np.repeat(valid, size)))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=array.is_null())


def _parquet_options(spec: TableSpec) -> dict[str, Any]:
    """Times and ids grow slowly, so their differences are small. Dictionaries suit names, and statistics (to skip row groups) times."""
    names = [c.name for c in spec.columns if pa.types.is_dictionary(c.type) or pa.types.is_string(c.type)]
    growing = [c.name for c in spec.columns if c.type in (pa.int64(), pa.int32()) and c.name != "rank"]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "write_statistics": [c.name for c in spec.columns if c.name.endswith("_ns")] or False,
        "use_dictionary": names,
        "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
    }
