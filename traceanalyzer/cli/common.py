"""What the verbs share: arguments, progress, output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial, wraps
from math import isnan
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Annotated, ParamSpec

import typer

from traceanalyzer.cli.process.streams import ReaderGoneError
from traceanalyzer.errors import ChangedError, InputError
from traceanalyzer.extensions import EVIDENCE, FORMATS, kind_names
from traceanalyzer.files import replacing, resolve_place
from traceanalyzer.render.output import formats_help, output_names
from traceanalyzer.terminal import line, tell
from traceanalyzer.vocabulary import levels

if TYPE_CHECKING:
    from traceanalyzer.config import Config
    from traceanalyzer.ingest.bytes.source import Source
    from traceanalyzer.result.document import Result

# So often a bar is drawn again.
_REFRESH_S = 0.1

Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="Traces (JSON, SQLite exports of Nsight Systems or its reports; packed ones too), folders or archives of them "
        "(one file a rank), - for standard input, or one store. The format is told from the content. "
        f"Formats: {', '.join(kind_names(FORMATS))}; evidence beside traces: {', '.join(kind_names(EVIDENCE))}.",
        show_default=False,
    ),
]


class Severity(StrEnum):
    """Severities that a gate can ask for."""

    INFO = levels.INFO
    LOW = levels.LOW
    MEDIUM = levels.MEDIUM
    HIGH = levels.HIGH


class Format(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"


def refuse_nan(value: float) -> float:
    """A number for an option; ranges of some versions of typer let NaN pass."""
    if isnan(value):
        raise typer.BadParameter("nan is no number.")
    return value


def choice(name: str, values: Sequence[str]) -> type[StrEnum]:
    """An option's choice among what is found when the program starts."""
    made: type[StrEnum] = StrEnum(name, {value: value for value in values})  # type: ignore[misc]
    return made


if TYPE_CHECKING:
    ResultFormat = str
else:
    ResultFormat = choice("ResultFormat", output_names("result"))
"""How a result can be written: the modules of `render.outputs.result`, and what other packages offer."""
AS_TEXT = ResultFormat("text")
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="text for people, json for scripts.")]
ResultFormatOption = Annotated[
    ResultFormat,
    typer.Option(
        "--format",
        "-f",
        help=formats_help("result"),
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is stdout.")]
FailOn = Annotated[
    Severity | None,
    typer.Option(help="Exit with 1 when a finding has at least this severity.", show_default="never"),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="RULE.NAME=VALUE",
        help="Use another threshold, such as LCH001.short=50us; may be repeated. `rules show` lists them.",
        show_default=False,
    ),
]
RuleFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        metavar="PATH",
        help="Run your own rules too: a rule file or a folder of them; may be repeated.",
        show_default=False,
    ),
]
Disabled = Annotated[
    list[str] | None,
    typer.Option(
        "--disable", metavar="RULE", help="Do not run a rule, such as KRN005; may be repeated.", show_default=False
    ),
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        help="Read files up to this size, unpacked, such as 200GiB.",
        show_default="64GiB, and 2,000 times the packed size",
    ),
]

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Read files, and judge ranks, in so many processes.",
        show_default="one a CPU and a file, where that pays",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let the workers of a Dask scheduler do the work, such as tcp://host:8786, or those of a Dask cluster of --jobs "
        "processes on this machine: local. They need traceanalyzer too, and must see the files and the store under the "
        "same names: on a shared disk, or behind URLs such as s3://bucket/run/.",
        show_default="this machine alone",
    ),
]

Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Keep the tables of the traces there, as ingest does: a folder or a URL. What was read before is not read again.",
        show_default="memory, or a temporary folder for large jobs",
    ),
]

Offsets = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        metavar="FILE=DURATION",
        help="Add this to the times of a file of evidence to have them on the clock of its trace, such as power.log=-1.5s; may be "
        "repeated.",
        show_default=False,
    ),
]

Redacted = Annotated[
    bool,
    typer.Option(
        "--redact/--no-redact",
        help="Take out what tells of you or your machine: folders above the project, user and host names, e-mail addresses, and "
        "passwords, tokens and queries of URLs, as far as they can be told. "
        "Of a path its last two parts stay, of an installed package all from its name on.",
        show_default="redact",
    ),
]

JUDGED = (
    "Exit codes: 0 clean · 1 findings at or above --fail-on · 2 wrong usage or unreadable input · "
    "3 could not judge (no GPU work, or damage that hides it; with --fail-on, also a damaged trace without such findings)."
)
"""What commands end with whose gate is --fail-on."""
RANKS_SHOWN = 8
"""More than that on one timeline no one looks through, and no page should carry."""


