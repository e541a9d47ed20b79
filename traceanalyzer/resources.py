"""Where the rules and templates that ship with the package lie.

In a wheel they are package data under `traceanalyzer/_data`; in a source checkout (also an editable install) they are the
top-level folders of the same name.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable


def data_folder(name: str) -> Traversable:
    """The shipped folder `name` ("rules" or "templates"). Raises FileNotFoundError when the installation lacks it."""
    package = files("traceanalyzer")
    packaged = package / "_data" / name
    if packaged.is_dir():
        return packaged
    checkout = package / ".." / name
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError(f"the traceanalyzer installation lacks its '{name}' folder; reinstall it")
