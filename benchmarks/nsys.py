"""Ingest of large Nsight Systems exports, beside checking it and reading the same columns with adbc into Parquet.

python -m benchmarks.nsys                       the figures (BENCH_NSYS_MB sets the size of the first export)
python -m benchmarks.nsys baseline FILE FOLDER  the baseline alone
"""

from __future__ import annotations

import lzma
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Cost, measure, ratio

FIXTURES = Path("tests/fixtures/nsys")
STORM, OPERATORS = FIXTURES / "launch_storm.slow.sqlite", FIXTURES / "nvtx_dataloader.slow.sqlite"
FOUR = FIXTURES / "comm_not_overlapped.slow.4gpu.sqlite.xz"
MEGABYTES = int(os.environ.get("BENCH_NSYS_MB", "250"))
TIMES, IDS = ("start", "end", "timestamp"), ("correlationId",)


def nsys(folder: Path) -> None:
    """Print what ingest costs for exports of launches and of NVTX operators, and how memory grows with the size."""
    storm = _compare(folder, STORM, MEGABYTES)
    _compare(folder, OPERATORS, MEGABYTES)
    _compare(folder, FOUR, MEGABYTES)
    large = _compare(folder, STORM, 4 * MEGABYTES)
    ratio("peak memory of the large export to 350 MiB", large.memory / 350, 1.0)
    ratio("peak memory of the large export to the small one", large.memory / storm.memory, 1.15)


def _compare(folder: Path, fixture: Path, megabytes: int) -> Cost:
    export, store = folder / "export.sqlite", folder / "store"
    rows = tile(fixture, export, megabytes)
    print(f"Nsight Systems, {fixture.name}, {export.stat().st_size / 1e6:,.0f} MB, {rows:,} rows")
    python = (sys.executable, "-m")
    read = measure("adbc into Parquet", *python, "benchmarks.nsys", "baseline", str(export), str(folder))
    ingest = measure("ingest", *python, "traceanalyzer", "ingest", str(export), "-o", str(store))
    ratio("CPU of ingest to adbc into Parquet", ingest.cpu / read.cpu, 1.2)
    export.unlink()
    return ingest


def tile(source: Path, target: Path, megabytes: int) -> int:
    """Repeat the events of an export until it has about `megabytes`; return their number.

    Each copy is shifted in time and has correlation ids and operator ids of its own.
    """
    with lzma.open(source) if source.suffix == ".xz" else source.open("rb") as stream, target.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    connection = sqlite3.connect(target)
    connection.execute("pragma journal_mode=off")
    connection.execute("pragma synchronous=off")
    columns = _event_columns(connection)
    rows = {table: _one(connection, f"select count(*) from {table}") for table in columns}
    length = _one(connection, "select max(duration) from ANALYSIS_DETAILS")
    ids = 1 + max(_one(connection, f"select max(correlationId) from {t}") or 0 for t in columns if IDS[0] in columns[t])
    copies, size, wanted = 1, target.stat().st_size, megabytes * 1_000_000
    while size < wanted:
        more = max(min(copies, round(copies * (wanted / size - 1))), 1)
        for table, names in columns.items():
            moved = ", ".join(_moved(name, copies, length, ids) for name in names)
            connection.execute(
                f"insert into {table} select {moved} from {table} order by rowid limit {rows[table] * more}"
            )
        connection.commit()
        copies, size = copies + more, target.stat().st_size
    connection.close()
    return copies * sum(rows.values())


def _event_columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The tables that have times, and their columns."""
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    found = {table: [row[1] for row in connection.execute(f"pragma table_info({table})")] for table in tables}
    return {table: names for table, names in found.items() if table != "DIAGNOSTIC_EVENT" and set(TIMES) & set(names)}


def _moved(column: str, copies: int, length: int, ids: int) -> str:
    """What a column holds in a copy of the first `copies` copies."""
    if column in TIMES:
        return f'"{column}" + {copies * length}'
    if column in IDS:
        return f'iif("{column}" > 0, "{column}" + {copies * ids}, "{column}")'
    return f"replace(text, 'op_id = ', 'op_id = {copies}')" if column == "text" else f'"{column}"'


def _one(connection: sqlite3.Connection, sql: str) -> int:
    return connection.execute(sql).fetchone()[0]  # type: ignore[no-any-return]


def baseline(export: Path, folder: Path) -> None:
    """Read the columns that the importer reads, as they lie, and write each table to Parquet."""
    import pyarrow.parquet as pq

    from traceanalyzer.ingest.formats.nsys.importer import STREAMED
    from traceanalyzer.ingest.formats.nsys.sqlite import selects
    from traceanalyzer.ingest.formats.nsys.sqlite.database import open_database
    from traceanalyzer.ingest.registry import find_sources

    (source,) = find_sources([export])
    with open_database(source) as database:
        for table in STREAMED:
            name = selects.find(database, table)
            if name is None:
                continue
            chosen = ", ".join(dict.fromkeys(selects.plain(database, table, name).values()))
            writer = None
            for batch in database.batches(f'select {chosen} from "{name}"'):
                writer = writer or pq.ParquetWriter(folder / f"{name}.parquet", batch.schema)
                writer.write_batch(batch)
            if writer:
                writer.close()


def main() -> None:
    if sys.argv[1:2] == ["baseline"]:
        baseline(*(Path(given) for given in sys.argv[2:4]))
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_TMP")) as folder:
        nsys(Path(folder))


if __name__ == "__main__":
    main()
