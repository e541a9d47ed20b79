"""Budgets in a file of their own: YAML with the keys of [tool.traceanalyzer.check], or TOML with that table."""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.config import Budgets, read_budgets, read_config
from traceanalyzer.engine.rules.yamlfile import MOST_BYTES, YamlError, read_yaml
from traceanalyzer.errors import ConfigError
from traceanalyzer.files import read_settings

BUDGETS = "budgets"


def budgets_in(file: Path) -> Budgets:
    """Raises ConfigError that names the file, and in YAML the line."""
    if file.suffix == ".toml":
        return read_config(file).check
    try:
        document = read_yaml(read_settings(file, MOST_BYTES, pipes=True))
    except YamlError as error:
        raise ConfigError(f"{file}:{error.mark.line}:{error.mark.column}: {error}") from error
    if document.data is None:
        raise ConfigError(f"{file}: is empty; it should hold budgets")
    places = {str(path[1]): mark.line for path, mark in document.keys.items() if len(path) == 2 and path[0] == BUDGETS}
    if isinstance(document.data, dict) and isinstance(listed := document.data.get(BUDGETS), list):
        places = {str(text): document.mark((BUDGETS, at)).line for at, text in enumerate(listed)}
    return read_budgets(document.data, file, str(file), {text: f"{file}:{line}" for text, line in places.items()})
