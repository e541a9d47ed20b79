"""What a user sets in the nearest pyproject.toml:

[tool.traceanalyzer]
input_patterns = ["read_shard*"]      # more names of data-loader ranges, shell-style, without regard to case
communication_patterns = ["*my_ring*"] # more names of kernels that communicate, likewise
rules = ["perf/rules"]                # rule files or folders of them beside the shipped ones, relative to this file
disable = ["KRN005"]                  # rules that are not run

[tool.traceanalyzer.params]
LCH001.short = "50us"                 # a threshold of a rule, as `rules show LCH001` lists them

[tool.traceanalyzer.check]
aggregate = "median"                  # over several captures: median or worst
baseline = "perf/baseline.json"       # relative to this file

[tool.traceanalyzer.check.budgets]
"idle_share <= 20%" = "error"         # off, warn or error
INP001 = "warn"                       # findings of a rule that gain something
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from traceanalyzer.errors import ConfigError, did_you_mean
from traceanalyzer.files import read_settings
from traceanalyzer.records import dataclass
from traceanalyzer.units import can_be_held
from traceanalyzer.urls import url_of

MOST_BYTES = 1 << 20
# In one line: the time to read a key grows with the square of its parts.
MOST_DOTS = 500
LEVELS = ("off", "warn", "error")
AGGREGATES = ("median", "worst")


@dataclass(frozen=True)
class Entry:
    """A budget as it was written: an assertion or a rule, its level, how it takes several captures (None: as all do), and where it
    stands, for messages."""

    text: str
    level: str
    aggregate: str | None
    place: str


@dataclass(frozen=True)
class Budgets:
    """What `check` holds captures against."""

    entries: tuple[Entry, ...] = ()
    aggregate: str | None = None
    baseline: Path | None = None


@dataclass(frozen=True)
class Config:
    """`input_patterns` are name patterns of data-loader ranges and `communication_patterns` of kernels that communicate, beside the
    built-in ones, `params` thresholds by rule id, `rules` files and folders of rules beside the shipped ones, `disable` the ids of
    rules that are not run and where that was said, `check` the budgets, `file` the one that says all this."""

    input_patterns: tuple[str, ...] = ()
    params: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rules: tuple[Path, ...] = ()
    disable: Mapping[str, str] = field(default_factory=dict)
    communication_patterns: tuple[str, ...] = ()
    check: Budgets = field(default_factory=Budgets)
    file: Path | None = field(default=None, compare=False)


_LISTS = ("input_patterns", "communication_patterns", "rules", "disable")


def find_config(start: Path) -> Config:
    """The configuration of the nearest pyproject.toml at or above `start` that has one, else the defaults.

    Raises ConfigError for a file that is no TOML, an unknown key or a value of the wrong type.
    """
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if _is_file(file) and (found := _table(file)) is not None:
            return _read(found, file)
    return Config()


def read_config(file: Path) -> Config:
    """The configuration of one TOML file; raises as `find_config`, and for a file that cannot be read or has no such table."""
    if (found := _table(file, pipes=True)) is None:
        raise ConfigError(f"{file}: has no table [tool.traceanalyzer]")
    return _read(found, file)


def _table(file: Path, pipes: bool = False) -> object:
    """What the file has as [tool.traceanalyzer]; None without it."""
    text = read_settings(file, MOST_BYTES, pipes)
    if any(one.count(".") > MOST_DOTS for one in text.splitlines()):
        raise ConfigError(f"{file}: has a line with more than {MOST_DOTS} dots; break it")
    try:
        tool = tomllib.loads(text).get("tool")
    except (ValueError, RecursionError) as error:  # the number that has too many digits for Python, too
        said = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError(f"{file}: not valid TOML ({said})") from error
    found = tool.get("traceanalyzer") if isinstance(tool, dict) else None
    _refuse_numbers(found, file)
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that we may not look into
        return False


def _refuse_numbers(found: object, file: Path) -> None:
    """TOML has whole numbers of 64 bits; Python reads longer ones, which cannot even be written in a message."""
    values = [found]
    while values:
        match values.pop():
            case dict() as table:
                values += table.values()
            case list() as items:
                values += items
            case int() | float() as number if not can_be_held(number):
                raise ConfigError(f"{file}: [tool.traceanalyzer] has a number that is too large, or none")


def _read(found: object, file: Path) -> Config:
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: [tool.traceanalyzer] must be a table")
    _known(found, (*_LISTS, "params", "check"), f"{file}: [tool.traceanalyzer]")
    inputs, communication, rules, disable = (_texts(found.get(key, []), key, file) for key in _LISTS)
    params = found.get("params", {})
    if not isinstance(params, dict) or not all(isinstance(values, dict) for values in params.values()):
        raise ConfigError(f'{file}: [tool.traceanalyzer.params] holds lines such as LCH001.short = "50us"')
    places = tuple(_place(file, rule) for rule in rules)
    check = read_budgets(found.get("check", {}), file, f"{file}: [tool.traceanalyzer.check]")
    return Config(inputs, params, places, dict.fromkeys(disable, f"in {file.name}"), communication, check, file)


def read_budgets(found: object, file: Path, table: str, places: Mapping[str, str] | None = None) -> Budgets:
    """The budgets in a table of `file` that messages call `table`. `places` are where single entries stand, if that is known.

    Raises ConfigError for an unknown key, level or aggregate, and for a value of the wrong type.
    """
    if not isinstance(found, dict):
        raise ConfigError(f"{table} must hold aggregate, baseline and budgets")
    _known(found, ("aggregate", "baseline", "budgets"), table)
    aggregate, baseline, budgets = found.get("aggregate"), found.get("baseline"), found.get("budgets", {})
    if aggregate is not None:
        _one_of(aggregate, AGGREGATES, f"{table}: aggregate")
    if baseline is not None and not isinstance(baseline, str):
        raise ConfigError(f"{table}: baseline must be the path of a file")
    if baseline is not None and url_of(baseline) is not None:
        raise ConfigError(
            f"{table}: baseline must be a path on this machine, not a URL; fetch it first, or name it with --baseline"
        )
    if isinstance(budgets, list) and all(isinstance(text, str) for text in budgets):
        budgets = dict.fromkeys(budgets, "error")
    if not isinstance(budgets, dict):
        raise ConfigError(
            f'{table}: budgets holds lines such as "idle_share <= 20%" = "error", or is a list of assertions'
        )
    entries = [_entry(text, value, (places or {}).get(text, table)) for text, value in budgets.items()]
    return Budgets(tuple(entries), aggregate, _place(file, baseline) if baseline else None)


def _place(file: Path, written: str) -> Path:
    """Where a path in the file leads, relative to it."""
    try:
        return file.parent / Path(written).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{file}: '{written}': there is no home folder; write the whole path") from error


def _entry(text: str, value: object, place: str) -> Entry:
    """`value` is a level, or a table with level and aggregate."""
    where = f"{place}: '{text}'"
    given = value if isinstance(value, dict) else {"level": value}
    _known(given, ("level", "aggregate"), where)
    # YAML reads a plain `off` as false.
    level = "off" if given.get("level", "error") is False else given.get("level", "error")
    _one_of(level, LEVELS, f"{where}: the level")
    aggregate = given.get("aggregate")
    if aggregate is not None:
        _one_of(aggregate, AGGREGATES, f"{where}: aggregate")
    return Entry(text, str(level), None if aggregate is None else str(aggregate), place)


def _known(found: Mapping[str, object], known: Iterable[str], where: str) -> None:
    if unknown := sorted(set(found) - {*known}):
        *others, last = known
        knows = f"it knows {', '.join(others)} and {last}"
        raise ConfigError(f"{where} has no key '{unknown[0]}'; {knows}{did_you_mean(unknown[0], known)}")


def _one_of(value: object, allowed: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        *others, last = allowed
        raise ConfigError(f"{what} is {', '.join(others)} or {last}, not '{value}'")


def _texts(value: object, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigError(f"{file}: {key} in [tool.traceanalyzer] must be a list of strings")
    return tuple(value)
