"""Values of what was typed are those that typer would make."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from traceanalyzer.cli.command import own_commands
from traceanalyzer.cli.commands import program
from traceanalyzer.cli.values import _plain

TYPED: tuple[Any, ...] = (
    None,
    "",
    "-",
    "1",
    "-3",
    "2.5",
    "nan",
    "text",
    "json",
    "HIGH",
    "high",
    "a b/ü.json",
    "bad\udcff",
    "a\tb",
)


def parameters() -> Iterator[Any]:
    """Those of all commands of ours that typer makes values for."""
    waiting: list[Any] = [get_command(program(own_commands()))]
    while waiting:
        command = waiting.pop()
        yield from (param for param in command.params if hasattr(param, "get_runtime_param"))
        waiting += getattr(command, "commands", {}).values()


def made(param: Any, value: Any) -> Any:
    try:
        found = param.get_runtime_param().coerce(value, param=param, ctx=None)
    except typer.BadParameter:
        return "refused"
    return list(found) if isinstance(found, list | tuple) else found


def test_plain_values_are_those_of_typer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("")
    count = 0
    for param in parameters():
        several = param.multiple or param.nargs == -1
        for value in (param.default, *TYPED):
            given = (value,) if several and isinstance(value, str) else value
            plain = _plain(param.type_descriptor.annotation, given)
            if plain is not None:
                assert plain == made(param, given), (param.name, value)
                assert not isinstance(plain, Enum) or isinstance(made(param, given), Enum)
                count += 1
    assert count > 500 or not hasattr(param, "get_runtime_param")
