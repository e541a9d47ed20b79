"""`traceanalyzer ingest`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import Inputs, reading


def ingest(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="Folder to write the tables to.")],
) -> None:
    """Read traces into a store: Parquet event tables and a manifest.

    A store is read much faster than the traces, by every other command and by pandas, polars, duckdb or Dask. One that
    is there already is replaced; another folder or file is not.

    Example: traceanalyzer ingest trace.json.gz -o trace.store
    """
    from traceanalyzer.analysis import load
    from traceanalyzer.model.store import check_place, write_store
    from traceanalyzer.version import VERSION

    check_place(output, inputs)
    with reading() as progress:
        trace = load(inputs, progress)
    write_store(trace, output, VERSION)
    files = "1 file" if len(trace.inputs) == 1 else f"{len(trace.inputs)} files"
    events = sum(table.num_rows for table in trace.tables.values())
    typer.echo(f"{output}: {events:,} rows from {files}", err=True)
