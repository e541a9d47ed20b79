"""What the verbs share: arguments, progress, output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.errors import InputError

if TYPE_CHECKING:
    from traceanalyzer.ingest.sources import Source
    from traceanalyzer.result.document import Result

Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="Trace files (.json, .json.gz, .sqlite), folders of them (one file a rank), or one store. "
        "The format is told from the content.",
        show_default=False,
    ),
]


class Severity(StrEnum):
    """Severities that a gate can ask for."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


FailOn = Annotated[
    Severity | None,
    typer.Option(help="Exit with 1 when a finding has at least this severity.", show_default="never"),
]


def check_output(output: Path, inputs: list[Path]) -> None:
    """Refuse to write over an input. Raises InputError."""
    if str(output) != "-" and any(p.exists() and output.exists() and p.samefile(output) for p in inputs):
        raise InputError(f"{output}: is an input; inputs are never written to, choose another output")


def write(content: bytes, output: Path) -> None:
    """Write to a file, whole or not at all, or to stdout for `-`. Raises InputError when the file cannot be written."""
    if str(output) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False) as aside:
            aside.write(content)
        place = Path(aside.name)
        place.chmod(0o666 & ~_umask())
        place.replace(output)
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def exit_code(result: Result, fail_on: Severity | None) -> int:
    """3 when nothing could be judged, 1 when a finding is severe enough, else 0."""
    from traceanalyzer.analysis import can_judge
    from traceanalyzer.result.document import SEVERITIES

    if not can_judge(result):
        return 3
    if fail_on is None:
        return 0
    least = SEVERITIES.index(fail_on.value)
    return int(any(SEVERITIES.index(f.severity) >= least for f in result.findings))


@contextmanager
def reading() -> Iterator[Callable[[Source], Callable[[int], None]] | None]:
    """A progress bar over the bytes of each input, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def start(source: Source) -> Callable[[int], None]:
            task = bar.add_task(source.path.name, total=source.size)
            return lambda count: bar.advance(task, count)

        yield start
