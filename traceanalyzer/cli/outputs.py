"""More outputs of one reading: `--also FORMAT=FILE`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from traceanalyzer.cli.common import check_output
from traceanalyzer.errors import InputError

F = TypeVar("F", bound=StrEnum)

Also = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="FORMAT=FILE",
        help="Write the same result in another format too, such as markdown=summary.md; may be repeated. The input is read once.",
        show_default=False,
    ),
]


def also_outputs(values: list[str] | None, formats: type[F], first: Path, inputs: list[Path]) -> list[tuple[F, Path]]:
    """What `--also` asks for, checked like every output before anything is read; `first` is where the main output goes.

    Raises InputError: no format or an unknown one, standard output, a file that another output has, or what `check_output` refuses.
    """
    taken = {first.resolve()} if str(first) != "-" else set()
    wanted: list[tuple[F, Path]] = []
    for value in values or []:
        name, is_pair, file = value.partition("=")
        known = ", ".join(formats)
        if not is_pair or not file:
            raise InputError(f"--also {value}: write it as FORMAT=FILE, such as markdown=summary.md")
        if name not in list(formats):
            raise InputError(f"--also {value}: there is no format '{name}'; choose one of {known}")
        if file == "-":
            raise InputError(f"--also {value}: only the main output can go to standard output; name a file")
        path = Path(file)
        check_output(path, inputs)
        if path.resolve() in taken:
            raise InputError(f"--also {value}: another output goes to {file} already; name another file")
        taken.add(path.resolve())
        wanted.append((formats(name), path))
    return wanted
