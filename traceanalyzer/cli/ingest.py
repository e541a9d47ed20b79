"""`traceanalyzer ingest`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from traceanalyzer.cli.command import Command
from traceanalyzer.cli.common import Inputs, Jobs, MaxSize, Scheduler, counting, reading, size_limit
from traceanalyzer.cli.outputs import Outputs
from traceanalyzer.terminal import tell


def ingest(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="STORE", help="Folder or URL to write the tables to.")
    ],
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
) -> None:
    """Read traces into a store: Parquet event tables and a manifest.

    A store is read much faster than the traces, by every other command and by pandas, polars, duckdb or Dask. One that
    is there already is replaced; another folder or file is not, nor a store that holds anything else.

    Name all traces of a job at once. What was read before is not read again, as long as the file has the same content: after an
    interrupt, a failure or with one rank more, give the same command again.

    Traces and stores may be behind URLs that fsspec knows (s3://, gs://, ...), with traceanalyzer[cluster] installed.

    Example: traceanalyzer ingest trace.json.gz -o trace.store

    Example: traceanalyzer ingest s3://bucket/run/ -o s3://bucket/run.store --scheduler tcp://host:8786
    """
    from traceanalyzer.arrow import use_little_memory
    from traceanalyzer.ingest.ahead import readers
    from traceanalyzer.ingest.storing import find_inputs, write_store
    from traceanalyzer.urls import shown_place
    from traceanalyzer.version import VERSION
    from traceanalyzer.workers import jobs_for, workers

    place = Outputs(inputs).store(output) or output
    limit = size_limit(max_size)
    use_little_memory()
    found = find_inputs(inputs, limit)
    copies = readers(found, jobs) if scheduler is None else 1
    jobs = jobs_for((one.size for one in found), jobs, scheduler) if copies == 1 else 1
    with ExitStack() as stack:
        executor = stack.enter_context(workers(jobs, scheduler))
        alone = executor is None and copies == 1
        progress = stack.enter_context(reading()) if alone else None
        done = None if alone else stack.enter_context(counting("files", len(found)))
        stored = write_store(found, place, VERSION, progress, executor, done, copies)
    files = "1 file" if stored.files == 1 else f"{stored.files} files"
    there = f" ({stored.there_already} of them were there already)" if stored.there_already else ""
    tell(f"{shown_place(output)}: {stored.rows:,} rows from {files}{there}")


COMMAND = Command("ingest", ingest, order=80)
