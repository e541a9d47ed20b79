"""Values of what was typed. Typer loads pydantic to make them, which takes as long as all else that it does; what is a path, a text, a
choice or a default needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperCommand, TyperGroup


class QuickCommand(TyperCommand):
    """A command of ours, whose plain values are made here: it asks no more of a path than that it can be read, if it is there."""

    def get_params(self, ctx: Any) -> Any:
        return _made_here(super().get_params(ctx))


class QuickGroup(TyperGroup):
    """As `QuickCommand`, for the program itself."""

    def get_params(self, ctx: Any) -> Any:
        return _made_here(super().get_params(ctx))


def _made_here(params: Any) -> Any:
    for param in params:
        # Releases of typer that do not have it do not load pydantic either.
        typers = getattr(param, "get_runtime_param", None)
        if typers is not None and not isinstance(typers, _Values):
            param.get_runtime_param = _Values(typers)
    return params


class _Values:
    """In the place of typer's maker of values, which is made when it is needed."""

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def __call__(self) -> _Values:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        plain = _plain(param.type_descriptor.annotation, value)
        return self._typers().coerce(value, param=param, ctx=ctx) if plain is None and value is not None else plain


def _plain(kind: Any, value: Any) -> Any:
    """The value of this kind; None where typer is to make it, or to say what is wrong with it."""
    if get_origin(kind) is list:
        (each,) = get_args(kind)
        made = [_plain(each, one) for one in value or ()]
        return None if None in made else made
    if isinstance(value, str):
        if not isinstance(kind, type) or not value or not value.isprintable():
            return None
        if issubclass(kind, Enum):
            return kind(value) if value in [one.value for one in kind] else None
        value = Path(value) if kind is Path else value
    if kind is float and isinstance(value, int):  # a default that reads better so
        return float(value)
    if isinstance(value, Path) and not os.access(value, os.R_OK) and os.path.lexists(value):
        return None
    return value if isinstance(kind, type) and isinstance(value, kind) else None
