"""YAML with positions: plain data, and for every value and key the line and column where it stands.

Safe YAML only, without anchors and aliases (a few lines of which can expand to gigabytes); a key written twice is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

# libyaml says the same and takes a fifth of the time; not every build of PyYAML has it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_CHARACTERS = 200_000
MAX_DEPTH = 20
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
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
    """`data` is made of dict, list, str, int, float, bool and None; `marks` and `keys` give the place of the value or key at a path."""

    data: Any
    marks: dict[Path, Mark]
    keys: dict[Path, Mark]

    def mark(self, path: Path) -> Mark:
        """Where the value at `path` stands, or the nearest thing around it."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Mark(1, 1))


def read_yaml(text: str) -> Document:
    """Parse one document. Raises YamlError."""
    if len(text) > MAX_CHARACTERS:
        raise YamlError(f"the file is longer than {MAX_CHARACTERS:,} characters", Mark(1, 1))
    try:
        _refuse_bombs(text)
        node = yaml.compose(text, Loader=LOADER)
        marks: dict[Path, Mark] = {}
        keys: dict[Path, Mark] = {}
        return Document(None if node is None else _plain(node, (), marks, keys), marks, keys)
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"no YAML: {error.problem}", _mark(error.problem_mark)) from None
    except yaml.YAMLError as error:
        raise YamlError(f"no YAML: {error}", Mark(1, 1)) from None


def _refuse_bombs(text: str) -> None:
    """Raise YamlError for aliases and for deep nesting, before anything is built from the text."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors and aliases are not allowed", _mark(event.start_mark))
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise YamlError(f"the file is nested deeper than {MAX_DEPTH} levels", _mark(event.start_mark))


def _plain(node: yaml.Node, path: Path, marks: dict[Path, Mark], keys: dict[Path, Mark]) -> Any:
    marks[path] = _mark(node.start_mark, node)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError("a key must be a text", _mark(key_node.start_mark))
            if key in result:
                raise YamlError(f"'{key}' is written twice", _mark(key_node.start_mark))
            keys[(*path, key)] = _mark(key_node.start_mark)
            result[key] = _plain(value_node, (*path, key), marks, keys)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, at), marks, keys) for at, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    try:
        value = yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, yaml.YAMLError):
        return str(node.value)
    # Dates, sets and the like are texts to a rule.
    return value if isinstance(value, str | int | float | bool | None) else str(node.value)


def _mark(mark: Any, node: yaml.Node | None = None) -> Mark:
    if mark is None:
        return Mark(1, 1)
    style = getattr(node, "style", None)
    inline = isinstance(node, yaml.ScalarNode) and node.start_mark.line == node.end_mark.line
    return Mark(mark.line + 1, mark.column + 1 + (1 if style in ("'", '"') else 0), inline)
