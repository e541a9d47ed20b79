"""What a user sets in the nearest pyproject.toml:

[tool.traceanalyzer]
input_patterns = ["read_shard*"]      # more names of data-loader ranges, shell-style, without regard to case
communication_patterns = ["*my_ring*"] # more names of kernels that communicate, likewise
rules = ["perf/rules"]                # rule files or folders of them beside the shipped ones, relative to this file
disable = ["KRN005"]                  # rules that are not run

[tool.traceanalyzer.params]
LCH001.short = "50us"                 # a threshold of a rule, as `rules show LCH001` lists them
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from traceanalyzer.errors import ConfigError


@dataclass(frozen=True)
class Config:
    """`input_patterns` are name patterns of data-loader ranges and `communication_patterns` of kernels that communicate, beside the
    built-in ones, `params` thresholds by rule id, `rules` files and folders of rules beside the shipped ones, `disable` the ids of
    rules that are not run and where that was said."""

    input_patterns: tuple[str, ...] = ()
    params: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rules: tuple[Path, ...] = ()
    disable: Mapping[str, str] = field(default_factory=dict)
    communication_patterns: tuple[str, ...] = ()


_LISTS = ("input_patterns", "communication_patterns", "rules", "disable")


def find_config(start: Path) -> Config:
    """The configuration of the nearest pyproject.toml at or above `start` that has one, else the defaults.

    Raises ConfigError for a file that is no TOML, an unknown key or a value of the wrong type.
    """
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                found = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("traceanalyzer")
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"{file}: not valid TOML ({error})") from error
            if found is not None:
                return _read(found, file)
    return Config()


def _read(found: object, file: Path) -> Config:
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: [tool.traceanalyzer] must be a table")
    unknown = sorted(set(found) - {*_LISTS, "params"})
    if unknown:
        known = f"{', '.join(_LISTS)} and params"
        raise ConfigError(f"{file}: [tool.traceanalyzer] has no key '{unknown[0]}'; it knows {known}")
    inputs, communication, rules, disable = (_texts(found.get(key, []), key, file) for key in _LISTS)
    params = found.get("params", {})
    if not isinstance(params, dict) or not all(isinstance(values, dict) for values in params.values()):
        raise ConfigError(f'{file}: [tool.traceanalyzer.params] holds lines such as LCH001.short = "50us"')
    places = tuple(file.parent / Path(rule).expanduser() for rule in rules)
    return Config(inputs, params, places, dict.fromkeys(disable, "in pyproject.toml"), communication)


def _texts(value: object, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigError(f"{file}: {key} in [tool.traceanalyzer] must be a list of strings")
    return tuple(value)
