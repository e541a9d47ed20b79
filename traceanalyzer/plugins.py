"""What is found rather than listed: the sub-packages of a folder of this package, and what other packages name as entry points."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points

from traceanalyzer.errors import ConfigError

ATTRIBUTE = "KIND"
"""What a sub-package calls the object that it is there for."""


def plugins(package: str, group: str) -> Iterator[tuple[str, object]]:
    """(where it is from, object) of each sub-package of `package` that has one, then of each entry point of `group`, sorted by name.

    Raises ConfigError for an entry point that cannot be loaded.
    """
    folder = import_module(package)
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda one: one.name):
        if module.ispkg:
            found = import_module(f"{package}.{module.name}")
            if (value := getattr(found, ATTRIBUTE, None)) is not None:
                yield found.__name__, value
    for point in sorted(entry_points(group=group), key=lambda one: (one.name, one.value)):
        try:
            yield f"{point.name} ({point.value})", point.load()
        except Exception as error:  # Whatever a stranger's package does when it is imported.
            raise ConfigError(
                f"{group}: {point.name} = {point.value} cannot be loaded ({type(error).__name__}: {error}); "
                "mend or uninstall the package that names it"
            ) from error


def resolved(name: str) -> object:
    """The object that "module:name" stands for."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
