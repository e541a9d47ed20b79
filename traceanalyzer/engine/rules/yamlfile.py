"""YAML with positions: plain data, and for every value and key the line and column where it stands.

Safe YAML only, without tags, anchors and aliases (a few lines of which can expand to gigabytes); a key written twice is an error, and a
number that no column of a table could hold is a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import yaml

from traceanalyzer.records import dataclass
from traceanalyzer.units import can_be_held

# libyaml says the same and takes a fifth of the time; not every build of PyYAML has it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_CHARACTERS = 200_000
MOST_BYTES = 4 * MAX_CHARACTERS
MAX_DEPTH = 20
# Longer ones are no amounts, and some forms of them take long to read.
MAX_DIGITS = 40
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
Path = tuple[str | int, ...]


class Mark(NamedTuple):
    """1-based line and column. `inline`: the text starts right here, so that a column within it can be added."""

    line: int
    column: int
    inline: bool = False

    def shifted(self, columns: int) -> Mark:
        return Mark(self.line, self.column + columns, True) if self.inline else self


class YamlError(ValueError):
    """Text that is no acceptable YAML, and where."""

    def __init__(self, message: str, mark: Mark) -> None:
        super().__init__(message)
        self.mark = mark


@dataclass(frozen=True)
class Document:
    """`data` is made of dict, list, str, int, float, bool and None; where it stands in the `text` is looked for when somebody asks."""

    data: Any
    text: str

    def mark(self, path: Path) -> Mark:
        """Where the value at `path` stands, or the nearest thing around it."""
        values = self._places.values
        while path and path not in values:
            path = path[:-1]
        return values.get(path, Mark(1, 1))

    @property
    def keys(self) -> Mapping[Path, Mark]:
        """Where each key stands, by its path."""
        return self._places.keys

    @cached_property
    def _places(self) -> _Places:
        places = _Places({}, {})
        _Reader(self.text, places).data()
        return places


@dataclass(frozen=True)
class _Places:
    """Where the values and the keys of a document stand, by path."""

    values: dict[Path, Mark]
    keys: dict[Path, Mark]


def read_yaml(text: str) -> Document:
    """Parse one document. Raises YamlError."""
    if len(text) > MAX_CHARACTERS:
        raise YamlError(f"the file is longer than {MAX_CHARACTERS:,} characters", Mark(1, 1))
    if found := _CONTROL.search(text):
        before = text[: found.start()]
        mark = Mark(before.count("\n") + 1, found.start() - before.rfind("\n"))
        raise YamlError(f"the character U+{ord(found[0]):04X} is not allowed", mark)
    try:
        return Document(_Reader(text).data(), text)
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"no YAML: {error.problem}", _mark(error.problem_mark)) from None
    except yaml.YAMLError as error:
        raise YamlError(f"no YAML: {' '.join(str(error).split())}", Mark(1, 1)) from None


class _Reader:
    """Builds the data while the text is parsed, so that aliases and deep nesting are refused before anything comes of them.

    Where all of it stands is noted in `places`, if there are any: that takes as long again.
    """

    def __init__(self, text: str, places: _Places | None = None) -> None:
        self._event = LOADER(text).get_event
        self._depth = 0
        self._places = places

    def data(self) -> Any:
        data = None
        count = 0
        while (event := self._event()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                count += 1
                if count > 1:
                    raise YamlError("no YAML: expected a single document in the stream", _mark(event.start_mark))
                data = self._value(self._next(), ())
        return data

    def _next(self) -> Any:
        event = self._event()
        if type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None:
            return event  # which is what most are
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors and aliases are not allowed", _mark(event.start_mark))
        if getattr(event, "tag", None) is not None:
            raise YamlError("tags are not allowed", _mark(event.start_mark))
        self._depth += isinstance(event, yaml.CollectionStartEvent)
        self._depth -= isinstance(event, yaml.CollectionEndEvent)
        if self._depth > MAX_DEPTH:
            raise YamlError(f"the file is nested deeper than {MAX_DEPTH} levels", _mark(event.start_mark))
        return event

    def _value(self, event: Any, path: Path) -> Any:
        scalar = isinstance(event, yaml.ScalarEvent)
        if self._places is not None:
            self._places.values[path] = _mark(event.start_mark, event if scalar else None)
        if scalar:
            return _scalar(event)
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._sequence(path)

    def _mapping(self, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise YamlError("a key must be a text", _mark(event.start_mark))
            key = event.value
            if key in result:
                raise YamlError(f"'{key}' is written twice", _mark(event.start_mark))
            if self._places is not None:
                self._places.keys[(*path, key)] = _mark(event.start_mark)
            result[key] = self._value(self._next(), (*path, key))
        return result

    def _sequence(self, path: Path) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            result.append(self._value(event, (*path, len(result))))
        return result


_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def _scalar(event: Any) -> str | int | float | bool | None:
    plain, _ = event.implicit
    if not plain or event.value[:1] not in _RESOLVER.yaml_implicit_resolvers:
        return str(event.value)  # which is what most are
    tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    if tag == _TEXT or (tag in _NUMBERS and len(event.value) > MAX_DIGITS):
        return str(event.value)
    try:
        value = _CONSTRUCTOR.construct_object(yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark))
    except (ValueError, AttributeError, yaml.YAMLError):
        return str(event.value)
    # Dates, sets and the like are texts to a rule, and so are infinity and what is too large to be an amount.
    if isinstance(value, int | float) and not can_be_held(value):
        return str(event.value)
    return value if isinstance(value, str | int | float | bool | None) else str(event.value)


def _mark(mark: Any, scalar: Any = None) -> Mark:
    """The place of a mark; `scalar` is the value that begins there, if it is one."""
    if mark is None:
        return Mark(1, 1)
    if scalar is None:
        return Mark(mark.line + 1, mark.column + 1)
    inline = mark.line == scalar.end_mark.line
    return Mark(mark.line + 1, mark.column + 1 + (scalar.style in ("'", '"')), inline)