P = ParamSpec("P")


def begins_again(verb: Callable[P, None]) -> Callable[P, None]:
    """A verb that begins again, once, when a store is replaced while it is read: what it says is of one store alone."""

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except ChangedError as error:
            tell(f"{error.happened}; reading the new one")
            verb(*args, **kwargs)

    return run


def offsets_of(texts: list[str] | None) -> dict[str, int]:
    """What `--offset` says, in ns by file. Raises InputError for what is no file and duration."""
    from traceanalyzer.units import NS, parse_quantity

    found = {}
    for text in texts or []:
        name, is_there, said = text.rpartition("=")
        try:
            value, unit = parse_quantity(said.removeprefix("+"))
        except ValueError:
            value, unit = 0, None
        if not is_there or not name or unit != NS:
            raise InputError(f"--offset: '{text}' is not FILE=DURATION such as power.log=-1.5s")
        found[name] = round(value)
    return found


def size_limit(text: str | None) -> int | None:
    """The bytes that `--max-size` says. Raises InputError for what is no size."""
    from traceanalyzer.units import BYTES, parse_quantity

    if text is None:
        return None
    try:
        value, unit = parse_quantity(text)
    except ValueError:
        value, unit = 0, None
    if unit != BYTES or value <= 0:
        raise InputError(f"--max-size: '{text}' is not a size such as 200GiB")
    return int(value)


def configuration(
    thresholds: list[str] | None = None, rules: list[Path] | None = None, disabled: list[str] | None = None
) -> Config:
    """What the nearest pyproject.toml says, and over it what `--set`, `--rules` and `--disable` say. Raises ConfigError."""
    from dataclasses import replace

    from traceanalyzer.config import find_config
    from traceanalyzer.garbage import keep_what_is_there

    keep_what_is_there()
    config = find_config(_here())
    params = {rule: dict(values) for rule, values in config.params.items()}
    if thresholds:
        from traceanalyzer.engine.rules.overrides import parse_overrides

        for rule, values in parse_overrides(thresholds).items():
            params.setdefault(rule, {}).update(values)
    disable = {**config.disable, **dict.fromkeys(disabled or [], "by --disable")}
    return replace(config, params=params, rules=(*config.rules, *(rules or [])), disable=disable)


def _here() -> Path:
    """The current folder; an empty one in its place where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


def write(content: bytes, output: Path) -> None:
    """Write to a file, whole or not at all, or to stdout for `-`. Raises InputError when the file cannot be written."""
    with output_file(output) as file:
        file.write(content)


@contextmanager
def output_file(output: Path) -> Iterator[IO[bytes]]:
    """A file to write to that is there whole or not at all; `-` is stdout. Raises InputError when it cannot be written.

    `output` is a place that `Outputs` has resolved and checked; where links have changed since, nothing is written.
    """
    if str(output) == "-":
        with _stdout() as out:
            yield out
        return
    try:
        if output.exists() and not output.is_file():  # /dev/null and other devices, named pipes
            with output.open("wb") as device:
                yield device
            return
        if resolve_place(output) != output.absolute():
            raise InputError(f"{output}: leads somewhere else now; give the command again")
        with replacing(output) as file:
            yield file
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror or error}); choose another output") from error


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    try:
        # A reader that has enough (`| head`) ends the writing; what was found stays what was found.
        with suppress(ReaderGoneError):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    except ChangedError as error:
        raise InputError(f"{error}; what is on standard output is not whole") from error


def exit_code(result: Result, fail_on: Severity | None) -> int:
    """What the command line ends with, see `result.gate.exit_code`."""
    from traceanalyzer.result import gate

    return gate.exit_code(result, fail_on)


@contextmanager
def reading() -> Iterator[Callable[[Source], Callable[[int], None]] | None]:
    """A progress bar over the bytes of each input, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    # Without a thread of its own: beside one this process makes no copies of itself (`forks`).
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        shown = 0.0

        def advance(task: TaskID, count: int) -> None:
            nonlocal shown
            bar.advance(task, count)
            if monotonic() - shown >= _REFRESH_S:
                bar.refresh()
                shown = monotonic()

        def start(source: Source) -> Callable[[int], None]:
            return partial(advance, bar.add_task(line(source.path.name), total=source.size))

        yield start


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar over so many files, on a terminal only: what it gives is called after each."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Without a thread of its own: beside one this process makes no copies of itself (`forks`).
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(line(what), total=total)

        def done() -> None:
            bar.advance(task)
            bar.refresh()

        yield done
