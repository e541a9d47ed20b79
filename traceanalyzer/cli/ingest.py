"""`traceanalyzer ingest`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.common import Inputs, MaxSize, reading, size_limit


def ingest(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="Folder to write the tables to.")],
    max_size: MaxSize = None,
) -> None:
    """Read traces into a store: Parquet event tables and a manifest.

    A store is read much faster than the traces, by every other command and by pandas, polars, duckdb or Dask. One that
    is there already is replaced; another folder or file is not.

    Example: traceanalyzer ingest trace.json.gz -o trace.store
    """
    from traceanalyzer.ingest.arrow import use_little_memory
    from traceanalyzer.ingest.pipeline import ingest_to_store
    from traceanalyzer.model.store import check_place
    from traceanalyzer.version import VERSION

    check_place(output, inputs)
    limit = size_limit(max_size)
    use_little_memory()
    with reading() as progress:
        count, rows = ingest_to_store(inputs, output, VERSION, progress, limit)
    files = "1 file" if count == 1 else f"{count} files"
    typer.echo(f"{output}: {rows:,} rows from {files}", err=True)
