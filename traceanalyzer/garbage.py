"""How often Python looks for reference cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000


def collect_rarely() -> None:
    """For a program that ends soon. Tables are no Python objects, and what is one (rules, names, modules) lives until the end: looking
    through it every 700 new objects takes a tenth of a short run."""
    gc.set_threshold(_NEW_OBJECTS)


def keep_what_is_there() -> None:
    """For when modules have been loaded, and rules: they live until the end, so no search looks through them again."""
    gc.freeze()


@contextmanager
def without_collection() -> Iterator[None]:
    """No search for cycles meanwhile: for reading many objects at once, which takes twice as long with it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
